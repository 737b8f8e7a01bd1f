//! Bundles that exist only as images.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::bundle::{BundleImage, Unpacked, Unpacking};
use crate::plan::Question;
use crate::settings::CatalogPods;
use crate::unpack::PLAIN_DISABLED;

const IMAGE: &str = "registry.example.com/rose-bundle:1.0.0";

/// Returns a message for a bundle whose objects are only in the image, and these objects.
fn in_image(mut message: BundleMessage, image: &str) -> (BundleMessage, BundleContent) {
    let content = message.content.take().unwrap().read().unwrap();
    image.clone_into(&mut message.bundle_path);
    (message, content)
}

fn rose() -> (BundleMessage, BundleContent) {
    in_image(bundle("rose", "1.0.0", "", ""), IMAGE)
}

/// A cluster with a Subscription to a bundle in an image.
fn subscribed(unpacked: Unpacked) -> Simulation {
    subscribed_with(unpacked, Settings::default())
}

fn subscribed_with(unpacked: Unpacked, settings: Settings) -> Simulation {
    let mut simulation = cluster_with(catalog(vec![rose().0]), settings);
    simulation.give_bundle(IMAGE, unpacked);
    simulation.apply(subscription("rose", "Automatic", "")).unwrap();
    simulation
}

fn later() -> Unpacked {
    Unpacked::Later("registry.example.com failed with HTTP status 503".to_owned())
}

fn refused() -> Unpacked {
    Unpacked::Refused("registry.example.com has no such image".to_owned())
}

fn pass(simulation: &mut Simulation, minutes: i64) {
    simulation.settle(SignedDuration::from_mins(minutes));
}

/// `reason: message` of a condition of the only Subscription.
fn said(simulation: &Simulation, kind: &str) -> String {
    let subscription = of_kind(simulation, "Subscription")[0];
    let found = object::list(subscription, &["status", "conditions"]).iter().find(|c| c["type"] == kind);
    found.map_or_else(String::new, |c| format!("{}: {}", object::text(c, &["reason"]), object::text(c, &["message"])))
}

fn reasons(simulation: &Simulation) -> Vec<String> {
    simulation.planner().reasons().flat_map(|(_, reasons)| reasons).map(ToString::to_string).collect()
}

#[test]
fn a_bundle_in_an_image_is_installed_like_one_in_a_catalog() {
    let mut inline = cluster(catalog(vec![bundle("rose", "1.0.0", "", "")]));
    inline.apply(subscription("rose", "Automatic", "")).unwrap();
    rest(&mut inline);
    let mut simulation = subscribed(Unpacked::Content(rose().1));
    rest(&mut simulation);
    assert_eq!(story(&simulation), "rose.v1.0.0 Succeeded; Complete: rose.v1.0.0; rose AtLatestKnown rose.v1.0.0");
    assert_eq!(story(&simulation), story(&inline));
    let plan = |simulation: &Simulation| of_kind(simulation, "InstallPlan")[0]["status"].clone();
    let (mut ours, theirs) = (plan(&simulation), plan(&inline));
    let lookups = object::map_mut(&mut ours, &[]).remove("bundleLookups").unwrap();
    assert_eq!(ours["plan"], theirs["plan"]);
    assert_eq!(
        lookups,
        json!([{
            "path": IMAGE, "identifier": "rose.v1.0.0", "replaces": "",
            "catalogSourceRef": { "namespace": "olm", "name": "main" },
            "properties": "{\"properties\":[{\"type\":\"olm.gvk\",\"value\":{\"group\":\"garden.example.com\",\"kind\":\"Rose\",\
                           \"version\":\"v1\"}},{\"type\":\"olm.package\",\"value\":{\"packageName\":\"rose\",\"version\":\"1.0.0\"}}]}",
        }])
    );
    // Installed bundles do not need their image.
    let world = simulation.planner().world();
    assert!(Reader::new(world).bundles_of("garden").is_empty());
}

