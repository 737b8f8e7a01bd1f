//! `kubectl olm operator outdated` on files.

use std::path::Path;

use super::outcome;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// An operator at version 1.0.0, whose catalog has 1.1.0.
fn installed(folder: &Path) {
    let text = r"
apiVersion: v1
kind: List
items:
- apiVersion: operators.coreos.com/v1
  kind: OperatorGroup
  metadata: {name: all, namespace: shop}
  spec: {}
- apiVersion: operators.coreos.com/v1alpha1
  kind: Subscription
  metadata: {name: tea, namespace: shop}
  spec: {name: samovar, channel: stable, source: market, sourceNamespace: olm, installPlanApproval: Manual}
  status: {installedCSV: samovar.v2.2.0, currentCSV: samovar.v2.2.0, state: AtLatestKnown}
- apiVersion: operators.coreos.com/v1alpha1
  kind: ClusterServiceVersion
  metadata: {name: samovar.v2.2.0, namespace: shop}
  spec:
    displayName: Samovar
    version: 2.2.0
    installModes: [{type: AllNamespaces, supported: true}]
    install: {strategy: deployment, spec: {deployments: []}}
  status: {phase: Succeeded, reason: InstallSucceeded}
";
    std::fs::write(folder.join("cluster.yaml"), text).unwrap();
    let catalog = folder.join("market");
    std::fs::create_dir(&catalog).unwrap();
    let bundle = |version: &str| {
        let csv = format!(
            r#"{{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {{"name": "samovar.v{version}"}}, "spec": {{"displayName": "Samovar", "version": "{version}",
            "installModes": [{{"type": "AllNamespaces", "supported": true}}],
            "install": {{"strategy": "deployment", "spec": {{"deployments": []}}}}}}}}"#
        );
        format!(
            r#"{{"schema": "olm.bundle", "package": "samovar", "name": "samovar.v{version}", "image": "example.com/samovar:{version}",
            "properties": [{{"type": "olm.package", "value": {{"packageName": "samovar", "version": "{version}"}}}},
            {{"type": "olm.bundle.object", "value": {{"data": "{}"}}}}]}}"#,
            base64(&csv)
        )
    };
    let channel = r#"{"schema": "olm.package", "name": "samovar", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "samovar", "name": "stable", "entries": [
  {"name": "samovar.v2.2.0"}, {"name": "samovar.v2.3.0", "replaces": "samovar.v2.2.0"},
  {"name": "samovar.v2.4.0", "replaces": "samovar.v2.3.0"}]}"#;
    let bundles: Vec<String> = ["2.2.0", "2.3.0", "2.4.0"].into_iter().map(bundle).collect();
    std::fs::write(catalog.join("catalog.json"), format!("{channel}\n{}", bundles.join("\n"))).unwrap();
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            encoded.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    encoded
}

#[test]
fn what_can_be_upgraded_is_listed_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    installed(folder.path());
    let outdated = |more: &[&str]| {
        let start = ["outdated", "--from", "cluster.yaml", "--catalog", "market=market", "-n", "shop"];
        outcome(folder.path(), &[&start, more].concat())
    };
    let (code, out, talk) = outdated(&[]);
    assert_eq!(code, 0, "{talk}");
    insta::assert_snapshot!("the_table_of_outdated", out);
    let (code, out, talk) = outdated(&["-o", "json", "--if", "size(csvs) > 5"]);
    assert_eq!(code, 0, "{talk}");
    insta::assert_snapshot!("the_document_of_outdated", out);
}

#[test]
fn nothing_is_outdated_without_operators() {
    let (code, out, talk) = outcome(repository(), &["outdated", "--from", "tests/quickstart/cluster.yaml", "-A"]);
    assert_eq!((code, out.as_str()), (1, ""), "{talk}");
    assert!(talk.contains("old-town/tea-house: "), "{talk}");
    assert!(talk.contains("\nhint: pass its content as a directory: --catalog "), "{talk}");
}
