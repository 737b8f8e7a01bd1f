//! Time and memory to validate, list and render a large catalog: 420 packages with 1,266 bundles, generated from the real ones
//! of the sample data, as JSON and as YAML. `OLM_BENCH_OPM` names an opm to measure for comparison.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use olm_core::bundle::{Bundle, File};
use olm_core::catalog::Meta;
use olm_shell::cli::Printer;
use olm_tests::bench::{release, watch};
use olm_tests::data;
use serde_json::{Value, json};

/// The size of the catalog that was measured with opm.
pub(crate) const PACKAGES: usize = 420;
const BUNDLES: usize = 1266;
const BYTES: usize = 159_000_000;

/// A run is long, and the first one warms the disk's cache.
const RUNS: usize = 3;

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let ours = release("kubectl-olm-catalog")?;
    let folder = tempfile::tempdir()?;
    let made = make(&data, folder.path())?;
    let opm = std::env::var_os("OLM_BENCH_OPM").map(PathBuf::from);
    for (format, directory, bytes) in &made {
        printer
            .line(format_args!("{format}: {PACKAGES} packages, {BUNDLES} bundles, {:.0} MB", as_mb(*bytes as u64)))?;
        for words in [&["validate"][..], &["list"], &["render"]] {
            printer.line(format_args!(
                "  kubectl olm catalog {}: {}",
                words.join(" "),
                figures(&ours, words, directory)?
            ))?;
        }
        for words in [&["validate"][..], &["alpha", "list", "packages"], &["render"]] {
            if let Some(opm) = &opm {
                printer.line(format_args!("  opm {}: {}", words.join(" "), figures(opm, words, directory)?))?;
            }
        }
    }
    Ok(())
}

fn as_mb(bytes: u64) -> f64 {
    u32::try_from(bytes / 1000).map_or(f64::MAX, f64::from) / 1000.0
}

/// Writes the catalog in each format, with a file for each package.
pub(crate) fn make(data: &Path, to: &Path) -> Result<Vec<(&'static str, PathBuf, usize)>> {
    let mut real = real_bundles(&data.join("bundles"), data)?;
    ensure!(!real.is_empty(), "no bundles in {}", data.display());
    // Alternating between large and small ones.
    real.sort_by_key(|bundle| bundle.to_string().len());
    let (json, yaml) = (to.join("json"), to.join("yaml"));
    let mut sizes = [0, 0];
    let (mut small, mut large, mut made) = (0, real.len() - 1, 0);
    for package in 0..PACKAGES {
        let name = format!("package-{package:03}");
        let count = (BUNDLES * (package + 1)) / PACKAGES - (BUNDLES * package) / PACKAGES;
        let versions: Vec<String> = (0..count).map(|n| format!("1.{n}.0")).collect();
        let entries: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(n, version)| {
                let mut entry = json!({"name": format!("{name}.v{version}")});
                if n > 0 {
                    entry["replaces"] = format!("{name}.v1.{}.0", n - 1).into();
                }
                entry
            })
            .collect();
        let mut blobs = vec![
            json!({"schema": "olm.package", "name": name, "defaultChannel": "stable", "description": "A package."}),
            json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}),
        ];
        for version in &versions {
            let wanted = BYTES / BUNDLES * made;
            let of = if sizes[0] < wanted {
                large = if large == 0 { real.len() - 1 } else { large - 1 };
                &real[large]
            } else {
                small = (small + 1) % real.len();
                &real[small]
            };
            blobs.push(renamed(of, &name, version));
            made += 1;
        }
        let (mut as_json, mut as_yaml) = (String::new(), String::new());
        for blob in blobs.into_iter().map(Meta) {
            writeln!(as_json, "{}", serde_json::to_string_pretty(&blob)?)?;
            write!(as_yaml, "---\n{}", serde_yaml::to_string(&blob)?)?;
        }
        for (index, (folder, file, text)) in
            [(&json, "catalog.json", &as_json), (&yaml, "catalog.yaml", &as_yaml)].into_iter().enumerate()
        {
            fs::create_dir_all(folder.join(&name))?;
            fs::write(folder.join(&name).join(file), text)?;
            sizes[index] += text.len();
        }
    }
    Ok(vec![("JSON", json, sizes[0]), ("YAML", yaml, sizes[1])])
}

/// Returns the blob of a bundle with another package and version.
fn renamed(bundle: &Value, package: &str, version: &str) -> Value {
    let mut bundle = bundle.clone();
    bundle["name"] = format!("{package}.v{version}").into();
    bundle["package"] = package.into();
    for property in bundle["properties"].as_array_mut().into_iter().flatten() {
        if property["type"] == "olm.package" {
            property["value"] = json!({"packageName": package, "version": version});
        }
    }
    // opm refuses catalogs with invalid references: URLs, and placeholders.
    let is_none = |image: &str| image.contains("://") || image.contains(|c: char| c.is_ascii_uppercase());
    for image in bundle["relatedImages"].as_array_mut().into_iter().flatten() {
        if image["image"].as_str().is_some_and(is_none) {
            image["image"] = "".into();
        }
    }
    bundle
}

/// Returns the blobs of the bundles that can be rendered.
fn real_bundles(folder: &Path, data: &Path) -> Result<Vec<Value>> {
    if !folder.join("manifests").is_dir() {
        let mut blobs = Vec::new();
        let mut folders: Vec<PathBuf> = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
        folders.sort();
        for folder in folders.iter().filter(|f| f.is_dir()) {
            blobs.extend(real_bundles(folder, data)?);
        }
        return Ok(blobs);
    }
    let path = folder.strip_prefix(data)?.to_string_lossy().into_owned();
    let mut files = Vec::new();
    for half in ["manifests", "metadata"] {
        let Ok(entries) = fs::read_dir(folder.join(half)) else { continue };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let name = format!("{path}/{half}/{}", entry.file_name().to_string_lossy());
                files.push(File::new(name, fs::read(entry.path())?));
            }
        }
    }
    let rendered = Bundle::read(&path, &files).and_then(|bundle| bundle.render());
    Ok(rendered.into_iter().map(|rendered| rendered.blob("registry.example.com/bundle:v1")).collect())
}

/// Returns the best time of several runs, and the peak memory of any.
fn figures(program: &Path, words: &[&str], directory: &Path) -> Result<String> {
    let (mut best, mut most) = (Duration::MAX, 0);
    for _ in 0..RUNS {
        let began = Instant::now();
        let child =
            Command::new(program).args(words).arg(directory).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let (passed, peak) = watch(child)?;
        ensure!(passed, "{} {words:?} failed", program.display());
        (best, most) = (best.min(began.elapsed()), most.max(peak));
    }
    Ok(format!("{:.2} s, {most} MB", best.as_secs_f64()))
}