#[test]
fn an_image_and_a_catalog_may_serve_one_install_plan() {
    let pots = "registry.example.com/pot-bundle:1";
    let (pot, content) = in_image(bundle("pot", "1.0.0", "", ""), pots);
    let mut simulation = cluster(catalog(vec![bundle("rose", "1.0.0", "", "Pot"), pot]));
    simulation.apply(subscription("rose", "Automatic", "")).unwrap();
    simulation.give_bundle(pots, later());
    pass(&mut simulation, 1);
    assert_eq!(story(&simulation), "rose   BundleUnpacking", "nothing is installed partially");
    simulation.give_bundle(pots, Unpacked::Content(content));
    rest(&mut simulation);
    assert!(story(&simulation).starts_with("pot.v1.0.0 Succeeded; rose.v1.0.0 Succeeded; Complete: "));
}

#[test]
fn a_simulation_waits_for_a_missing_image() {
    let mut simulation = cluster(catalog(vec![rose().0]));
    simulation.apply(subscription("rose", "Automatic", "")).unwrap();
    rest(&mut simulation);
    assert_eq!(story(&simulation), "rose   BundleUnpacking");
    assert_eq!(said(&simulation, "BundleUnpacking"), "UnpackingInProgress: ");
    let message =
        format!("bundle rose.v1.0.0: the content of image {IMAGE} was not provided; --simulate pulls no images");
    assert_eq!(reasons(&simulation)[0], message);
}

#[test]
fn permanent_errors_fail_at_once_and_are_retried_later() {
    let mut simulation = subscribed(refused());
    pass(&mut simulation, 4);
    assert_eq!(story(&simulation), "rose   BundleUnpackFailed");
    let failure = format!(
        "BundleUnpackFailed: Bundle unpacking failed - UnpackFailed: image {IMAGE}: registry.example.com has no such image"
    );
    assert_eq!(said(&simulation, "BundleUnpackFailed"), failure);
    assert_eq!(reasons(&simulation), ["bundle rose.v1.0.0 cannot be unpacked: registry.example.com has no such image"]);
    // Reported once, although it is retried, also by restarted controllers.
    simulation.restart();
    pass(&mut simulation, 20);
    let events =
        |s: &Simulation| s.api().list("", "Event", None).filter(|e| e["reason"] == "BundleUnpackFailed").count();
    assert_eq!((said(&simulation, "BundleUnpackFailed"), events(&simulation)), (failure, 1));
    assert_eq!(simulation.replan(), []);
    simulation.give_bundle(IMAGE, Unpacked::Content(rose().1));
    pass(&mut simulation, 6);
    assert_eq!(story(&simulation), "rose.v1.0.0 Succeeded; Complete: rose.v1.0.0; rose AtLatestKnown rose.v1.0.0");
}

#[test]
fn transient_errors_are_retried_until_the_deadline() {
    let mut simulation = subscribed(later());
    pass(&mut simulation, 9);
    assert_eq!(
        said(&simulation, "BundleUnpacking"),
        format!(
            "UnpackingInProgress: Bundle image pull failed. {IMAGE}: registry.example.com failed with HTTP status 503"
        )
    );
    let attempts = |s: &Simulation| {
        let image = Reader::new(s.planner().world()).bundles_of("garden")[0].clone();
        Reader::new(s.planner().world()).bundle(&image).unwrap().attempts
    };
    assert_eq!(simulation.replan(), []);
    // 1 + 2 + 4 + … + 64 seconds, then every 64: at most a dozen requests in nine minutes.
    assert_eq!(attempts(&simulation), 14);
    pass(&mut simulation, 2);
    let failure = format!(
        "BundleUnpackFailed: Bundle unpacking failed - DeadlineExceeded: image {IMAGE}: it was not pulled within 10m: \
         registry.example.com failed with HTTP status 503"
    );
    assert_eq!(story(&simulation), "rose   BundleUnpackFailed");
    assert_eq!(said(&simulation, "BundleUnpackFailed"), failure);
    // Neither a new series of attempts nor a new process reverts the failure.
    pass(&mut simulation, 7);
    assert!(attempts(&simulation) < 12, "{}", attempts(&simulation));
    assert_eq!(said(&simulation, "BundleUnpackFailed"), failure);
    simulation.restart();
    pass(&mut simulation, 1);
    assert_eq!(
        (said(&simulation, "BundleUnpackFailed"), said(&simulation, "BundleUnpacking")),
        (failure, String::new())
    );
    simulation.give_bundle(IMAGE, Unpacked::Content(rose().1));
    rest(&mut simulation);
    assert_eq!(story(&simulation), "rose.v1.0.0 Succeeded; Complete: rose.v1.0.0; rose AtLatestKnown rose.v1.0.0");
}

