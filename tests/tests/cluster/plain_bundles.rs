//! From plain manifests to a running operator, with the commands that an author types: bundles, their images in a registry, a catalog,
//! a Subscription, an upgrade, and the removal; on a real control plane, with published projects.
//!
//! The catalog has bundles of both formats, and some of them only as references to their images. The pods do not run; a server answers
//! the API server in their place (`control_plane::pod_network`), with OLM's certificates.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use olm_core::api::names::guess_plural;
use olm_core::api::object::{self, Gvk, label, list, text};
use olm_core::bundle::synthesis::{Format, Manifest};
use olm_tests::control_plane::pod_network::{CONVERTED, DENY};
use olm_tests::data::{NO_DATA, data, documents, files};
use olm_tests::plugin::binary;
use olm_tests::registry::{self, Registry, Setup};
use olm_tests::scenario::engine::WATCHED;
use olm_tests::scenario::store::ident;
use olm_tests::sweep::case::{Case, View};
use olm_tests::sweep::catalog::{Bundles, Served};
use olm_tests::sweep::comparison::{compare, is_local, unexpected};
use olm_tests::sweep::live::Live;
use olm_tests::sweep::plain::{Project, VERSIONS};
use olm_tests::{control_plane, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A project, the format of its bundle, and the manifests because of which it is here.
struct Sample {
    name: &'static str,
    format: Format,
    manifests: &'static [&'static str],
}

const SAMPLES: [Sample; 5] = [
    // Several Deployments.
    Sample {
        name: "argo-events",
        format: Format::Plain,
        manifests: &["Deployment/argo-events/controller-manager", "Deployment/argo-events/events-webhook"],
    },
    // Admission webhooks.
    Sample {
        name: "cloudnative-pg",
        format: Format::Plain,
        manifests: &[
            "MutatingWebhookConfiguration/cnpg-mutating-webhook-configuration",
            "ValidatingWebhookConfiguration/cnpg-validating-webhook-configuration",
        ],
    },
    // Permissions for everything.
    Sample {
        name: "flux",
        format: Format::Registry,
        manifests: &[
            "ClusterRoleBinding/cluster-reconciler-flux-system",
            "Deployment/flux-system/helm-controller",
            "Deployment/flux-system/kustomize-controller",
        ],
    },
    // An APIService.
    Sample { name: "prometheus-adapter", format: Format::Plain, manifests: &["APIService/v1beta1.metrics.k8s.io"] },
    // Conversion webhooks.
    Sample {
        name: "tekton-pipelines",
        format: Format::Plain,
        manifests: &[
            "CustomResourceDefinition/tasks.tekton.dev",
            "Deployment/tekton-pipelines/tekton-pipelines-webhook",
        ],
    },
];
/// The packages whose bundles are in the catalog only as images.
const ONLY_IMAGES: [&str; 2] = ["argo-events", "flux"];

/// Runs a command of a plugin, and returns what it prints.
fn run(plugin: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(binary(plugin).unwrap());
    let output = command.args(arguments).env("NO_COLOR", "1").output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{plugin} {arguments:?}: {out}{err}");
    out
}

/// The projects, and what is published of them.
struct Author {
    projects: Vec<Project>,
    folder: TempDir,
    registry: Registry,
    /// The packages and images of [`ONLY_IMAGES`], by the name of the bundle.
    images: Vec<(String, String)>,
}

