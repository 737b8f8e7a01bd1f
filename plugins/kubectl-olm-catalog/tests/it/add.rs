//! `kubectl olm catalog add` on a hand-written catalog.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{catalog, run_command};

const ROSES: &str = "# Our roses
schema: olm.package
name: rose
defaultChannel: stable # for all
---
schema: olm.channel
package: rose
name: stable
entries:
  - name: rose.v1.0.0 # the first
  - name: rose.v1.1.0 # smells better
    replaces: rose.v1.0.0
---
schema: olm.bundle
package: rose
name: rose.v1.0.0
image: example.com/rose:1.0.0
properties: [{type: olm.package, value: {packageName: rose, version: 1.0.0}}]
---
schema: olm.bundle
package: rose
name: rose.v1.1.0
image: example.com/rose:1.1.0
properties: [{type: olm.package, value: {packageName: rose, version: 1.1.0}}]
# the end
";

/// A folder with a catalog, and bundles to add.
struct Garden(TempDir);

impl Garden {
    fn new() -> Self {
        let garden = Self(tempfile::tempdir().unwrap());
        fs::create_dir(garden.path("catalog")).unwrap();
        fs::write(garden.path("catalog/rose.yaml"), ROSES).unwrap();
        garden
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Creates a bundle directory; `edges` are fields of the spec of its CSV.
    fn bundle(&self, package: &str, version: &str, edges: &str) -> String {
        let name = format!("{package}-{version}");
        for folder in ["manifests", "metadata"] {
            fs::create_dir_all(self.path(&name).join(folder)).unwrap();
        }
        let csv = format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: {package}.v{version}}}\n\
             spec:\n  version: {version}\n  install: {{strategy: deployment, spec: {{deployments: []}}}}\n  {edges}\n"
        );
        fs::write(self.path(&name).join("manifests/csv.yaml"), csv).unwrap();
        let key = "operators.operatorframework.io.bundle";
        let annotations = format!("annotations:\n  {key}.package.v1: {package}\n  {key}.channels.v1: stable\n");
        fs::write(self.path(&name).join("metadata/annotations.yaml"), annotations).unwrap();
        name
    }

    fn add(&self, arguments: &[&str]) -> (i32, String, String) {
        run_command(catalog(&["add"]).args(arguments).current_dir(self.0.path()))
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Returns all files of the catalog with their contents.
    fn all(&self) -> Vec<(PathBuf, String)> {
        fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.path() {
                    path if path.is_dir() => walk(&path, found),
                    path => found.push((path.clone(), fs::read_to_string(path).unwrap())),
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.path("catalog"), &mut found);
        found.sort();
        found
    }
}

#[test]
fn comments_are_preserved_and_a_dry_run_prints_the_difference() {
    let garden = Garden::new();
    let bundle = garden.bundle("rose", "1.2.0", "replaces: rose.v1.1.0");
    let arguments = ["catalog", &bundle, "--image", "example.com/rose:1.2.0", "--migrate-level", "all"];
    let (code, diff, talk) = garden.add(&[&arguments[..], &["--dry-run"]].concat());
    assert_eq!((code, talk.as_str(), garden.read("catalog/rose.yaml").as_str()), (0, "", ROSES));
    let start = "--- catalog/rose.yaml\n+++ catalog/rose.yaml\n@@ -10,6 +10,8 @@\n";
    assert!(diff.starts_with(start), "{diff}");
    assert!(diff.contains("\n+  - name: rose.v1.2.0\n+    replaces: rose.v1.1.0\n"), "{diff}");
    assert!(!diff.lines().any(|l| l.starts_with('-') && !l.starts_with("---")), "{diff}");

    let (code, table, talk) = garden.add(&arguments);
    assert_eq!((code, talk.as_str()), (0, "changed: catalog/rose.yaml\n"));
    assert_eq!(
        table,
        "NAME          PACKAGE   CHANNEL   HEAD   REPLACES\nrose.v1.2.0   rose      stable    yes    rose.v1.1.0\n"
    );
    let text = garden.read("catalog/rose.yaml");
    let entry = "    replaces: rose.v1.0.0\n  - name: rose.v1.2.0\n    replaces: rose.v1.1.0\n";
    let kept = ROSES.replace("    replaces: rose.v1.0.0\n", entry);
    assert!(
        text.strip_prefix(&kept).is_some_and(|new| new.starts_with("---\nschema: olm.bundle\nname: rose.v1.2.0\n")),
        "{text}"
    );
    catalog(&["validate", "--strict"]).arg(garden.path("catalog")).assert().success();
}