/// A World with a Subscription to the bundle, these annotations of the OperatorGroup, and the fact of its image.
fn waiting(annotations: &Value, fact: Option<Unpacking>) -> World {
    let mut group = group("garden");
    group["metadata"]["annotations"] = annotations.clone();
    let snapshot = catalog(vec![rose().0]);
    let objects = vec![group, subscription("rose", "Automatic", "")];
    let mut world = world(objects, Some((ConnectionState::Ready, Some(snapshot))));
    if let Some(fact) = fact {
        world.learn(FactKey::Bundle(image()), Some(Fact::Bundle(fact)));
    }
    world
}

fn image() -> BundleImage {
    let [namespace, catalog_namespace, catalog] = ["garden", "olm", "main"].map(str::to_owned);
    BundleImage { namespace, catalog_namespace, catalog, image: IMAGE.to_owned() }
}

fn seconds_ago(seconds: i64) -> Timestamp {
    start() - SignedDuration::from_secs(seconds)
}

fn unpacking(since: i64, ended: Option<(i64, Unpacked)>) -> Unpacking {
    let ended = ended.map(|(ago, unpacked)| (seconds_ago(ago), unpacked));
    Unpacking { secrets: Vec::new(), since: seconds_ago(since), attempts: 1, running: false, ended }
}

/// Returns the attempt that begins now, if any, when to plan again in seconds, and the Subscription's message.
fn judged(annotations: &Value, fact: Option<Unpacking>) -> (Option<Unpacking>, Option<i64>, String) {
    let plan = plan_of(&waiting(annotations, fact));
    let begun = plan.actions.iter().find_map(|a| match a {
        Action::Ask(Question::Unpack { image: asked, begun }) => {
            assert_eq!(*asked, image());
            Some(begun.clone())
        }
        _ => None,
    });
    let status = plan.actions.iter().find_map(|a| match a {
        Action::UpdateStatus(o) => object::list(o, &["status", "conditions"])
            .iter()
            .find(|c| object::text(c, &["type"]).starts_with("Bundle"))
            .map(|c| format!("{} {}", object::text(c, &["type"]), object::text(c, &["message"]))),
        _ => None,
    });
    let again = plan.again.map(|at| at.duration_since(start()).as_secs());
    (begun, again, status.unwrap_or_default())
}

#[test]
fn annotations_set_timeout_and_retry_interval() {
    let none = json!({});
    let begun = Unpacking { running: true, ..unpacking(0, None) };
    assert_eq!(judged(&none, None), (Some(begun.clone()), None, "BundleUnpacking ".to_owned()));
    let running = |since| Some(Unpacking { running: true, ..unpacking(since, None) });
    let timeout = |text: &str| json!({ "operatorframework.io/bundle-unpack-timeout": text });
    for (annotations, since, again, kind) in [
        (none.clone(), 10, Some(590), "BundleUnpacking "),
        (timeout("1m"), 10, Some(50), "BundleUnpacking "),
        (timeout("1m"), 60, None, "BundleUnpackFailed "),
        (timeout("0"), 6000, None, "BundleUnpacking "),
        (timeout("-5m"), 10, Some(590), "BundleUnpacking "),
        (timeout("soon"), 10, Some(590), "BundleUnpacking "),
    ] {
        let (asked, looks, said) = judged(&annotations, running(since));
        assert_eq!((asked, looks), (None, again), "{annotations} {since}");
        assert!(said.starts_with(kind), "{annotations} {since}: {said}");
    }
    let reasons = plan_of(&waiting(&timeout("soon"), running(10))).reasons;
    assert!(reasons.iter().any(|r| r.to_string().contains("invalid duration \"soon\"")), "{reasons:?}");
    // The age of a failure is that of its last attempt.
    let failed = |ago| Some(unpacking(ago, Some((ago, refused()))));
    let retry = json!({ "operatorframework.io/bundle-unpack-min-retry-interval": "30s" });
    assert_eq!(judged(&none, failed(100)).1, Some(200));
    assert_eq!(judged(&retry, failed(10)).1, Some(20));
    let (asked, _, said) = judged(&retry, failed(30));
    let ended = Some((seconds_ago(30), refused()));
    assert_eq!(asked, Some(Unpacking { ended, ..begun.clone() }));
    assert!(said.starts_with("BundleUnpackFailed "), "{said}");
    // The next attempt of a series increments the count.
    let (asked, _, _) = judged(&none, Some(unpacking(20, Some((5, later())))));
    let ended = Some((seconds_ago(5), later()));
    assert_eq!(asked, Some(Unpacking { since: seconds_ago(20), attempts: 2, ended, ..begun }));
}