impl Author {
    fn new(data: &Path) -> Self {
        let project = |sample: &Sample| {
            let project = Project::read(&data.join("plain").join(sample.name), None).unwrap().unwrap();
            assert_eq!(project.format, sample.format, "{}", sample.name);
            let carried: BTreeSet<String> = project.manifests(VERSIONS[0]).iter().map(Manifest::subject).collect();
            let missing: Vec<_> = sample.manifests.iter().filter(|name| !carried.contains(**name)).collect();
            assert!(missing.is_empty(), "{}: {missing:?} of {carried:?}", sample.name);
            project
        };
        let (folder, registry) = (tempfile::tempdir().unwrap(), Registry::start(Setup::default()).unwrap());
        std::fs::create_dir(folder.path().join("catalog")).unwrap();
        Self { projects: SAMPLES.iter().map(project).collect(), folder, registry, images: Vec::new() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Creates and validates the bundle of a version of each project, pushes its image, and adds it to the catalog.
    fn publish(&mut self, version: &str) -> Served {
        let (host, catalog) = (self.registry.host().to_owned(), self.path("catalog"));
        let mut images = Vec::new();
        for project in &self.projects {
            let name = &project.name;
            let [input, bundle] = ["manifests", "bundle"].map(|part| self.path(&format!("{name}-{version}-{part}")));
            project.write_manifests(Path::new(&input), version).unwrap();
            let format = if project.format == Format::Plain { "k8s+v1" } else { "registry+v1" };
            let synthesize = ["synthesize", &input, "--package", name, "--to", format, "--output-dir", &bundle, "-q"];
            run("kubectl-olm-bundle", &synthesize);
            let mut validate = vec!["validate", &bundle];
            if version != VERSIONS[0] {
                validate.extend(["--against", &catalog]);
            }
            run("kubectl-olm-bundle", &validate);
            let reference = format!("{host}/{name}:{version}");
            let pushed = ["build", &bundle, "-t", &reference, "--push", "--plain-http", &host];
            let digest = run("kubectl-olm-bundle", &pushed);
            let image = format!("{host}/{name}@{}", digest.trim());
            run("kubectl-olm-catalog", &["add", &catalog, &image, "--plain-http", &host]);
            images.push((project.csv(version), image));
        }
        self.images.extend(images);
        self.served()
    }

    /// Returns the catalog, without the objects of the bundles that are pulled.
    fn served(&self) -> Served {
        let mut blobs = Vec::new();
        for file in files(Path::new(&self.path("catalog"))) {
            blobs.extend(documents(&file).unwrap());
        }
        let mut pulled = 0;
        for blob in &mut blobs {
            let is_pulled = text(blob, &["schema"]) == "olm.bundle" && ONLY_IMAGES.contains(&text(blob, &["package"]));
            let image = self.images.iter().find(|(bundle, _)| is_pulled && text(blob, &["name"]) == bundle);
            let Some((_, image)) = image else { continue };
            blob["image"] = image.as_str().into();
            let is_content =
                |property: &Value| ["olm.bundle.object", "olm.csv.metadata"].contains(&text(property, &["type"]));
            blob["properties"].as_array_mut().unwrap().retain(|property| !is_content(property));
            pulled += 1;
        }
        assert_eq!(pulled, self.images.len() / SAMPLES.len() * ONLY_IMAGES.len());
        let folder = tempfile::tempdir().unwrap();
        let blobs: Vec<String> = blobs.iter().map(Value::to_string).collect();
        std::fs::write(folder.path().join("catalog.yaml"), blobs.join("\n---\n")).unwrap();
        let served = Bundles::served(folder.path()).unwrap();
        assert_eq!(served.left_out, Vec::<String>::new());
        served
    }
}

/// The cluster with its clients.
struct Story {
    author: Author,
    cases: Vec<Case>,
    live: Live,
    home: TempDir,
}

impl Story {
    fn project(&self, name: &str) -> (&Project, &Case) {
        let number = self.author.projects.iter().position(|project| project.name == name).unwrap();
        (&self.author.projects[number], &self.cases[number])
    }

    fn namespace(&self, name: &str) -> String {
        self.project(name).1.namespace.clone()
    }

    /// Waits until every operator has a version.
    fn wait_for(&mut self, version: &str) {
        let wanted: Vec<(String, String)> =
            self.cases.iter().zip(&self.author.projects).map(|(c, p)| (c.namespace.clone(), p.csv(version))).collect();
        let is_done = |view: &View| {
            wanted.iter().all(|(namespace, name)| {
                let csvs = view.objects_of("ClusterServiceVersion", namespace);
                let csvs: Vec<_> = csvs.filter(|csv| label(csv, "olm.copiedFrom").is_none()).collect();
                let [csv] = csvs[..] else { return false };
                object::name(csv) == name && text(csv, &["status", "phase"]) == "Succeeded"
            })
        };
        self.live.wait_until(is_done).unwrap();
        let because: Vec<String> = self.cases.iter().flat_map(|case| case.because(self.live.view())).collect();
        assert!(is_done(self.live.view()), "{version}: {}\n{}", because.join("\n"), self.live.log());
    }

    /// Waits until Kubernetes has deleted what belonged to the replaced version of every operator.
    fn wait_for_deletions(&mut self, replaced: &str) {
        let names: BTreeSet<String> = self.author.projects.iter().map(|project| project.csv(replaced)).collect();
        let is_of = |object: &Value| {
            let owners = list(object, &["metadata", "ownerReferences"]).iter().map(|owner| text(owner, &["name"]));
            owners.chain(label(object, "olm.owner")).any(|owner| names.contains(owner))
        };
        self.live.wait_until(|view| !view.all().any(is_of)).unwrap();
    }

    /// Returns all objects, also those of kinds that are not watched.
    fn objects(&mut self, version: &str) -> Vec<Value> {
        let manifests = self.author.projects.iter().flat_map(|project| project.manifests(version));
        let kinds: BTreeSet<Gvk> = manifests.map(|manifest| object::gvk(&manifest.object)).collect();
        let is_watched = |gvk: &Gvk| WATCHED.iter().any(|(_, kind, _)| *kind == gvk.kind);
        let others: Vec<(Gvk, String)> = kinds
            .into_iter()
            .filter(|gvk| !is_watched(gvk))
            .map(|gvk| {
                let plural = guess_plural(&gvk.kind);
                (gvk, plural)
            })
            .collect();
        self.live.objects(&others).unwrap()
    }

    /// Compares what runs with the manifests of a version.
    fn compare(&mut self, version: &str) {
        let running = self.objects(version);
        let mut compared = Vec::new();
        let mut differences = Vec::new();
        for (project, case) in self.author.projects.iter().zip(&self.cases) {
            let comparison = compare(project, version, &case.namespace, &running).unwrap();
            differences.extend(comparison.differences.iter().map(|what| format!("{}: {what}", project.name)));
            compared.push(comparison);
        }
        differences.extend(unexpected(&running, self.live.before(), &compared));
        assert_eq!(differences, Vec::<String>::new(), "{version}");
    }

    /// Runs kubectl. Returns whether it succeeds, and what it prints.
    fn kubectl(&mut self, arguments: &[&str], input: Option<&Value>) -> (bool, String) {
        let home = self.home.path();
        let output = self.live.command(|kubeconfig| {
            let mut command = Command::new(control_plane::tool("kubectl")?);
            command.args(arguments).env("KUBECONFIG", kubeconfig).env("HOME", home);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut kubectl = command.spawn()?;
            let mut stdin = kubectl.stdin.take().unwrap();
            stdin.write_all(input.map(Value::to_string).unwrap_or_default().as_bytes())?;
            drop(stdin);
            Ok(kubectl.wait_with_output()?)
        });
        let output = output.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    fn read(&mut self, arguments: &[&str]) -> Value {
        let (succeeds, printed) = self.kubectl(arguments, None);
        assert!(succeeds, "{arguments:?}: {printed}\n{}", self.live.log());
        serde_json::from_str(&printed).unwrap()
    }

    /// The API of the operator is served by its pods.
    fn check_api(&mut self) {
        let service = self.live.view().get("APIService/v1beta1.metrics.k8s.io").unwrap();
        let available = list(service, &["status", "conditions"]).iter().find(|c| c["type"] == "Available").unwrap();
        assert_eq!(available["status"], "True", "{service}");
        let listed = self.read(&["get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"]);
        assert_eq!(text(&listed, &["kind"]), "NodeMetricsList");
    }

    /// Both kinds of webhooks are called, with the paths of the manifests.
    fn check_admission(&mut self, name: &str) {
        let namespace = self.namespace("cloudnative-pg");
        let host = format!("cnpg-controller-manager-service.{namespace}.svc");
        let backup = |denied: &str| {
            json!({ "apiVersion": "postgresql.cnpg.io/v1", "kind": "Backup", "spec": { "cluster": { "name": "none" } },
                "metadata": { "name": name, "namespace": namespace, "annotations": { DENY: format!("{host}{denied}") } } })
        };
        for (webhook, path) in [
            ("mbackup.cnpg.io", "/mutate-postgresql-cnpg-io-v1-backup"),
            ("vbackup.cnpg.io", "/validate-postgresql-cnpg-io-v1-backup"),
        ] {
            let (succeeds, printed) = self.kubectl(&["create", "-f", "-"], Some(&backup(path)));
            let words = format!("admission webhook \"{webhook}\" denied the request: denied by {host}{path}");
            assert!(!succeeds && printed.contains(&words), "{printed}\n{}", self.live.log());
        }
        let (succeeds, printed) = self.kubectl(&["create", "-f", "-"], Some(&backup("/other")));
        assert!(succeeds, "{printed}");
    }

    /// A custom resource is stored and read in both versions by way of the operator.
    fn check_conversion(&mut self, name: &str) {
        let namespace = self.namespace("tekton-pipelines");
        let host = format!("tekton-pipelines-webhook-service.{namespace}.svc/");
        let task = json!({ "apiVersion": "tekton.dev/v1alpha1", "kind": "Task", "spec": { "steps": [] },
            "metadata": { "name": name, "namespace": namespace } });
        let (succeeds, printed) = self.kubectl(&["create", "-f", "-"], Some(&task));
        assert!(succeeds, "{printed}\n{}", self.live.log());
        for (version, other) in [("v1beta1", "v1alpha1"), ("v1alpha1", "v1beta1")] {
            let resource = format!("tasks.{version}.tekton.dev");
            let read = self.read(&["get", &resource, name, "-n", &namespace, "-o", "json"]);
            assert_eq!(text(&read, &["apiVersion"]), format!("tekton.dev/{version}"));
            let note = format!("{host} tekton.dev/{other} -> tekton.dev/{version}");
            assert_eq!(object::annotation(&read, CONVERTED), Some(note.as_str()));
        }
        let definition = self.live.view().get("CustomResourceDefinition/tasks.tekton.dev").unwrap();
        let conversion = &definition["spec"]["conversion"];
        assert_eq!(conversion["strategy"], "Webhook");
        let config = &conversion["webhook"]["clientConfig"];
        assert_eq!(text(config, &["service", "namespace"]), namespace);
        assert!(!text(config, &["caBundle"]).is_empty(), "{config}");
    }

    /// Runs `kubectl olm operator`.
    fn operator(&mut self, arguments: &[&str]) -> String {
        let printed = self.live.command(|kubeconfig| {
            let cluster = ["--kubeconfig", kubeconfig.to_str().unwrap()];
            Ok(run("kubectl-olm-operator", &[arguments, &cluster].concat()))
        });
        printed.unwrap()
    }

    /// Removes the operators with everything that they created. Returns what is left.
    fn uninstall(&mut self) -> Vec<String> {
        for case in self.cases.clone() {
            let flags = ["--delete-operands", "--delete-crds", "--yes", "--timeout", "5m", "-o", "json"];
            let printed = self.operator(&[&["uninstall", &case.package, "-n", &case.namespace], &flags[..]].concat());
            let removed: Value = serde_json::from_str(&printed).unwrap();
            assert_eq!([&removed["retainedPermissions"], &removed["left"]], [&json!([]); 2], "{removed}");
        }
        let before = self.live.before().clone();
        let left = |view: &View| -> Vec<String> {
            let is_left = |object: &&Value| {
                let (kind, name) = (object::kind(object), object::name(object));
                !before.contains(&ident(object))
                    // The user created these, and Kubernetes or OLM create others for them.
                    && !matches!(kind, "Namespace" | "OperatorGroup" | "Event" | "Pod")
                    && !matches!((kind, name), ("ServiceAccount", "default") | ("ConfigMap", "kube-root-ca.crt"))
                    && !name.starts_with("olm.og.")
                    && !is_local(object)
            };
            view.all().filter(is_left).map(ident).collect()
        };
        self.live.wait_until(|view| left(view).is_empty()).unwrap();
        left(self.live.view())
    }
}

#[test]
fn manifests_become_operators_that_are_upgraded_and_removed() {
    let Some(data) = data() else { skip!("{NO_DATA}") };
    if control_plane::skipped() || registry::skipped() {
        return;
    }
    let mut author = Author::new(&data);
    let served = author.publish(VERSIONS[0]);
    let flags = ["--plain-http", author.registry.host()].map(str::to_owned);
    let live = Live::start_with_pod_network(served, &flags).unwrap();
    let cases: Vec<Case> = author.projects.iter().map(|project| project.case("stable")).collect();
    let mut story = Story { author, cases, live, home: tempfile::tempdir().unwrap() };

    story.live.begin(&story.cases).unwrap();
    story.wait_for(VERSIONS[0]);
    story.compare(VERSIONS[0]);
    story.check_api();
    story.check_admission("before");
    story.check_conversion("before");

    let served = story.author.publish(VERSIONS[1]);
    story.live.serve(served).unwrap();
    story.wait_for(VERSIONS[1]);
    story.wait_for_deletions(VERSIONS[0]);
    story.compare(VERSIONS[1]);
    story.check_api();
    story.check_admission("after");
    story.check_conversion("after");
    for case in &story.cases {
        let plans = story.live.view().objects_of("InstallPlan", &case.namespace).count();
        assert_eq!(plans, 2, "{}: one for each version", case.package);
    }
    let listed: Value = serde_json::from_str(&story.operator(&["list", "-A", "-o", "json"])).unwrap();
    let states: Vec<[&str; 3]> = list(&listed, &["items"])
        .iter()
        .map(|item| [["package"].as_slice(), &["installed", "version"], &["health"]].map(|path| text(item, path)))
        .collect();
    let expected: Vec<[&str; 3]> = SAMPLES.iter().map(|sample| [sample.name, VERSIONS[1], "Healthy"]).collect();
    assert_eq!(states, expected);

    assert_eq!(story.uninstall(), [""; 0]);
}
