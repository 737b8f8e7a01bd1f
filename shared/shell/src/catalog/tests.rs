//! Tests of the commands on small catalogs in temporary folders.

use std::fs;
use std::path::Path;

use super::list;
use super::render::{self, Filter, MigrationLevel};
use super::validate;
use super::*;
use crate::cli::findings::Format;
use crate::cli::flags::{DataFormat, OutputFlags};
use crate::cli::list::ListFlags;
use crate::cli::streams::Buffer;
use crate::cli::{CliError, Outcome, Printer};

fn package(name: &str) -> String {
    format!(
        r#"{{"schema": "olm.package", "name": "{name}", "defaultChannel": "c"}}
{{"schema": "olm.channel", "package": "{name}", "name": "c", "entries": [{{"name": "{name}.v1"}}, {{"name": "{name}.v2", "replaces": "{name}.v1"}}]}}
{{"schema": "olm.bundle", "package": "{name}", "name": "{name}.v1", "image": "example.com/{name}:1",
  "properties": [{{"type": "olm.package", "value": {{"packageName": "{name}", "version": "1.0.0"}}}}]}}
{{"schema": "olm.bundle", "package": "{name}", "name": "{name}.v2", "image": "example.com/{name}:2",
  "relatedImages": [{{"name": "", "image": "example.com/pot"}}],
  "properties": [{{"type": "olm.package", "value": {{"packageName": "{name}", "version": "2.0.0"}}}}]}}
"#
    )
}

/// Returns a folder with two valid packages, one of them in a subfolder, and an invalid one.
fn catalog(folder: &Path) -> Ref {
    fs::create_dir_all(folder.join("more")).unwrap();
    fs::write(folder.join("rose.json"), package("rose")).unwrap();
    fs::write(folder.join("more/tulip.json"), package("tulip")).unwrap();
    fs::write(folder.join("weed.json"), package("weed").replace("\"c\", \"entries\"", "\"d\", \"entries\"")).unwrap();
    Ref::Directory(folder.to_owned())
}

type Ran = (Result<Outcome, CliError>, String, String);

fn ran(run: impl FnOnce(&mut Printer) -> Result<Outcome, CliError>) -> Ran {
    let (out, err) = (Buffer::default(), Buffer::default());
    let answer = run(&mut Printer::to(out.clone(), err.clone()));
    (answer, out.text(), err.text())
}

fn validated(refs: Vec<Ref>, format: Format, strict: bool) -> Ran {
    ran(|printer| {
        validate::run(&validate::Options { refs, images: crate::image::Options::default(), strict, format }, printer)
    })
}

fn rendered(refs: Vec<Ref>, filter: Filter, images: bool) -> Ran {
    let options = render::Options {
        refs,
        format: DataFormat::Json,
        level: MigrationLevel::None,
        filter,
        images,
        pull: crate::image::Options::default(),
    };
    ran(|printer| render::run(&options, printer))
}

fn listed(refs: Vec<Ref>, packages: &[&str], versions: bool, output: &str) -> Ran {
    let packages = packages.iter().map(|p| (*p).to_owned()).collect();
    let flags = ListFlags { output: OutputFlags { output: output.parse().unwrap() }, ..ListFlags::default() };
    let options = list::Options { refs, packages, images: crate::image::Options::default(), versions, list: flags };
    ran(|printer| list::run(&options, printer))
}

#[test]
fn references_are_parsed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let named = |text: &str| text.parse::<Ref>().unwrap();
    assert_eq!(named(path), Ref::Directory(folder.path().to_owned()));
    fs::write(folder.path().join("oci-layout"), "{}").unwrap();
    assert_eq!(named(path), Ref::Layout(folder.path().to_owned()));
    assert_eq!(named("-"), Ref::Stdin);
    assert_eq!(named("./gone.yaml"), Ref::File("./gone.yaml".into()));
    assert_eq!(named("example.com/rose:1"), Ref::Image("example.com/rose:1".into()));
    assert_eq!(named("catalogsource/olm/market"), Ref::CatalogSource(Box::new("olm/market".parse().unwrap())));
    assert!(Ref::is_package_name("rose-1") && !Ref::is_package_name("./rose") && !Ref::is_package_name("-"));
    assert_eq!(named("grpc://localhost:50051"), Ref::Address("localhost:50051".into()));
    let error = rendered(vec![named(path)], Filter::default(), false).0.unwrap_err();
    assert!(error.message.contains("not an OCI layout"), "{error}");
}

