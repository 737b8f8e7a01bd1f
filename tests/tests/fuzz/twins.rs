//! The same functions with inputs that are nearly right, made by proptest: what the ordinary toolchain finds of what the fuzzer would.

use olm_shell::registry::proto::{
    Bundle, Channel, Dependency, Deprecation, GroupVersionKind, Package, Property as Said,
};
use olm_tests::fuzz::run;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use prost::Message;

/// Parts with their contents.
fn input(head: &str, parts: &[(String, String)]) -> Vec<u8> {
    let parts: String = parts.iter().map(|(name, content)| format!(">>> {name}\n{content}\n")).collect();
    format!("{head}{parts}").into_bytes()
}

/// A path of few folders and few names, some of which mean something.
fn path(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    vec(select(names), 1..4).prop_map(|parts| parts.join("/"))
}

const IN_LAYERS: &[&str] =
    &["manifests", "metadata", "a", "b", ".wh.a", ".wh.b", ".wh..wh..opq", ".wh.manifests", "..", "."];

/// Entries of layers: files and folders mostly, so that what is kept can be worked out.
fn entry() -> impl Strategy<Value = (String, String)> {
    let path = || {
        (select(&["manifests", "metadata"][..]), path(&IN_LAYERS[2..8]))
            .prop_map(|(root, path)| format!("{root}/{path}"))
    };
    prop_oneof![
        8 => (path(), "[a-c]{0,3}"),
        3 => path().prop_map(|path| (path + "/", String::new())),
        2 => Just(("---".to_owned(), String::new())),
    ]
}

fn any_entry() -> impl Strategy<Value = (String, String)> {
    let link = (path(IN_LAYERS), select(&[" -> ", " => "][..]), path(IN_LAYERS));
    prop_oneof![
        3 => entry(),
        1 => path(IN_LAYERS).prop_map(|path| (path, "x".to_owned())),
        1 => link.prop_map(|(path, arrow, target)| (format!("{path}{arrow}{target}"), String::new())),
        1 => path(IN_LAYERS).prop_map(|path| (format!("/{path} -> /{path}"), String::new())),
    ]
}

const IN_CATALOGS: &[&str] =
    &["a", "b.yaml", "c.json", "manifests", "metadata", ".indexignore", "bundles.txt", "..data", "README.md"];

const BLOBS: &[&str] = &[
    "schema: olm.package\nname: rose\ndefaultChannel: c\n",
    "schema: olm.channel\npackage: rose\nname: c\nentries: [{name: rose.v1, replaces: rose.v0}]\n",
    "schema: olm.bundle\npackage: rose\nname: rose.v1\nimage: a\nproperties: [{type: olm.package, value: {packageName: rose, version: 1.0.0}}]\n",
    "kind: ClusterServiceVersion\napiVersion: operators.coreos.com/v1alpha1\nmetadata: {name: rose.v1}\nspec: {version: 1.0.0}\n",
    "annotations:\n  operators.operatorframework.io.bundle.package.v1: rose\n",
    "a: [",
    "*.yaml\n!b.yaml\n",
    "a\n../bundle\n/\n",
    "",
];

