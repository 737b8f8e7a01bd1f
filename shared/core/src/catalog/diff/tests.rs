use super::super::Builder;
use super::super::graph::tests_channel as channel;
use super::*;
use crate::catalog::snapshot::{BundleMessage, Channel, Package};

type Row = (&'static str, &'static str, &'static [&'static str], &'static str);

/// A catalog of roses with these channels.
fn roses(channels: &[(&str, &[Row])], image: &str) -> Snapshot {
    let mut builder = Builder::default();
    let head = |rows: &[Row]| rows.first().map_or("", |(name, ..)| name).to_owned();
    builder.package(Package {
        name: "rose".to_owned(),
        default_channel: channels.first().map_or("", |(name, _)| name).to_owned(),
        channels: channels
            .iter()
            .map(|(name, rows)| Channel { name: (*name).to_owned(), head: head(rows), ..Channel::default() })
            .collect(),
        deprecation: None,
    });
    for (name, rows) in channels {
        for entry in channel(name, rows).entries {
            builder.bundle(BundleMessage {
                bundle_path: format!("{image}:{}", entry.version_text),
                csv_name: entry.name,
                package: "rose".to_owned(),
                channel: (*name).to_owned(),
                version: entry.version_text,
                replaces: entry.replaces.unwrap_or_default(),
                skips: entry.skips,
                skip_range: entry.skip_range.unwrap_or_default(),
                ..BundleMessage::default()
            });
        }
    }
    builder.build()
}

const OLD: [Row; 3] = [
    ("rose.v1.2.0", "rose.v1.1.0", &[], "<1.0.0"),
    ("rose.v1.1.0", "rose.v1.0.0", &[], ""),
    ("rose.v1.0.0", "", &[], ""),
];
const FAST: [Row; 1] = [("rose.v1.2.0", "", &[], "<1.2.0")];
/// 1.0.0 and 1.1.0 have no update path.
const NEW: [Row; 2] = [("rose.v2.0.0", "rose.v1.2.0", &[], ""), ("rose.v1.2.0", "", &[], "<1.0.0")];

fn installed(namespace: &str, channel: &str, name: &str) -> Installed {
    Installed {
        subscription: Subscription { namespace: namespace.to_owned(), name: "roses".to_owned() },
        package: "rose".to_owned(),
        channel: channel.to_owned(),
        name: name.to_owned(),
        version: None,
    }
}

#[test]
fn nothing_changes() {
    let old = roses(&[("stable", &OLD)], "example.com/rose");
    let diff = Diff::new(&old, &old.clone(), None);
    assert_eq!(diff, Diff::default());
    assert_eq!(diff.to_string(), "The catalogs are equal.\n");
}

#[test]
fn every_change_is_reported() {
    let old = roses(&[("stable", &OLD), ("fast", &FAST)], "example.com/rose");
    let new = roses(&[("stable", &NEW), ("fast", &FAST)], "example.com/roses");
    let said = "\
~ package rose
  ~ channel stable
    ~ head: rose.v1.2.0 -> rose.v2.0.0
    - rose.v1.0.0
    - rose.v1.1.0
    ~ rose.v1.2.0
      - replaces: rose.v1.1.0
    + rose.v2.0.0
      + replaces: rose.v1.2.0
  - bundle rose.v1.0.0
  - bundle rose.v1.1.0
  ~ bundle rose.v1.2.0
    ~ image: example.com/rose:1.2.0 -> example.com/roses:1.2.0
  + bundle rose.v2.0.0

Stranded, without the update path to the head that they had:
  rose, channel stable: rose.v1.0.0
    because no entry in channel stable replaces or skips it, and no skipRange covers 1.0.0
    alternative: channel fast
  rose, channel stable: rose.v1.1.0
    because no entry in channel stable replaces or skips it, and no skipRange covers 1.1.0
    alternative: channel fast
";
    assert_eq!(Diff::new(&old, &new, None).to_string(), said);
    // In the other direction one version has no update.
    let back = Diff::new(&new, &old, None);
    let stranded: Vec<&str> = back.stranded.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(stranded, ["rose.v2.0.0"]);
}

