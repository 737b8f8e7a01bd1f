//! Selection of catalog, channel and version.

use std::sync::Arc;

use crate::catalog::{Builder, BundleMessage, Channel, Package, Snapshot};
use crate::subscription::selection::{Candidate, Request, Unselectable, select};
use crate::version::Range;

fn snapshot(package: &str, default: &str, channels: &[(&str, &[&str])]) -> Arc<Snapshot> {
    let mut builder = Builder::default();
    let channel = |(name, versions): &(&str, &[&str])| Channel {
        name: (*name).to_owned(),
        head: versions.last().map(|version| format!("{package}.v{version}")).unwrap_or_default(),
        ..Channel::default()
    };
    builder.package(Package {
        name: package.to_owned(),
        default_channel: default.to_owned(),
        channels: channels.iter().map(channel).collect(),
        deprecation: None,
    });
    for (channel, versions) in channels {
        for version in *versions {
            builder.bundle(BundleMessage {
                csv_name: format!("{package}.v{version}"),
                package: package.to_owned(),
                channel: (*channel).to_owned(),
                version: (*version).to_owned(),
                ..BundleMessage::default()
            });
        }
    }
    Arc::new(builder.build())
}

fn candidate(namespace: &str, name: &str, priority: i64, snapshot: &Arc<Snapshot>) -> Candidate {
    let catalog = (namespace.to_owned(), name.to_owned());
    Candidate { catalog, snapshot: snapshot.clone(), priority, is_own: namespace == "garden" }
}

const ROSE: Request<'static> = Request { package: "rose", range: None, channel: None, catalog: None };

/// Returns `NAMESPACE/NAME CHANNEL BUNDLE`, or the error with its hint.
fn selected(candidates: &[Candidate], request: Request<'_>) -> String {
    match select(candidates, request) {
        Ok(s) => format!("{}/{} {} {}", s.catalog.0, s.catalog.1, s.channel.name, s.entry.name),
        Err(error) => format!("{error} ({})", error.hint()),
    }
}

#[test]
fn own_catalogs_come_first_then_priority_and_ties_are_errors() {
    let rose = snapshot("rose", "stable", &[("stable", &["1.0.0", "2.0.0"])]);
    let (a, b) = (candidate("olm", "a", 0, &rose), candidate("olm", "b", 0, &rose));
    let (high, own) = (candidate("olm", "c", 5, &rose), candidate("garden", "d", -1, &rose));
    assert_eq!(selected(std::slice::from_ref(&a), ROSE), "olm/a stable rose.v2.0.0");
    assert_eq!(
        selected(&[a.clone(), b.clone()], ROSE),
        "package rose is in several catalogs: olm/a and olm/b (specify one of them with --catalog NAMESPACE/NAME)"
    );
    assert_eq!(selected(&[a.clone(), b.clone(), high.clone()], ROSE), "olm/c stable rose.v2.0.0");
    assert_eq!(selected(&[a.clone(), high, own], ROSE), "garden/d stable rose.v2.0.0");
    let b_only = Request { catalog: Some((Some("olm"), "b")), ..ROSE };
    assert_eq!(selected(&[a.clone(), b], b_only), "olm/b stable rose.v2.0.0");
    let other = Request { catalog: Some((None, "aa")), ..ROSE };
    assert_eq!(selected(&[a], other), "there is no catalog aa; catalogs: olm/a (did you mean a?)");
    assert!(matches!(select(&[], ROSE), Err(Unselectable::NoCatalogs)));
}

#[test]
fn ranges_prefer_the_default_channel_and_ties_of_others_are_errors() {
    let rose = snapshot(
        "rose",
        "stable",
        &[("beta", &["2.1.0", "3.0.0"]), ("edge", &["3.0.0"]), ("stable", &["1.0.0", "2.0.0", "2.1.0"])],
    );
    let all = [candidate("olm", "a", 0, &rose)];
    let within = |range: &str, channel: Option<&'static str>| {
        let range = Range::parse(range).unwrap();
        selected(&all, Request { range: Some(&range), channel, ..ROSE })
    };
    assert_eq!(within("<2.1.0", None), "olm/a stable rose.v2.0.0");
    assert_eq!(within("<=2.1.0", Some("beta")), "olm/a beta rose.v2.1.0");
    assert_eq!(
        within("=3.0.0", None),
        "version 3.0.0 of package rose is in several channels, none of which is the default: beta and edge (specify one of them with --channel)"
    );
    assert_eq!(
        within(">=4.0.0", Some("stable")),
        "package rose has no version >=4.0.0 in channel stable; versions: 2.1.0, 2.0.0 and 1.0.0 (write a range as in catalogs: '>=1.2.0 <2.0.0', or one version)"
    );
    assert_eq!(
        selected(&all, Request { channel: Some("stabel"), ..ROSE }),
        "package rose has no channel stabel; channels: beta, edge and stable (did you mean stable?)"
    );
    assert_eq!(
        selected(&all, Request { package: "roses", ..ROSE }),
        "there is no package roses in olm/a (did you mean rose?)"
    );
}