#[test]
fn invalid_changes_are_refused_and_nothing_is_written() {
    let garden = Garden::new();
    let before = garden.all();
    for (version, edges, words, hint) in [
        ("1.2.0", "", "2 heads, rose.v1.1.0 and rose.v1.2.0: rose.v1.2.0 replaces nothing", "--mode semver"),
        (
            "1.2.1",
            "replaces: rose.v1.2.0",
            "replaces rose.v1.2.0, which is not in the channel",
            "add rose.v1.2.0 first",
        ),
        (
            "1.2.2",
            "{replaces: rose.v0, skips: [rose.v1.1.0]}",
            "rose.v1.0.0 would have no update path to the head rose.v1.2.2",
            "skip them",
        ),
        (
            "1.1.0",
            "replaces: rose.v1.0.0",
            "the catalog already contains it, at catalog/rose.yaml:20",
            "another name and version",
        ),
        ("1.2.3", "replaces: rose.v1.2.3", "it replaces or skips itself", "correct spec.replaces"),
    ] {
        let edges = edges.trim_matches(['{', '}']).replace(", skips", "\n  skips");
        let bundle = garden.bundle("rose", version, &edges);
        let (code, out, talk) = garden.add(&["catalog", &bundle]);
        assert_eq!((code, out.as_str()), (1, ""), "{version}: {talk}");
        assert!(
            talk.contains(words) && talk.contains(hint) && talk.ends_with("nothing was written\n"),
            "{version}: {talk}"
        );
        assert_eq!(garden.all(), before);
    }
    // A refused bundle blocks all.
    let good = garden.bundle("tulip", "1.0.0", "");
    assert_eq!(garden.add(&["catalog", &good, "rose-1.2.0"]).0, 1);
    assert_eq!(garden.all(), before);
}

#[test]
fn versions_are_linked_in_any_order() {
    let garden = Garden::new();
    for version in ["1.3.0", "1.0.5"] {
        garden.bundle("rose", version, "");
    }
    let (code, _, talk) = garden.add(&["catalog", "rose-1.3.0", "rose-1.0.5", "--mode", "semver"]);
    assert_eq!(code, 0, "{talk}");
    assert!(talk.contains("rose.v1.1.0 now replaces rose.v1.0.5 instead of rose.v1.0.0"), "{talk}");
    assert!(
        garden.read("catalog/rose.yaml").contains("  - name: rose.v1.1.0 # smells better\n    replaces: rose.v1.0.5\n")
    );
    let (_, listed, _) = run_command(catalog(&["list", "rose", "--versions"]).arg(garden.path("catalog")));
    let chain: Vec<_> =
        listed.lines().skip(1).map(|l| l.split_whitespace().skip(3).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(chain, ["rose.v1.3.0 rose.v1.1.0", "rose.v1.1.0 rose.v1.0.5", "rose.v1.0.5 rose.v1.0.0", "rose.v1.0.0"]);
}

#[test]
fn a_new_package_is_printed_as_data() {
    let garden = Garden::new();
    let bundle = garden.bundle("tulip", "1.0.0", "");
    let (code, out, talk) = garden.add(&["catalog", &bundle, "-o", "json"]);
    assert_eq!((code, talk.as_str()), (0, "new: catalog/tulip/catalog.yaml\n"));
    let told: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["kind"], &told["files"][0]), (&"CatalogAddition".into(), &"catalog/tulip/catalog.yaml".into()));
    let channel = &told["bundles"][0]["channels"][0];
    assert_eq!((&channel["name"], &channel["head"]), (&"stable".into(), &true.into()));
    assert_eq!(
        garden.add(&["catalog", &garden.bundle("tulip", "1.1.0", "replaces: tulip.v1.0.0"), "-o", "name"]).1,
        "bundle/tulip.v1.1.0\n"
    );
    let (_, names, _) = run_command(catalog(&["list", "-o", "name"]).arg(garden.path("catalog")));
    assert_eq!(names, "package/rose\npackage/tulip\n");
    assert_eq!(garden.read("catalog/rose.yaml"), ROSES);
}

#[test]
fn invalid_arguments_have_hints() {
    let garden = Garden::new();
    let bundle = garden.bundle("rose", "1.2.0", "replaces: rose.v1.1.0");
    let hint_of = |arguments: &[&str]| {
        let (code, out, talk) = garden.add(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{talk}");
        talk
    };
    assert!(hint_of(&["nowhere", &bundle]).contains("mkdir -p nowhere"));
    assert!(hint_of(&[&bundle, "catalog"]).contains("specify the catalog first"));
    assert!(hint_of(&["catalog", &bundle, &bundle, "--image", "x"]).contains("one at a time"));
    assert!(hint_of(&["catalog", &bundle, "--mode", "best"]).contains("semver-skippatch"));
    fs::write(garden.path("catalog/.indexignore"), "tulip\n").unwrap();
    let other = garden.bundle("tulip", "1.0.0", "");
    assert!(hint_of(&["catalog", &other]).contains(".indexignore"));
    fs::write(garden.path("catalog/broken.yaml"), "a: [").unwrap();
    assert!(hint_of(&["catalog", &bundle]).contains("catalog/broken.yaml"));
    assert!(!garden.path("catalog/tulip").exists());
}

#[test]
fn manifests_and_archives_of_images_are_refused_with_what_to_do() {
    let garden = Garden::new();
    fs::create_dir(garden.path("deploy")).unwrap();
    for file in ["deploy/settings.yaml", "settings.yaml"] {
        fs::write(garden.path(file), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n").unwrap();
    }
    let before = garden.all();
    for bundle in ["deploy", "settings.yaml", "docker-archive:rose.tar"] {
        let (code, _, err) = garden.add(&["catalog", bundle]);
        assert_eq!(code, 2, "{bundle}: {err}");
        assert!(err.contains("kubectl olm bundle synthesize"), "{bundle}: {err}");
        assert_eq!(err.contains("kubectl olm bundle unpack"), bundle != "deploy", "{err}");
    }
    assert_eq!(garden.all(), before);
}
