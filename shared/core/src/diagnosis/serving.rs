//! The stages of what the API server calls: aggregated APIs, webhooks, and their certificates (olm-behaviour/csv.md#serving-objects).

use serde_json::Value;

use super::{StageName, State, Walk, code, deleting};
use crate::api::cluster_service_version::{Csv, Phase};
use crate::api::conditions::{AVAILABLE, Conditions};
use crate::api::kinds::{self, Kind};
use crate::api::labels;
use crate::api::object::{self, ObjectRef};
use crate::csv::{self, Endpoint, WEBHOOK_NAME};
use crate::plan::certificate::AUTHORITY;
use crate::world::{GroupKind, kind};

impl Walk<'_, '_> {
    /// Walks through APIServices, webhooks and certificates of the newest ClusterServiceVersion.
    pub(super) fn serving(&mut self) {
        const STAGES: [StageName; 3] = [StageName::ApiService, StageName::Webhook, StageName::Certificate];
        let Some(csv) = self.newest() else {
            for stage in STAGES {
                self.stage(stage, None, State::Waiting, "it follows the ClusterServiceVersion");
            }
            return;
        };
        let endpoints = csv::endpoints(csv.json);
        for (stage, is_empty) in STAGES.into_iter().zip([
            csv.owned_api_services().is_empty(),
            csv.webhooks().is_empty(),
            endpoints.is_empty(),
        ]) {
            if is_empty {
                self.stage(stage, None, State::Ok, "the operator has none");
            }
        }
        for description in csv.owned_api_services() {
            self.api_service(csv, &endpoints, description);
        }
        for description in csv.webhooks() {
            self.webhook(csv, &endpoints, description);
        }
        for endpoint in &endpoints {
            self.certificate(csv, endpoint);
        }
    }

    /// Adds the stage of an object that does not exist: it is awaited until the ClusterServiceVersion was installed.
    fn missing(
        &mut self,
        csv: Csv<'_>,
        code: &'static super::Code,
        stage: StageName,
        object: Option<ObjectRef>,
        message: String,
    ) {
        if csv.phase() == Phase::Succeeded {
            self.stage(stage, object.clone(), State::Failed, message.clone());
            let object = object.unwrap_or_else(|| ObjectRef::from_object(csv.json));
            self.problem(code, stage, object, message);
        } else {
            self.stage(stage, object, State::Waiting, format!("{message} yet"));
        }
    }

    fn api_service(&mut self, csv: Csv<'_>, endpoints: &[Endpoint], description: &Value) {
        const STAGE: StageName = StageName::ApiService;
        let text = |field| object::text(description, &[field]);
        let name = format!("{}.{}", text("version"), text("group"));
        let target = kinds::API_SERVICE.object("", &name);
        let service = match self.find(&kind::API_SERVICE, "", &name) {
            Ok(Some(service)) => service,
            Ok(None) => {
                let message = format!("APIService {name} does not exist");
                return self.missing(csv, &code::API_SERVICE_UNAVAILABLE, STAGE, Some(target), message);
            }
            Err(why) => return self.unknown(STAGE, Some(target), &why),
        };
        let conditions = Conditions::new(service);
        if !conditions.is_true(AVAILABLE) {
            let message = match conditions.find(AVAILABLE) {
                Some(condition) => format!("{}: {}", condition.reason(), condition.message()),
                None => "it is not available yet".to_owned(),
            };
            let state = if csv.phase() == Phase::Installing { State::Waiting } else { State::Failed };
            self.stage(STAGE, Some(target.clone()), state, message.clone());
            if state == State::Failed {
                self.problem(&code::API_SERVICE_UNAVAILABLE, STAGE, target, message);
            }
            return;
        }
        let bundle = object::text(service, &["spec", "caBundle"]);
        if !self.is_distrusted(csv, endpoints, description, bundle, STAGE, &target) {
            self.stage(STAGE, Some(target), State::Ok, "it is available");
        }
    }

    fn webhook(&mut self, csv: Csv<'_>, endpoints: &[Endpoint], description: &Value) {
        const STAGE: StageName = StageName::Webhook;
        let text = |field| object::text(description, &[field]);
        if text("type") == "ConversionWebhook" {
            for crd in object::list(description, &["conversionCRDs"]).iter().filter_map(Value::as_str) {
                self.conversion(csv, endpoints, description, crd);
            }
            return;
        }
        let (gk, of_kind): (GroupKind, &Kind) = match text("type") {
            "MutatingAdmissionWebhook" => {
                (kind::MUTATING_WEBHOOK_CONFIGURATION, &kinds::MUTATING_WEBHOOK_CONFIGURATION)
            }
            _ => (kind::VALIDATING_WEBHOOK_CONFIGURATION, &kinds::VALIDATING_WEBHOOK_CONFIGURATION),
        };
        let name = text("generateName");
        let mut all = self.world.all(&gk).map(|configuration| configuration.json());
        let found = all.find(|configuration| {
            object::label(configuration, WEBHOOK_NAME) == Some(name) && labels::is_owner(configuration, csv.json)
        });
        let Some(configuration) = found else {
            return match self.scope.known.why_unknown(&gk, "").map(str::to_owned) {
                Some(why) => self.unknown(STAGE, None, &format!("{} of webhook {name}: {why}", of_kind.kind)),
                None => {
                    let message = format!("the {} of webhook {name} does not exist", of_kind.kind);
                    self.missing(csv, &code::WEBHOOK_MISSING, STAGE, None, message);
                }
            };
        };
        let target = ObjectRef::from_object(configuration);
        let client =
            object::list(configuration, &["webhooks"]).first().map(|webhook| object::at(webhook, &["clientConfig"]));
        self.client(csv, endpoints, description, client.unwrap_or(&Value::Null), target);
    }