#[test]
fn changed_pull_secrets_are_tried_at_once() {
    let mut world = waiting(&json!({}), Some(unpacking(10, Some((10, refused())))));
    world.apply(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "main", "namespace": "olm", "uid": "u-main" },
        "spec": { "sourceType": "grpc", "address": ADDRESS, "secrets": ["pull"] },
    }));
    let asked = plan_of(&world).actions.into_iter().find_map(|a| match a {
        Action::Ask(Question::Unpack { begun, .. }) => Some(begun.secrets),
        _ => None,
    });
    assert_eq!(asked, Some(vec!["pull".to_owned()]));
}

#[test]
fn an_image_must_contain_the_bundle_of_the_catalog() {
    let other = in_image(bundle("rose", "2.0.0", "", ""), IMAGE).1;
    let bad = BundleContent { csv_json: "{}".into(), ..BundleContent::default() };
    for (content, words) in [
        (other, "it holds rose.v2.0.0, but its catalog states rose.v1.0.0"),
        (bad, "failed to turn bundle into steps: bundle CSV  missing APIVersion"),
    ] {
        let mut simulation = subscribed(Unpacked::Content(content));
        pass(&mut simulation, 12);
        assert_eq!(
            said(&simulation, "BundleUnpackFailed"),
            format!("ErrorPreventedUnpacking: Bundle unpacking failed - image {IMAGE}: {words}")
        );
        assert_eq!(simulation.replan(), []);
        simulation.give_bundle(IMAGE, Unpacked::Content(rose().1));
        pass(&mut simulation, 6);
        assert!(story(&simulation).starts_with("rose.v1.0.0 Succeeded"), "{}", story(&simulation));
    }
}

#[test]
fn a_plain_bundle_needs_the_feature() {
    let plain = BundleContent { is_plain: true, ..rose().1 };
    let mut simulation = subscribed(Unpacked::Content(plain.clone()));
    pass(&mut simulation, 12);
    assert!(story(&simulation).starts_with("rose.v1.0.0 Succeeded"), "{}", story(&simulation));
    let settings = Settings { plain_bundles: false, ..Settings::default() };
    let mut simulation = subscribed_with(Unpacked::Content(plain), settings);
    pass(&mut simulation, 12);
    assert_eq!(
        said(&simulation, "BundleUnpackFailed"),
        format!("ErrorPreventedUnpacking: Bundle unpacking failed - image {IMAGE}: {PLAIN_DISABLED}")
    );
}

/// Adds a ConfigMap that makes a bundle so large that etcd would reject an InstallPlan with it.
fn large(content: &BundleContent) -> BundleContent {
    let text = "x".repeat(1_000_000);
    let large =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "large" }, "data": { "x": text } });
    let objects = content.objects.iter().cloned().chain([large.to_string().into()]).collect();
    BundleContent { objects, ..content.clone() }
}

