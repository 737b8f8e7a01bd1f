//! Tests that add bundles to small catalogs.

use super::super::{File, Loaded, index_files, load};
use super::*;

/// A catalog with comments and its own formatting.
const ROSE: &str = "# Our roses\nschema: olm.package\nname: rose\ndefaultChannel: stable # for all\n\
    ---\n# The channel for everybody\nschema: olm.channel\npackage: rose\nname: stable\nentries:\n  - name: rose.v1.0.0 # the first\n  \
    - name: rose.v1.1.0\n    replaces: rose.v1.0.0 # as ever\n\
    ---\nschema: olm.bundle\npackage: rose\nname: rose.v1.0.0\nimage: example.com/rose:1.0.0\nproperties:\n\
    - {type: olm.package, value: {packageName: rose, version: 1.0.0}}\n\
    ---\nschema: olm.bundle\npackage: rose\nname: rose.v1.1.0\nimage: example.com/rose:1.1.0\nproperties:\n\
    - {type: olm.package, value: {packageName: rose, version: 1.1.0}}\n# the end\n";

/// The files of a bundle directory; `edges` are lines of its CSV's spec.
fn bundle(version: &str, edges: &str, channels: &str) -> Vec<File> {
    let folder = format!("bundle-{version}");
    let csv = format!(
        "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: rose.v{version}}}\n\
         spec: {{version: {version}, description: Red, {edges} install: {{strategy: deployment, spec: {{deployments: []}}}}}}\n"
    );
    let key = "operators.operatorframework.io.bundle";
    let annotations = format!("annotations:\n  {key}.package.v1: rose\n  {key}.channels.v1: {channels}\n");
    vec![
        File::new(format!("{folder}/manifests/csv.yaml"), csv.into_bytes()),
        File::new(format!("{folder}/metadata/annotations.yaml"), annotations.into_bytes()),
    ]
}

fn asked(mode: Mode) -> Request {
    Request { mode, image: "example.com/rose:new".into(), root: "c".into(), ..Request::default() }
}

/// Returns the changed files of the catalog, which load without findings.
fn added(catalog: &[File], bundles: &[Vec<File>], request: &Request) -> Result<(Vec<File>, Addition), Vec<Finding>> {
    let addition = index_files(catalog).add(&index_files(&bundles.concat()), request)?;
    let mut files = catalog.to_vec();
    for change in &addition.files {
        let at = files.iter().position(|f| f.path == change.path);
        let old = at.map(|at| String::from_utf8(files[at].bytes.to_vec()).unwrap());
        let new = File::new(change.path.clone(), change.apply(old.as_deref()).unwrap().into_bytes());
        match at {
            Some(at) => files[at] = new,
            None => files.push(new),
        }
    }
    let Loaded { findings, .. } = load(&files);
    assert_eq!(findings, []);
    Ok((files, addition))
}

fn text(file: &File) -> &str {
    std::str::from_utf8(&file.bytes).unwrap()
}

fn codes(answer: Result<(Vec<File>, Addition), Vec<Finding>>) -> Vec<&'static str> {
    answer.unwrap_err().iter().map(|f| f.code).collect()
}

#[test]
fn existing_text_is_preserved() {
    let catalog = [File::new("c/rose.yaml", ROSE.as_bytes())];
    let new = bundle("1.2.0", "replaces: rose.v1.1.0, skips: [rose.v1.1.1],", "stable");
    let (files, addition) = added(&catalog, &[new], &asked(Mode::Replaces)).unwrap();
    let entry = "    replaces: rose.v1.0.0 # as ever\n  - name: rose.v1.2.0\n    replaces: rose.v1.1.0\n    skips:\n    - rose.v1.1.1\n";
    let expected = ROSE.replace("    replaces: rose.v1.0.0 # as ever\n", entry);
    let rest = text(&files[0]).strip_prefix(&expected).unwrap();
    assert!(
        rest.starts_with("---\nschema: olm.bundle\nname: rose.v1.2.0\npackage: rose\nimage: example.com/rose:new\n"),
        "{rest}"
    );
    let [added] = &addition.added[..] else { panic!("{addition:?}") };
    assert_eq!((added.file.as_str(), added.channels[0].head), ("c/rose.yaml", true));
    assert!(addition.notes.is_empty(), "{:?}", addition.notes);
}

#[test]
fn several_at_once_in_the_order_of_their_edges() {
    let catalog = [File::new("c/rose.yaml", ROSE.as_bytes())];
    let bundles =
        [bundle("1.3.0", "replaces: rose.v1.2.0,", "stable"), bundle("1.2.0", "replaces: rose.v1.1.0,", "stable,fast")];
    let (_, addition) = added(&catalog, &bundles, &asked(Mode::Replaces)).unwrap();
    let names: Vec<&str> = addition.added.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["rose.v1.2.0", "rose.v1.3.0"]);
    assert_eq!(addition.notes.iter().map(|n| n.code).collect::<Vec<_>>(), ["dangling-replaces"]);
    let to = |at: usize| addition.added[at].channels.iter().map(|c| (c.name.as_str(), c.head)).collect::<Vec<_>>();
    assert_eq!((to(0), to(1)), (vec![("fast", true), ("stable", false)], vec![("stable", true)]));
}

#[test]
fn a_version_between_two_others_changes_the_later_one() {
    let catalog = [File::new("c/rose.yaml", ROSE.as_bytes())];
    let (files, addition) = added(&catalog, &[bundle("1.0.5", "", "stable")], &asked(Mode::Semver)).unwrap();
    let text = text(&files[0]);
    assert!(text.contains("  - name: rose.v1.1.0\n    replaces: rose.v1.0.5 # as ever\n  - name: rose.v1.0.5\n    replaces: rose.v1.0.0\n"), "{text}");
    assert_eq!(addition.notes[0].message, "rose.v1.1.0 now replaces rose.v1.0.5 instead of rose.v1.0.0");
}