#[test]
fn all_findings_and_the_valid_packages() {
    let folder = tempfile::tempdir().unwrap();
    let refs = vec![catalog(folder.path())];
    let (answer, out, err) = validated(refs.clone(), Format::Text, false);
    assert_eq!(answer, Ok(Outcome::Negative));
    let place = folder.path().join("weed.json");
    let finding =
        "error: channel \"c\" of package \"weed\": channel must contain at least one bundle [unknown-default-channel]";
    let hint = "set defaultChannel to one of the existing channels: \"d\"";
    assert_eq!(out, format!("{}:1: {finding}\n  hint: {hint}\n", place.display()));
    assert_eq!(err, "2 valid packages with 4 bundles, 1 invalid package: 1 finding\n");
    let (_, out, _) = validated(refs, Format::Json, false);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&json["passed"], &json["invalidPackages"][0], &json["packages"]),
        (&false.into(), &"weed".into(), &2.into())
    );
}

#[test]
fn strict_fails_as_opm_does() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rose.json"), package("rose").replace("example.com/pot", "oci://example.com/pot"))
        .unwrap();
    let refs = vec![Ref::Directory(folder.path().to_owned())];
    let (answer, out, _) = validated(refs.clone(), Format::Github, false);
    assert_eq!(answer, Ok(Outcome::Done));
    assert!(out.starts_with("::warning file="), "{out}");
    assert_eq!(validated(refs, Format::Text, true).0, Ok(Outcome::Negative));
}

#[test]
fn packages_channels_and_versions_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let refs = vec![catalog(folder.path())];
    let (answer, out, err) = listed(refs.clone(), &[], false, "");
    assert_eq!(answer, Ok(Outcome::Done));
    assert_eq!(
        out,
        "NAME    DEFAULT CHANNEL   VERSION   CHANNELS\nrose    c                 2.0.0     c\ntulip   c                 2.0.0     c\n"
    );
    assert!(err.contains("invalid packages: weed"), "{err}");
    let (_, out, _) = listed(refs.clone(), &["rose"], false, "");
    assert_eq!(out, "PACKAGE   CHANNEL   HEAD      VERSION   ENTRIES\nrose      c         rose.v2   2.0.0     2\n");
    let (_, out, _) = listed(refs.clone(), &["rose"], true, "wide");
    assert!(out.lines().nth(1).unwrap().contains("2.0.0     rose.v2   rose.v1"), "{out}");
    assert!(out.lines().nth(2).unwrap().ends_with("example.com/rose:1"), "{out}");
    let (_, out, _) = listed(refs.clone(), &["rose"], true, "name");
    assert_eq!(out, "bundle/rose.v1\nbundle/rose.v2\n");
    let (_, out, _) = listed(refs.clone(), &[], false, "jsonpath={.items[*].channels[0].entries[0].image}");
    assert_eq!(out, "example.com/rose:2 example.com/tulip:2");
    // A named package is an object, all packages are a list.
    let (_, out, _) = listed(refs.clone(), &["rose"], false, "jsonpath={.kind} {.name} {.channels[0].head}");
    assert_eq!(out, "Package rose rose.v2");
    let (_, out, _) = listed(refs.clone(), &["rose", "tulip"], false, "jsonpath={.kind} {.items[*].name}");
    assert_eq!(out, "PackageList rose tulip");
    let (answer, _, err) = listed(refs.clone(), &["weed"], false, "");
    assert_eq!(answer, Ok(Outcome::Negative));
    assert!(err.contains("run kubectl olm catalog validate"), "{err}");
    let (_, _, err) = listed(refs, &["fern"], false, "");
    assert!(err.ends_with("package \"fern\" is not in the catalog; its packages: rose, tulip\n"), "{err}");
}

