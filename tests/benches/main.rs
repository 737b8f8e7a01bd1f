//! Benchmarks: `cargo run -p olm-tests --example bench -- NAME [ARGUMENTS]`. `README.md` lists them, with their results.
//!
//! They are one program, because each program that is linked with the control plane and the shell adds seconds to every build
//! of the tests.

mod bundle;
mod catalog;
mod commands;
mod explain;
mod idle;
mod install;
mod intersect;
mod lint;
mod operatorgroups;
mod operatorgroups_simulated;
mod packages;
mod resolve;
mod version;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    match name.as_str() {
        "bundle" => bundle::measure(),
        "catalog" => catalog::measure(),
        "commands" => commands::measure(),
        "explain" => explain::measure(),
        "idle" => idle::measure(),
        "install" => install::measure(),
        "intersect" => intersect::measure(),
        "lint" => lint::measure(),
        "operatorgroups" => operatorgroups::measure(&arguments),
        "operatorgroups-simulated" => operatorgroups_simulated::measure(&arguments),
        "packages" => packages::measure(),
        "resolve" => resolve::measure(),
        "version" => version::measure(),
        _ => bail!("unknown benchmark \"{name}\"; tests/benches/README.md lists them"),
    }
}