    fn conversion(&mut self, csv: Csv<'_>, endpoints: &[Endpoint], description: &Value, crd: &str) {
        const STAGE: StageName = StageName::Webhook;
        let target = kinds::CUSTOM_RESOURCE_DEFINITION.object("", crd);
        match self.find(&kind::CUSTOM_RESOURCE_DEFINITION, "", crd) {
            Err(why) => self.unknown(STAGE, Some(target), &why),
            Ok(None) => self.stage(STAGE, Some(target), State::Waiting, "the CustomResourceDefinition does not exist"),
            Ok(Some(definition)) => {
                let conversion = object::at(definition, &["spec", "conversion"]);
                if object::text(conversion, &["strategy"]) == "Webhook" {
                    let client = object::at(conversion, &["webhook", "clientConfig"]);
                    return self.client(csv, endpoints, description, client, target);
                }
                let message = format!("the objects of {crd} are not converted by the webhook");
                self.missing(csv, &code::WEBHOOK_MISSING, STAGE, Some(target), message);
            }
        }
    }

    /// Checks the Service and the authority of a webhook.
    fn client(&mut self, csv: Csv<'_>, endpoints: &[Endpoint], description: &Value, client: &Value, target: ObjectRef) {
        const STAGE: StageName = StageName::Webhook;
        let place = |field| object::text(client, &["service", field]);
        let (namespace, name) = (place("namespace"), place("name"));
        if !name.is_empty() {
            match self.find(&kind::SERVICE, namespace, name) {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let message = format!("Service {namespace}/{name} does not exist");
                    self.stage(STAGE, Some(target.clone()), State::Failed, message.clone());
                    let service = kinds::SERVICE.object(namespace, name);
                    return self.problem(&code::WEBHOOK_SERVICE, STAGE, service, format!("{target}: {message}"));
                }
                Err(why) => return self.unknown(STAGE, Some(target), &format!("Service {namespace}/{name}: {why}")),
            }
        }
        let bundle = object::text(client, &["caBundle"]);
        if !self.is_distrusted(csv, endpoints, description, bundle, STAGE, &target) {
            self.stage(STAGE, Some(target), State::Ok, "it is configured, and its Service exists");
        }
    }

    /// Reports an authority that differs from that of the certificate. Returns whether it does.
    fn is_distrusted(
        &mut self,
        csv: Csv<'_>,
        endpoints: &[Endpoint],
        description: &Value,
        bundle: &str,
        stage: StageName,
        target: &ObjectRef,
    ) -> bool {
        let deployment = object::text(description, &["deploymentName"]);
        let Some(endpoint) = endpoints.iter().find(|endpoint| endpoint.deployment == deployment) else { return false };
        let Some(secret) = self.world.json(&kind::SECRET, csv.namespace(), &endpoint.secret) else { return false };
        let authority = object::text(secret, &["data", AUTHORITY]);
        if authority.is_empty() || bundle == authority {
            return false;
        }
        let message = format!("its caBundle is not the authority in Secret {}", endpoint.secret);
        self.stage(stage, Some(target.clone()), State::Failed, message.clone());
        let secret = kinds::SECRET.object(csv.namespace(), &endpoint.secret);
        self.problem(&code::CA_MISMATCH, stage, secret, format!("{target}: {message}"));
        true
    }

    fn certificate(&mut self, csv: Csv<'_>, endpoint: &Endpoint) {
        const STAGE: StageName = StageName::Certificate;
        let object = kinds::SECRET.object(csv.namespace(), &endpoint.secret);
        let secret = match self.find(&kind::SECRET, csv.namespace(), &endpoint.secret) {
            Ok(Some(secret)) => secret,
            Ok(None) => {
                let message = format!("Secret {} does not exist", endpoint.secret);
                return self.missing(csv, &code::CERTIFICATE_INVALID, STAGE, Some(object), message);
            }
            Err(why) => return self.unknown(STAGE, Some(object), &why),
        };
        if let Some(message) = deleting(secret) {
            return self.stage(STAGE, Some(object), State::Waiting, message);
        }
        let now = self.scope.now;
        let (code, message) = match endpoint.certificate(secret) {
            None => (
                &code::CERTIFICATE_INVALID,
                format!("Secret {} has no valid certificate for Service {}", endpoint.secret, endpoint.service),
            ),
            Some(pair) if now >= pair.not_after => {
                (&code::CERTIFICATE_EXPIRED, format!("it expired at {}", object::time(pair.not_after)))
            }
            Some(pair) if now < pair.not_before => {
                (&code::CERTIFICATE_EXPIRED, format!("it is valid only from {}", object::time(pair.not_before)))
            }
            Some(pair) => {
                let message = format!("it is valid until {}", object::time(pair.not_after));
                return self.stage(STAGE, Some(object), State::Ok, message);
            }
        };
        self.stage(STAGE, Some(object.clone()), State::Failed, message.clone());
        self.problem(code, STAGE, object, message);
    }
}
