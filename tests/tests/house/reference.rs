//! The reference of the commands, as the plugins print it: a page in Markdown, and a manual page.

use std::process::{Command, Stdio};

use olm_shell::reference::{MANUAL, MARKDOWN};
use olm_tests::house::generated::Generated;
use olm_tests::house::manifests;
use olm_tests::plugin::binary;

/// Returns the pages of all plugins.
pub(crate) fn files() -> Vec<Generated> {
    let members = manifests::members().unwrap();
    let plugins = members.iter().map(|member| member.name.as_str()).filter(|name| name.starts_with("kubectl-olm"));
    plugins
        .flat_map(|plugin| {
            let page = |file: String, format: &str| Generated { file: file.into(), text: printed(plugin, format) };
            [
                page(format!("shared/docs/commands/{plugin}.md"), MARKDOWN),
                page(format!("plugins/{plugin}/man/{plugin}.1"), MANUAL),
            ]
        })
        .collect()
}

fn printed(plugin: &str, format: &str) -> String {
    let output = Command::new(binary(plugin).unwrap()).arg(format).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{plugin}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