#[test]
fn a_package_that_is_new_gets_a_file_in_the_format_of_the_others() {
    let new = || [bundle("1.0.0", "", "stable")];
    let (files, _) = added(&[], &new(), &asked(Mode::Replaces)).unwrap();
    assert_eq!(files[0].path, "c/rose/catalog.yaml");
    let start =
        "---\nschema: olm.package\nname: rose\ndefaultChannel: stable\ndescription: Red\n---\nschema: olm.channel\n";
    assert!(text(&files[0]).starts_with(start), "{}", text(&files[0]));
    let json = r#"{"schema":"olm.package","name":"tulip","defaultChannel":"c"}
{"schema":"olm.channel","package":"tulip","name":"c","entries":[{"name":"t"}]}
{"schema":"olm.bundle","package":"tulip","name":"t","image":"example.com/t","properties":[{"type":"olm.package","value":{"packageName":"tulip","version":"1.0.0"}}]}"#;
    let (files, _) = added(&[File::new("c/tulip.json", json.as_bytes())], &new(), &asked(Mode::Replaces)).unwrap();
    assert_eq!((files[0].path.as_str(), files[1].path.as_str()), ("c/tulip.json", "c/rose/catalog.json"));
    assert!(text(&files[1]).starts_with("{\n    \"schema\": \"olm.package\",\n    \"name\": \"rose\",\n"));
    // Add another bundle to the written files.
    let (files, _) =
        added(&files, &[bundle("1.1.0", "replaces: rose.v1.0.0,", "stable")], &asked(Mode::Replaces)).unwrap();
    assert!(text(&files[1]).contains("            \"replaces\": \"rose.v1.0.0\"\n"), "{}", text(&files[1]));
}

#[test]
fn bundles_with_files_of_their_own_stay_apart() {
    let parts: Vec<&str> = ROSE.split("---\n").collect();
    let names = [
        "c/rose/package.yaml",
        "c/rose/channels/stable.yaml",
        "c/rose/bundles/v1.0.0.yaml",
        "c/rose/bundles/v1.1.0.yaml",
    ];
    let catalog: Vec<File> = names.iter().zip(parts).map(|(name, text)| File::new(*name, text.as_bytes())).collect();
    let new = bundle("1.2.0", "replaces: rose.v1.1.0,", "stable,fast");
    let (files, _) = added(&catalog, &[new], &asked(Mode::Replaces)).unwrap();
    let new: Vec<&str> = files[4..].iter().map(|f| f.path.as_str()).collect();
    assert_eq!(new, ["c/rose/bundles/v1.2.0.yaml", "c/rose/channels/fast.yaml"]);
}

#[test]
fn a_file_that_changed_meanwhile_is_not_written() {
    let catalog = [File::new("c/rose.yaml", ROSE.as_bytes())];
    let new = bundle("1.2.0", "replaces: rose.v1.1.0,", "stable");
    let addition = index_files(&catalog).add(&index_files(&new), &asked(Mode::Replaces)).unwrap();
    for other in [format!("# more\n{ROSE}"), ROSE[..ROSE.len() / 2].to_owned()] {
        let refused = addition.files[0].apply(Some(&other)).unwrap_err();
        assert!(["changed", "cannot-edit"].contains(&refused.code), "{refused:?}");
    }
}

#[test]
fn invalid_additions_are_refused() {
    let catalog = [File::new("c/rose.yaml", ROSE.as_bytes())];
    let refused = |bundles: &[Vec<File>]| codes(added(&catalog, bundles, &asked(Mode::Replaces)));
    assert_eq!(refused(&[bundle("1.1.0", "", "stable")]), ["bundle-exists"]);
    assert_eq!(refused(&[bundle("1.2.0", "", "stable")]), ["two-heads"]);
    assert_eq!(refused(&[bundle("1.2.0", "replaces: rose.v1.1.9,", "stable")]), ["two-heads"]);
    assert_eq!(refused(&[bundle("1.2.0", "replaces: rose.v1.1.0, skips: [rose.v1.2.0],", "stable")]), ["cycle"]);
    assert_eq!(refused(&[bundle("1.2.0", "replaces: rose.v0, skips: [rose.v1.1.0],", "stable")]), ["stranded"]);
    assert_eq!(refused(&[bundle("1.2.0", "", "")]), ["no-channel"]);
    assert_eq!(refused(&[]), ["not-a-bundle"]);
    let other_default = Request { default_channel: "fast".into(), ..asked(Mode::Replaces) };
    let new = || [bundle("1.2.0", "replaces: rose.v1.1.0,", "stable")];
    assert_eq!(codes(added(&catalog, &new(), &other_default)), ["no-default-channel"]);
    assert_eq!(codes(added(&[], &[bundle("1.0.0", "", "a,b")], &asked(Mode::Replaces))), ["no-default-channel"]);
    let broken =
        [File::new("c/rose.yaml", ROSE.replace("defaultChannel: stable", "defaultChannel: none").into_bytes())];
    assert_eq!(codes(added(&broken, &new(), &asked(Mode::Replaces))), ["unknown-default-channel"]);
    assert_eq!(
        index_files(&catalog).add(&index_files(&catalog), &asked(Mode::Replaces)).unwrap_err()[0].code,
        "not-a-bundle"
    );
}