#[test]
fn large_manifests_are_referenced_by_the_install_plan() {
    let (rose, content) = in_image(bundle("rose", "1.0.0", "", "Pot"), IMAGE);
    let pots = "registry.example.com/pot-bundle:1";
    let (pot, small) = in_image(bundle("pot", "1.0.0", "", ""), pots);
    let mut simulation = cluster(catalog(vec![rose, pot]));
    simulation.give_bundle(IMAGE, Unpacked::Content(large(&content)));
    simulation.give_bundle(pots, Unpacked::Content(small));
    simulation.apply(subscription("rose", "Manual", "")).unwrap();
    rest(&mut simulation);
    let plan = of_kind(&simulation, "InstallPlan")[0];
    assert!(plan.to_string().len() < 100_000, "{plan}");
    let steps = object::list(plan, &["status", "plan"]);
    assert_eq!(object::list(plan, &["status", "bundleLookups"]).len(), 2);
    assert!(steps.iter().any(|s| s["resource"]["name"] == "large"));
    approve(&mut simulation);
    let deadline = simulation.now() + SignedDuration::from_mins(10);
    let mut killed = Vec::new();
    while simulation.execute_partly(1) || simulation.advance(deadline) != Progress::Quiet {
        killed.push(simulation.clone());
    }
    let undisturbed = story(&simulation);
    assert!(undisturbed.starts_with("pot.v1.0.0 Succeeded; rose.v1.0.0 Succeeded; Complete: "), "{undisturbed}");
    let maps = simulation.api().list("", "ConfigMap", Some("garden")).filter(|m| object::name(m) == "large").count();
    assert_eq!(maps, 1);
    assert!(Reader::new(simulation.planner().world()).bundles_of("garden").is_empty());
    for mut simulation in killed.into_iter().step_by(5) {
        simulation.restart();
        rest(&mut simulation);
        assert_eq!(story(&simulation), undisturbed, "killed after {} actions", simulation.actions());
    }
}

#[test]
fn the_content_of_a_tag_is_installed_only_if_approved() {
    let explained = large(&rose().1);
    let mut moved = explained.clone();
    moved.objects = moved.objects.iter().map(|o| o.replace("xxx", "yyy").into()).collect();
    let mut simulation = cluster(catalog(vec![rose().0]));
    simulation.apply(subscription("rose", "Manual", "")).unwrap();
    simulation.give_bundle(IMAGE, Unpacked::Content(explained.clone()));
    rest(&mut simulation);
    let plan = object::ObjectRef::from_object(of_kind(&simulation, "InstallPlan")[0]);
    let approved = json!({ "rose.v1.0.0": explained.digest() }).to_string();
    let annotated = json!({ "metadata": { "annotations": { "kubectl-olm/approved-content": approved } } });
    simulation.patch(&plan, crate::sim::Patch::Merge(annotated), None).unwrap();
    simulation.give_bundle(IMAGE, Unpacked::Content(moved));
    approve(&mut simulation);
    pass(&mut simulation, 5);
    assert!(story(&simulation).starts_with("Installing: rose.v1.0.0"), "{}", story(&simulation));
    let messages = reasons(&simulation).join("; ");
    assert!(messages.contains(&format!("the approved digest is {}", explained.digest())), "{messages}");
    assert_eq!(simulation.replan(), []);
    // The same content in another order is equal.
    let objects: Vec<_> = explained.objects.iter().rev().cloned().collect();
    simulation.give_bundle(IMAGE, Unpacked::Content(BundleContent { objects: objects.into(), ..explained }));
    simulation.restart();
    rest(&mut simulation);
    assert!(story(&simulation).starts_with("rose.v1.0.0 Succeeded"), "{}", story(&simulation));
}

#[test]
fn an_install_plan_of_olm_is_taken_over() {
    let mut simulation = cluster(catalog(vec![rose().0]));
    simulation.apply(subscription("rose", "Manual", "")).unwrap();
    simulation.give_bundle(IMAGE, Unpacked::Content(large(&rose().1)));
    rest(&mut simulation);
    // As OLM leaves it: with a deleted ConfigMap, and a registry that does not respond yet.
    simulation.give_bundle(IMAGE, later());
    approve(&mut simulation);
    pass(&mut simulation, 2);
    let story_of = |phase: &str| format!("{phase}: rose.v1.0.0; rose UpgradePending  InstallPlanPending");
    assert_eq!(story(&simulation), story_of("Installing"));
    assert!(reasons(&simulation)[0].contains("waits for its image"), "{:?}", reasons(&simulation));
    simulation.give_bundle(IMAGE, Unpacked::Content(rose().1));
    pass(&mut simulation, 2);
    let needs = "needs ConfigMap large in the image of rose.v1.0.0";
    assert!(reasons(&simulation)[0].contains(needs), "{:?}", reasons(&simulation));
    simulation.give_bundle(IMAGE, Unpacked::Content(large(&rose().1)));
    simulation.restart();
    rest(&mut simulation);
    assert!(story(&simulation).starts_with("rose.v1.0.0 Succeeded; Complete: "), "{}", story(&simulation));
}