#[test]
fn packages_and_channels_come_and_go() {
    let old = roses(&[("stable", &OLD), ("fast", &FAST)], "example.com/rose");
    let nothing = Builder::default().build();
    let gone = Diff::new(&old, &nothing, None);
    assert!(gone.to_string().starts_with("- package rose: 2 channels, 3 bundles\n"), "{gone}");
    assert!(
        gone.to_string().contains(
            "  rose, channel stable: rose.v1.2.0, rose.v1.1.0, rose.v1.0.0\n    because package rose was removed\n"
        ),
        "{gone}"
    );
    let came = Diff::new(&nothing, &old, None);
    assert_eq!((came.packages[0].change, &came.stranded[..]), (Change::Added, &[][..]));
    let one = roses(&[("stable", &OLD)], "example.com/rose");
    let diff = Diff::new(&old, &one, None);
    assert_eq!(diff.packages[0].channels[0].change, Change::Removed);
    assert_eq!(diff.packages[0].bundles, []);
    let [stranded] = &diff.stranded[..] else { panic!("{diff}") };
    assert_eq!((&*stranded.name, &*stranded.reason), ("rose.v1.2.0", "channel fast of package rose was removed"));
    assert_eq!(stranded.alternative_channels, ["stable"]);
}

#[test]
fn only_installed_versions_are_compared() {
    let old = roses(&[("stable", &OLD), ("fast", &FAST)], "example.com/rose");
    let new = roses(&[("stable", &NEW), ("fast", &FAST)], "example.com/rose");
    let there = [
        installed("b", "stable", "rose.v1.1.0"),
        installed("a", "stable", "rose.v1.0.0"),
        installed("c", "stable", "rose.v1.2.0"),
        // Without a channel, any channel is accepted.
        installed("d", "", "rose.v1.1.0"),
        // It had no update path before.
        installed("e", "stable", "rose.v9.0.0"),
        Installed { package: "tulip".to_owned(), ..installed("f", "stable", "tulip.v1.0.0") },
    ];
    let diff = Diff::new(&old, &new, Some(&there));
    let of = |one: &Stranded| format!("{} {}", one.subscription.as_ref().unwrap().namespace, one.name);
    assert_eq!(diff.stranded.iter().map(of).collect::<Vec<_>>(), ["a rose.v1.0.0", "b rose.v1.1.0"]);
    assert!(diff.to_string().contains("  rose, channel stable: rose.v1.0.0 of Subscription a/roses\n"), "{diff}");
    let json = serde_json::to_value(&diff.stranded[0]).unwrap();
    assert_eq!(
        (&json["namespace"], &json["subscription"], &json["alternativeChannels"][0]),
        (&"a".into(), &"roses".into(), &"fast".into())
    );
}

#[test]
fn long_properties_are_reported_by_size() {
    use crate::bundle::Property;
    let catalog = |version: &str, description: &str| {
        let mut builder = Builder::default();
        let channels = vec![Channel { name: "c".to_owned(), ..Channel::default() }];
        builder.package(Package { name: "rose".to_owned(), channels, ..Package::default() });
        builder.bundle(BundleMessage {
            csv_name: "rose".to_owned(),
            package: "rose".to_owned(),
            channel: "c".to_owned(),
            bundle_path: "example.com/rose".to_owned(),
            properties: vec![
                Property::package("rose", version),
                Property::new("olm.csv.metadata", description.repeat(100).into()),
            ],
            ..BundleMessage::default()
        });
        builder.build()
    };
    let diff = Diff::new(&catalog("1.0.0", "red"), &catalog("1.0.1", "blue"), None);
    let Field { field, old, new } = &diff.packages[0].bundles[0].fields[0];
    assert_eq!((*field, &*old[0]), ("properties", r#"olm.package {"packageName":"rose","version":"1.0.0"}"#));
    assert!(new[1].starts_with("olm.csv.metadata (402 bytes, "), "{new:?}");
}
