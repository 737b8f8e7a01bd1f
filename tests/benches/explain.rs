//! Time to explain a large InstallPlan, on a cluster that was already read.

use std::time::Instant;

use anyhow::{Context, Result};
use jiff::Timestamp;
use olm_core::api::object;
use olm_core::explain::{Cluster, Explainer, Subject};
use olm_core::settings::Settings;
use olm_shell::cli::Printer;
use olm_tests::bench::Times;
use olm_tests::data::{self, documents};
use serde_json::{Value, json};

const RUNS: usize = 10;

pub(crate) fn measure() -> Result<()> {
    let mut printer = Printer::stdio();
    let data = data::data().context(data::NO_DATA)?;
    let mut objects = documents(&data.join("objects/insights-operator/installplan.yaml"))?;
    let plan = objects.first_mut().context("no plan")?;
    let (namespace, name) = (object::namespace(plan).to_owned(), object::name(plan).to_owned());
    let size = plan.to_string().len();
    reopen(plan)?;
    objects.push(json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "global", "namespace": namespace }, "spec": {},
    }));
    let subject = Subject::Plan { namespace, name };
    let mut times = Vec::new();
    let mut told = String::new();
    for _ in 0..=RUNS {
        let cluster = Cluster { objects: objects.clone(), now: Timestamp::now(), ..Cluster::default() };
        let began = Instant::now();
        let explanation = Explainer::new(&Settings::default(), cluster).explain(&subject)?;
        times.push(began.elapsed());
        let verdict = &explanation.verdict;
        told = format!("{} objects, {:?}", explanation.objects.len(), verdict.result);
    }
    printer.line(format_args!(
        "an InstallPlan of {} kB explained ({told}): {}",
        size / 1000,
        Times::all(times.split_off(1))
    ))?;
    Ok(())
}

/// Resets the plan to wait for approval, with its kinds in the API versions that are served today.
fn reopen(plan: &mut Value) -> Result<()> {
    plan["spec"]["approved"] = false.into();
    plan["spec"]["approval"] = "Manual".into();
    plan["status"]["phase"] = "RequiresApproval".into();
    for step in plan["status"]["plan"].as_array_mut().into_iter().flatten() {
        step["status"] = "Unknown".into();
        let resource = &mut step["resource"];
        if resource["version"] == "v1beta1" {
            resource["version"] = "v1".into();
            let mut manifest: Value = serde_json::from_str(object::text(resource, &["manifest"]))?;
            if resource["kind"] == "CustomResourceDefinition" {
                renew(&mut manifest);
            }
            resource["manifest"] = manifest.to_string().into();
        }
    }
    Ok(())
}

/// Converts the definition to v1.
fn renew(crd: &mut Value) {
    let spec = object::map_mut(crd, &["spec"]);
    spec.remove("validation");
    let subresources = spec.remove("subresources").unwrap_or(Value::Null);
    let version = spec.remove("version").unwrap_or_else(|| "v1".into());
    let one = json!([{ "name": version, "served": true, "storage": true }]);
    let versions = spec.entry("versions").or_insert(one);
    for version in versions.as_array_mut().into_iter().flatten() {
        version["schema"] =
            json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
        if !subresources.is_null() {
            version["subresources"] = subresources.clone();
        }
    }
    for gone in ["additionalPrinterColumns", "preserveUnknownFields"] {
        spec.remove(gone);
    }
}