#[test]
fn unneeded_images_are_released() {
    let mut simulation = subscribed(later());
    pass(&mut simulation, 1);
    let known = |s: &Simulation| Reader::new(s.planner().world()).bundles_of("garden").len();
    assert_eq!(known(&simulation), 1);
    simulation.delete(&target("Subscription", "rose")).unwrap();
    rest(&mut simulation);
    assert_eq!(known(&simulation), 0);
}

/// The process is killed after every action; a new one reaches the same state as an undisturbed one.
#[test]
fn a_crash_anywhere_while_unpacking_changes_nothing_in_the_end() {
    let (rose, content) = rose();
    let mut simulation = cluster(catalog(vec![rose, bundle("rose", "2.0.0", "rose.v1.0.0", "")]));
    simulation.give_bundle(IMAGE, Unpacked::Content(content));
    simulation.apply(subscription("rose", "Automatic", "rose.v1.0.0")).unwrap();
    let deadline = simulation.now() + SignedDuration::from_mins(10);
    let mut killed = Vec::new();
    while simulation.execute_partly(1) || simulation.advance(deadline) != Progress::Quiet {
        killed.push(simulation.clone());
    }
    let undisturbed = story(&simulation);
    assert!(undisturbed.contains("rose AtLatestKnown rose.v2.0.0"), "{undisturbed}");
    for mut simulation in killed {
        simulation.restart();
        rest(&mut simulation);
        assert_eq!(story(&simulation), undisturbed, "killed after {} actions", simulation.actions());
    }
}

/// A cluster in which Jobs unpack, with the Subscription, and the name of the Job and ConfigMap.
fn with_jobs() -> (Simulation, String) {
    let settings = Settings { catalog_pods: Some(CatalogPods::default()), ..Settings::default() };
    let mut simulation = cluster_with(catalog(vec![rose().0]), settings);
    simulation.apply(subscription("rose", "Automatic", "")).unwrap();
    simulation.settle(SignedDuration::from_secs(10));
    let name = object::name(in_olm(&simulation, "batch", "Job")[0]).to_owned();
    (simulation, name)
}

fn in_olm<'s>(simulation: &'s Simulation, group: &str, kind: &str) -> Vec<&'s Value> {
    simulation.api().list(group, kind, Some("olm")).collect()
}

/// Returns the ConfigMap of that name once its Job has written the bundle.
fn delivered(simulation: &Simulation, name: &str) -> Value {
    let mut delivered =
        in_olm(simulation, "", "ConfigMap").into_iter().find(|o| object::name(o) == name).unwrap().clone();
    object::map_mut(&mut delivered, &["metadata"]).remove("resourceVersion");
    delivered["metadata"]["annotations"] = json!({ "olm.contentEncoding": "gzip+base64" });
    let zip = |text: &str| {
        let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        zipped.write_all(text.as_bytes()).unwrap();
        STANDARD.encode(STANDARD.encode(zipped.finish().unwrap()))
    };
    let content = rose().1;
    let files = content.objects.iter().enumerate().map(|(n, text)| (format!("{n}.yaml"), Value::from(zip(text))));
    let properties = ("properties.yaml".to_owned(), Value::from(zip("properties: []\n")));
    delivered["binaryData"] = files.chain([properties]).collect::<serde_json::Map<_, _>>().into();
    delivered
}