fn pattern() -> impl Strategy<Value = String> {
    let piece = select(
        &["*", "**", "/", "!", "a", "b.yaml", "[a-c]", "[!a", "?", "\\", "#", " ", "..", "manifests", "\u{feff}"][..],
    );
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn api() -> impl Strategy<Value = GroupVersionKind> {
    "[a-c]{0,2}".prop_map(|kind| GroupVersionKind {
        group: "g".to_owned(),
        version: "v1".to_owned(),
        kind,
        plural: String::new(),
    })
}

fn json() -> impl Strategy<Value = String> {
    select(
        &[
            "1",
            "null",
            "\"x\"",
            "{\"packageName\":\"p\",\"version\":\"1.0.0\"}",
            "[1, 2.50, 1e3]",
            "{",
            "",
            "{\"a\":1,\"a\":2}",
        ][..],
    )
    .prop_map(str::to_owned)
}

fn bundle() -> impl Strategy<Value = Bundle> {
    let names = ("[ab]", "[pq]", "[cd]", "(1\\.[0-3]\\.0)?", "(<1\\.0\\.0|x)?", "[ab]?");
    let type_ =
        || select(&["olm.package", "olm.gvk", "olm.bundle.object", "olm.csv.metadata", "olm.constraint", "x"][..]);
    let property = (type_(), json()).prop_map(|(r#type, value)| Said { r#type: r#type.to_owned(), value });
    let dependency = (type_(), json()).prop_map(|(r#type, value)| Dependency { r#type: r#type.to_owned(), value });
    let lists = (vec(property, 0..4), vec(dependency, 0..3), vec(api(), 0..3), vec(api(), 0..3), vec("[ab]?", 0..3));
    let content = ("(i:1)?", select(&["", "{}", "{\"kind\": \"A\"}", "x"][..]), vec(json(), 0..3), any::<bool>());
    (names, lists, content).prop_map(|(names, lists, content)| {
        let (csv_name, package_name, channel_name, version, skip_range, replaces) = names;
        let (properties, dependencies, provided_apis, required_apis, skips) = lists;
        let (bundle_path, csv_json, object, is_old) = content;
        let (csv_json, deprecation) = (csv_json.to_owned(), is_old.then(Deprecation::default));
        Bundle {
            csv_name,
            package_name,
            channel_name,
            csv_json,
            object,
            bundle_path,
            provided_apis,
            required_apis,
            version,
            skip_range,
            dependencies,
            properties,
            replaces,
            skips,
            deprecation,
        }
    })
}

fn package(name: &str, channels: Vec<(String, String)>) -> Package {
    let channel = |(name, csv_name)| Channel { name, csv_name, deprecation: None };
    let channels = channels.into_iter().map(channel).collect();
    Package { name: name.to_owned(), channels, default_channel_name: "c".to_owned(), deprecation: None }
}

/// Field 1, 2 and 3 of the target's input.
fn wire(bundles: &[Bundle], packages: &[Package], names: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let messages = bundles.iter().map(|b| (1_u8, b.encode_to_vec()));
    let messages = messages.chain(packages.iter().map(|p| (2, p.encode_to_vec())));
    for (field, message) in messages.chain(names.iter().map(|name| (3, name.clone().into_bytes()))) {
        bytes.push(field << 3 | 2);
        prost::encode_length_delimiter(message.len(), &mut bytes).unwrap();
        bytes.extend(message);
    }
    bytes
}

const OBJECTS: &[&str] = &[
    "apiVersion: v1\nkind: Namespace\nmetadata: {name: garden}\n",
    "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: §, namespace: garden}\nspec: {targetNamespaces: [§]}\n",
    "apiVersion: operators.coreos.com/v1\nkind: OperatorGroup\nmetadata: {name: b, namespace: §}\nspec: {selector: {matchLabels: {a: §}}}\n",
    "apiVersion: operators.coreos.com/v1alpha1\nkind: InstallPlan\nmetadata: {name: §, namespace: garden}\nspec: {clusterServiceVersionNames: [§]}\nstatus: {phase: §, conditions: [{type: §, message: §}]}\n",
    "apiVersion: operators.coreos.com/v1alpha1\nkind: Subscription\nmetadata: {name: §, namespace: garden}\nstatus: {installedCSV: §, installPlanRef: {name: §}}\n",
    "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: §, namespace: garden, annotations: {olm.targetNamespaces: §}}\nstatus: {phase: Failed, message: §}\n",
    "kind: List\napiVersion: v1\nitems: [§, {kind: §}]\n",
    "kind: APIResourceList\ngroupVersion: §\nresources: [{kind: §, name: §}]\n",
    "§: [",
];

/// Objects with that text in them.
fn objects(text: &str, which: &[&str]) -> Vec<(String, String)> {
    let quoted = serde_json::to_string(text).unwrap();
    let of = |(n, object): (usize, &&str)| (format!("{}/{n}.yaml", n % 2), object.replace('§', &quoted));
    which.iter().enumerate().map(of).collect()
}

fn short() -> impl Strategy<Value = String> {
    prop_oneof![
        "[v ]?[0-9]{1,3}(\\.[0-9]{1,3}){0,3}(-[0-9a-z.]{1,5})?(\\+[0-9a-z.]{1,4})?",
        "([<>=!]{0,2} ?[0-9](\\.[0-9x]){0,2}( |\\|\\|)?){1,4}",
        "[+-]?[0-9]{0,19}(\\.[0-9]{0,10})?([KMGTPE]i|[munkMGTPE]|[eE][+-]?[0-9]{1,3})?",
        "-?([0-9]{0,9}(\\.[0-9]{0,4})?(ns|us|µs|ms|s|m|h|d)?){1,3}",
        "(docker://|oci:|oci-archive:)?([a-zA-Z0-9.]{1,6}(:[0-9]{1,5})?/)?[a-z0-9/_.-]{1,8}(:[a-zA-Z0-9.]{1,5})?(@sha256:[0-9a-f]{0,64})?",
        "[a-z.]{0,5}=?[a-z/.=]{0,5}",
        "(jsonpath=)?\\{(range )?[.a-z\\[\\]*?@()=0-9\"'$,:\\\\]{0,14}\\}(\\{end\\})?",
        "custom-columns=([A-Z]{0,2}:[.a-z\\[\\]*]{0,8},?){0,3}",
        "!?[a-z./]{0,4}(=|==|!=| in | notin )?[(a-z,) ]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layers(entries in vec(entry(), 1..12)) {
        run("layers", &input("", &entries));
    }

    #[test]
    fn layers_with_links(entries in vec(any_entry(), 1..10)) {
        run("layers", &input("", &entries));
    }

    #[test]
    fn catalog_directories(
        patterns in vec(pattern(), 0..4),
        files in vec((path(IN_CATALOGS), select(BLOBS)), 0..8),
        links in vec((path(IN_CATALOGS), path(&["..", "a", "outside.yaml", "bundle", "catalog-2"])), 0..3),
    ) {
        let files = files.into_iter().map(|(name, text)| (name, text.to_owned()));
        let links = links.into_iter().map(|(name, target)| (format!("{name} -> {target}"), String::new()));
        let parts: Vec<_> = files.chain(links).collect();
        run("index_ignore", &input(&(patterns.join("\n") + "\n"), &parts));
    }

    #[test]
    fn registries(
        bundles in vec(bundle(), 0..5),
        channels in vec(("[cd]", "[ab]"), 0..3),
        names in vec("[abcdpq]", 0..4),
    ) {
        run("grpc", &wire(&bundles, &[package("p", channels), package("q", Vec::new())], &names));
    }

    #[test]
    fn gathered_folders(text in "\\PC{0,6}|[\\x00-\\x1f\u{202e}\u{2028}a:{}\"]{1,6}", which in vec(select(OBJECTS), 1..6)) {
        let parts = objects(&text, &which);
        run("must_gather", &input("", &parts));
    }

    #[test]
    fn manifests_of_images(
        digest in select(&["sha256:b", "sha256:c", "sha256:../../x", "sha512:0", ""][..]),
        version in 1..3_u32,
        label in select(&["/configs", "..", "", "/", "configs/../.."][..]),
        kind in select(&["index.configs.v1", "bundle.package.v1", "index.database.v1"][..]),
        nested in any::<bool>(),
    ) {
        let config = serde_json::json!({ "config": { "Labels": { format!("operators.operatorframework.io.{kind}"): label } } });
        let manifest = serde_json::json!({
            "schemaVersion": version, "config": { "digest": "sha256:b", "size": 1 }, "layers": [{ "digest": digest }],
        });
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [{ "digest": "sha256:c" }, { "digest": digest }] });
        let mut parts = vec![("b".to_owned(), config.to_string()), ("c".to_owned(), manifest.to_string())];
        if nested {
            parts.push(("d".to_owned(), index.to_string()));
        }
        run("image_layout", &input("", &parts));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn short_texts(texts in vec(short(), 1..4)) {
        run("versions", texts.join("\n").as_bytes());
    }
}