#[test]
fn catalogs_without_packages_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let refs = vec![Ref::Directory(folder.path().to_owned())];
    let (answer, _, err) = listed(refs.clone(), &["rose"], false, "");
    assert_eq!(answer, Ok(Outcome::Negative));
    assert!(err.ends_with("package \"rose\" is not in the catalog, which has no packages\n"), "{err}");
    let (_, _, err) = validated(refs, Format::Text, false);
    assert!(err.contains("no package found; templates are rendered with: kubectl olm catalog render"), "{err}");
}

#[test]
fn a_part_is_rendered_as_a_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let refs = vec![catalog(folder.path())];
    let only = |packages: &[&str]| Filter {
        packages: packages.iter().map(|p| (*p).to_owned()).collect(),
        ..Filter::default()
    };
    let (answer, out, _) = rendered(refs.clone(), only(&["rose"]), false);
    assert_eq!(answer, Ok(Outcome::Done));
    assert!(
        out.starts_with(
            "{\n    \"schema\": \"olm.package\",\n    \"name\": \"rose\",\n    \"defaultChannel\": \"c\"\n}\n{\n"
        ),
        "{out}"
    );
    assert!(!out.contains("tulip"));
    let (_, out, _) = rendered(refs.clone(), only(&["tulip"]), true);
    assert_eq!(out, "example.com/pot\nexample.com/tulip:1\nexample.com/tulip:2\n");
    let (answer, out, _) = rendered(refs, only(&["lily"]), false);
    let error = answer.unwrap_err();
    assert!(error.message.contains("no package \"lily\"") && error.hints.join("; ").contains("rose, tulip"));
    assert_eq!(out, "");
}

#[test]
fn an_invalid_file_prints_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.json");
    fs::write(&broken, format!("{}{{\"schema\":\n [}}", package("rose"))).unwrap();
    let (answer, out, _) = rendered(vec![Ref::File(broken.clone())], Filter::default(), false);
    assert_eq!((answer.unwrap_err().location.unwrap(), out.as_str()), (format!("{}:9", broken.display()), ""));
}

/// Returns an uncompressed tar archive of files.
fn tar_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        archive.append(&header, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap()
}

#[test]
fn archives_are_directories() {
    use std::io::Write as _;
    let folder = tempfile::tempdir().unwrap();
    let (rose, tulip) = (package("rose"), package("tulip"));
    let files = [
        ("./a/rose.json", &*rose),
        ("a/tulip.json", &*tulip),
        ("a/.indexignore", "tulip.json\n"),
        ("../out.json", "no"),
    ];
    let plain = tar_of(&files);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&plain).unwrap();
    let zst = zstd::encode_all(&*plain, 0).unwrap();
    for (name, bytes) in [("c.tar", plain), ("c.tgz", gz.finish().unwrap()), ("c.tzst", zst)] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let (_, out, _) = listed(vec![Ref::File(path)], &[], false, "name");
        assert_eq!(out, "package/rose\n");
    }
    assert!(!folder.path().join("out.json").exists() && !std::env::temp_dir().join("out.json").exists());
}

#[test]
fn a_template_without_images_is_rendered() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("t.yaml");
    fs::write(&template, "schema: olm.template.basic\nentries:\n- {schema: olm.package, name: rose}\n").unwrap();
    let (_, out, _) = rendered(vec![Ref::File(template.clone())], Filter::default(), false);
    assert!(out.contains("\"name\": \"rose\""), "{out}");
    fs::write(&template, "schema: olm.semver\nstable: {bundles: [{image: 'oci:/nowhere'}]}\n").unwrap();
    let error = rendered(vec![Ref::File(template)], Filter::default(), false).0.unwrap_err();
    assert!(error.message.contains("render: ") && error.message.contains("nowhere"), "{error}");
}
