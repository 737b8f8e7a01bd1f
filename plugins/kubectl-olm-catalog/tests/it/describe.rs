//! `kubectl olm catalog describe`.

use serde_json::Value;

use super::{CATALOG, catalog, run_command};

const GARDEN: &str = "schema: olm.package\nname: rose\ndefaultChannel: stable\n\
    ---\nschema: olm.channel\npackage: rose\nname: fast\nentries: [{name: rose.v2.0.0}]\n\
    ---\nschema: olm.channel\npackage: rose\nname: stable\nentries: [{name: rose.v1.0.0}]\n\
    ---\nschema: olm.deprecations\npackage: rose\nentries: [{reference: {schema: olm.channel, name: fast}, message: too fast}]\n\
    ---\nschema: olm.bundle\npackage: rose\nname: rose.v1.0.0\nimage: example.com/rose:1\nproperties:\n\
    - {type: olm.package, value: {packageName: rose, version: 1.0.0}}\n\
    - type: olm.csv.metadata\n  value:\n    displayName: Rose\n    description: \"# Roses\\n\\nA bed of roses.\\n\"\n    \
    provider: {name: Garden, url: 'https://garden.example.com'}\n    minKubeVersion: 1.30.0\n    maturity: stable\n    \
    installModes: [{type: AllNamespaces, supported: true}, {type: OwnNamespace, supported: false}]\n    \
    crdDescriptions: {owned: [{name: roses.garden.example.com, kind: Rose, version: v1}]}\n    \
    maintainers: [{name: Ada, email: ada@example.com}]\n    links: [{name: Source, url: 'https://example.com/rose'}]\n\
    relatedImages: [{name: a, image: 'example.com/a:1'}, {name: b, image: 'example.com/b:1'}]\n\
    ---\nschema: olm.bundle\npackage: rose\nname: rose.v2.0.0\nimage: example.com/rose:2\nproperties:\n\
    - {type: olm.package, value: {packageName: rose, version: 2.0.0}}\n";

#[test]
fn text() {
    let (code, text, talk) = run_command(catalog(&["describe", "rose", "-"]).write_stdin(GARDEN));
    assert_eq!((code, talk.as_str()), (0, ""));
    insta::assert_snapshot!(text, @"
    Package:           rose
    Provider:          Garden (https://garden.example.com)
    Default channel:   stable

    CHANNEL   HEAD          VERSION   ENTRIES   DEPRECATED
    fast      rose.v2.0.0   2.0.0     1         too fast
    stable    rose.v1.0.0   1.0.0     1

    rose.v1.0.0, the head of channel stable:
    Name:            Rose
    Version:         1.0.0
    Maturity:        stable
    Kubernetes:      >=1.30.0
    Install modes:   AllNamespaces
    Provides:        Rose (roses.garden.example.com/v1)
    Images:          example.com/a:1
                     example.com/b:1
    Links:           Source (https://example.com/rose)
    Maintainers:     Ada (ada@example.com)
    Description:     # Roses

                     A bed of roses.
    ");
}

#[test]
fn package_manifests() {
    let (code, text, _) = run_command(catalog(&["describe", "rose", "-", "-o", "yaml"]).write_stdin(GARDEN));
    assert_eq!(code, 0);
    assert!(text.starts_with("apiVersion: packages.operators.coreos.com/v1\nkind: PackageManifest\n"), "{text}");
    let all = GARDEN.to_owned() + "---\n" + &CATALOG.replace("rose", "tulip");
    let (code, text, _) = run_command(catalog(&["describe", "-", "-o", "json"]).write_stdin(&*all));
    let list: Value = serde_json::from_str(&text).unwrap();
    let names: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!((code, list["kind"].as_str(), names), (0, Some("PackageManifestList"), vec!["rose", "tulip"]));
    let (_, text, _) = run_command(catalog(&["describe", "-", "-o", "name"]).write_stdin(&*all));
    assert_eq!(text, "packagemanifest/rose\npackagemanifest/tulip\n");
    let path = "jsonpath={.status.channels[*].currentCSV}";
    let (_, text, _) = run_command(catalog(&["describe", "rose", "-", "-o", path]).write_stdin(&*all));
    assert_eq!(text, "rose.v2.0.0 rose.v1.0.0");
}

#[test]
fn a_missing_package() {
    let (code, text, talk) = run_command(catalog(&["describe", "lily", "-", "-o", "json"]).write_stdin(GARDEN));
    assert_eq!((code, text.as_str()), (1, ""));
    assert_eq!(talk, "package \"lily\" is not in the catalog; its packages: rose\n");
}