#[test]
fn a_bundle_unpacked_by_a_job_is_installed() {
    let (mut simulation, name) = with_jobs();
    assert_eq!(story(&simulation), "rose   BundleUnpacking");
    let rbac = "rbac.authorization.k8s.io";
    for (group, kind) in [("", "ConfigMap"), (rbac, "Role"), (rbac, "RoleBinding"), ("", "ServiceAccount")] {
        assert!(in_olm(&simulation, group, kind).iter().any(|o| object::name(o) == name), "{kind}");
    }
    let delivered = delivered(&simulation, &name);
    let mut broken = delivered.clone();
    broken["binaryData"]["0.yaml"] = "bm90IGd6aXA=".into();
    simulation.apply(broken).unwrap();
    simulation.settle(SignedDuration::from_secs(10));
    let said = said(&simulation, "BundleUnpackFailed");
    assert!(said.contains(&format!("0.yaml of ConfigMap {name}: not base64")), "{said}");
    simulation.apply(delivered).unwrap();
    rest(&mut simulation);
    assert_eq!(story(&simulation), "rose.v1.0.0 Succeeded; Complete: rose.v1.0.0; rose AtLatestKnown rose.v1.0.0");
    // Other programs read the location of the manifests.
    let steps = of_kind(&simulation, "InstallPlan")[0]["status"]["plan"].as_array().unwrap().clone();
    assert!(steps.len() > 1);
    for step in steps {
        let manifest: Value = serde_json::from_str(object::text(&step, &["resource", "manifest"])).unwrap();
        let keys: Vec<&str> = manifest.as_object().unwrap().keys().map(String::as_str).collect();
        let mut olms =
            ["kind", "name", "namespace", "catalogSourceName", "catalogSourceNamespace", "replaces", "properties"];
        olms.sort_unstable();
        assert_eq!(keys, olms);
        assert_eq!(
            (&manifest["kind"], &manifest["name"], &manifest["namespace"], &manifest["catalogSourceName"]),
            (&"ConfigMap".into(), &name.as_str().into(), &"olm".into(), &"main".into())
        );
    }
}

#[test]
fn a_bundle_unpacked_by_a_job_is_installed_after_the_job_is_deleted() {
    let (mut simulation, name) = with_jobs();
    let mut manual = of_kind(&simulation, "Subscription")[0].clone();
    manual["spec"]["installPlanApproval"] = "Manual".into();
    simulation.apply(manual).unwrap();
    simulation.apply(delivered(&simulation, &name)).unwrap();
    simulation.settle(SignedDuration::from_secs(10));
    assert!(story(&simulation).contains("RequiresApproval"), "{}", story(&simulation));
    // The Job is deleted five minutes after its end.
    let job = object::ObjectRef::from_object(in_olm(&simulation, "batch", "Job")[0]);
    simulation.delete(&job).unwrap();
    let mut plan = of_kind(&simulation, "InstallPlan")[0].clone();
    plan["spec"]["approved"] = true.into();
    simulation.apply(plan).unwrap();
    rest(&mut simulation);
    assert!(story(&simulation).starts_with("rose.v1.0.0 Succeeded; Complete: rose.v1.0.0"), "{}", story(&simulation));
    assert_eq!(in_olm(&simulation, "batch", "Job").len(), 0, "no Job is needed");
}

#[test]
fn a_failed_job_is_reported_and_retried_as_the_group_specifies() {
    let (mut simulation, name) = with_jobs();
    let mut group = of_kind(&simulation, "OperatorGroup")[0].clone();
    group["metadata"]["annotations"] = json!({ "operatorframework.io/bundle-unpack-min-retry-interval": "1m" });
    simulation.apply(group).unwrap();
    let failed = json!({ "status": { "conditions": [{
        "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit",
        "lastTransitionTime": object::time(simulation.now()),
    }] } });
    let job = object::ObjectRef::from_object(in_olm(&simulation, "batch", "Job")[0]);
    simulation.patch(&job, Patch::Merge(failed), Some("status")).unwrap();
    simulation.settle(SignedDuration::from_secs(10));
    let why = "Bundle unpacking failed - BackoffLimitExceeded: Job has reached the specified backoff limit. Auto-retry in ~5 min";
    assert!(said(&simulation, "BundleUnpackFailed").contains(why), "{}", said(&simulation, "BundleUnpackFailed"));
    simulation.settle(SignedDuration::from_secs(70));
    let jobs: Vec<&str> = in_olm(&simulation, "batch", "Job").into_iter().map(object::name).collect();
    assert!(jobs.len() == 2 && jobs.iter().all(|job| job.starts_with(&name[..58])), "{jobs:?}");
}
