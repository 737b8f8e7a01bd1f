//! The table of all rules.

use crate::finding::{Finding, Severity};

/// A validator: a group of rules that is selected by name, as in `operator-sdk bundle validate --select-optional name=NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Validator {
    /// What operator-sdk always checks: the format, the ClusterServiceVersion, the CustomResourceDefinitions, and the bundle as a whole.
    Default,
    /// What OLM, its console or the API server reject when the bundle is published or installed.
    Olm,
    /// Recommendations for operators.
    GoodPractices,
    /// What OperatorHub.io requires, in the deprecated combination.
    OperatorHub,
    /// What OperatorHub.io requires.
    OperatorHubV2,
    /// The levels of capabilities.
    Capabilities,
    /// The categories of operators.
    Categories,
    /// API versions that Kubernetes has removed.
    AlphaDeprecatedApis,
    /// What the catalog of community operators requires of bundles with removed API versions (deprecated).
    Community,
    /// Objects that endanger the stability of a cluster.
    Objects,
    /// Permissions that exceed what operators usually need.
    Permissions,
    /// The platforms of the images, which are read from their registries.
    MultipleArchitectures,
    /// Compatibility with the previous version.
    Previous,
}

impl Validator {
    /// All validators, in the order of their checks.
    pub const ALL: [Self; 13] = [
        Self::Default,
        Self::Olm,
        Self::GoodPractices,
        Self::OperatorHub,
        Self::OperatorHubV2,
        Self::Capabilities,
        Self::Categories,
        Self::AlphaDeprecatedApis,
        Self::Community,
        Self::Objects,
        Self::Permissions,
        Self::MultipleArchitectures,
        Self::Previous,
    ];

    /// The validators of the suite `operatorframework`.
    pub const OPERATOR_FRAMEWORK: [Self; 5] =
        [Self::OperatorHubV2, Self::Capabilities, Self::Categories, Self::AlphaDeprecatedApis, Self::GoodPractices];

    /// Returns the name by which it is selected; the optional ones of operator-sdk have the same name there.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Olm => "olm",
            Self::GoodPractices => "good-practices",
            Self::OperatorHub => "operatorhub",
            Self::OperatorHubV2 => "operatorhubv2",
            Self::Capabilities => "capabilities",
            Self::Categories => "categories",
            Self::AlphaDeprecatedApis => "alpha-deprecated-apis",
            Self::Community => "community",
            Self::Objects => "objects",
            Self::Permissions => "permissions",
            Self::MultipleArchitectures => "multiarch",
            Self::Previous => "previous",
        }
    }

    /// Returns what it checks, in one line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Default => {
                "the format, the ClusterServiceVersion, CustomResourceDefinitions, and the bundle as a whole"
            }
            Self::Olm => "what OLM or the API server reject when the bundle is published or installed",
            Self::GoodPractices => "recommendations for operators",
            Self::OperatorHub => "what OperatorHub.io requires, with capabilities and categories (deprecated)",
            Self::OperatorHubV2 => "what OperatorHub.io requires",
            Self::Capabilities => "the annotation with the level of capabilities",
            Self::Categories => "the annotation with the categories",
            Self::AlphaDeprecatedApis => "API versions that Kubernetes has removed",
            Self::Community => "the OpenShift versions of bundles with removed API versions (deprecated)",
            Self::Objects => "objects that endanger the stability of a cluster",
            Self::Permissions => "permissions that exceed what operators usually need",
            Self::MultipleArchitectures => "the platforms of the images, which are read from their registries",
            Self::Previous => "compatibility with the version of --against",
        }
    }
}

/// A rule.
#[derive(Debug, PartialEq)]
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// Stable name.
    pub name: &'static str,
    /// Severity of its findings.
    pub severity: Severity,
    /// The validators that check it.
    pub validators: &'static [Validator],
    /// What it finds, in one line.
    pub summary: &'static str,
    /// How to fix it; empty if the summary states it.
    pub hint: &'static str,
}

impl Rule {
    /// Returns a finding of the rule, without a place.
    pub(super) fn finding(&self, message: impl Into<String>) -> Finding {
        Finding { severity: self.severity, ..Finding::new(self.code, message).hint(self.hint) }
    }
}

/// Returns the rule with that code or name, ignoring case.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.code.eq_ignore_ascii_case(name) || rule.name.eq_ignore_ascii_case(name))
}

macro_rules! rules {
    ($($id:ident: $code:literal $name:literal $severity:ident [$($validator:ident)+] $summary:literal, $hint:literal;)*) => {
        $(pub(super) static $id: Rule = Rule {
            code: $code,
            name: $name,
            severity: Severity::$severity,
            validators: &[$(Validator::$validator),+],
            summary: $summary,
            hint: $hint,
        };)*
        /// All rules, by code.
        pub static RULES: &[&Rule] = &[$(&$id),*];
    };
}

rules! {
    UNREADABLE_FILE: "BV001" "unreadable-file" Error [Default] "A file is not YAML or JSON in UTF-8", "";
    NO_MANIFESTS: "BV002" "no-manifests" Error [Default] "There is no directory manifests/",
        "a bundle is a directory with manifests/ and metadata/";
    NO_METADATA: "BV003" "no-metadata" Error [Default] "There is no directory metadata/",
        "a bundle is a directory with manifests/ and metadata/";
    NO_ANNOTATIONS: "BV004" "no-annotations" Error [Default] "No file of metadata/ has annotations",
        "add metadata/annotations.yaml with the package and its channels";
    MISSING_ANNOTATION: "BV005" "missing-annotation" Error [Default] "A required annotation of the bundle is missing",
        "add it to metadata/annotations.yaml and to the labels of the image";
    WRONG_ANNOTATION: "BV006" "wrong-annotation" Error [Default Olm] "An annotation of the bundle has an invalid value", "";
    INVALID_DEPENDENCY: "BV007" "invalid-dependency" Error [Default] "A dependency of metadata/dependencies.yaml is invalid", "";
    NO_CSV: "BV008" "no-csv" Error [Default] "The bundle has no ClusterServiceVersion",
        "add a ClusterServiceVersion to manifests/, or metadata/olm.yaml for a bundle of plain manifests";
    SEVERAL_CSVS: "BV009" "several-csvs" Error [Default] "The bundle has several ClusterServiceVersions",
        "use one bundle for each version";
    UNEXPECTED_FILE: "BV010" "unexpected-file" Error [Default] "manifests/ contains a directory, a hidden file or a link that leaves the bundle",
        "only regular files directly in manifests/ are installed";
    LATER_DOCUMENTS: "BV011" "later-documents" Warning [Default] "A file contains several documents, of which OLM reads only the first",
        "write each object to a file of its own";
    NO_OBJECT: "BV012" "no-object" Error [Default] "A file of manifests/ is not a Kubernetes object", "";
    UNSUPPORTED_KIND: "BV013" "unsupported-kind" Error [Default] "A bundle cannot contain objects of a kind",
        "let the operator create the object, or remove it";
    UNPARSABLE_OBJECT: "BV015" "unparsable-object" Error [Default] "A field of the ClusterServiceVersion or of a CustomResourceDefinition has the wrong type", "";
    REPEATED_KEY: "BV016" "repeated-key" Warning [Default] "A map has a key twice; the last one counts", "remove one of them";
    UNREADABLE_BUNDLE: "BV017" "unreadable-bundle" Error [Default] "The bundle cannot be read, or its image cannot be pulled", "";

    INVALID_NAME: "BV101" "invalid-name" Error [Default] "The name of a ClusterServiceVersion is not a valid name and label", "";
    NO_CSV_ANNOTATIONS: "BV102" "no-csv-annotations" Warning [Default] "The ClusterServiceVersion has no annotations", "";
    NO_EXAMPLES: "BV103" "no-examples" Warning [Default] "The ClusterServiceVersion has no examples",
        "add the annotation alm-examples, a JSON list of custom resources";
    TWO_EXAMPLES: "BV104" "two-examples" Warning [Default] "Two annotations contain examples", "remove olm.examples";
    INVALID_EXAMPLES: "BV105" "invalid-examples" Error [Default] "The annotation with examples is not a JSON list of objects", "";
    UNPARSABLE_CRD_NAME: "BV106" "unparsable-crd-name" Error [Default] "The name of an owned CustomResourceDefinition is not PLURAL.GROUP", "";
    EXAMPLE_OF_OTHERS: "BV107" "example-of-others" Error [Default] "An example is of an API that the ClusterServiceVersion does not own",
        "remove the example, or list the API among the owned ones";
    API_WITHOUT_EXAMPLE: "BV108" "api-without-example" Warning [Default] "An owned API has no example", "";
    NO_INSTALL_MODES: "BV109" "no-install-modes" Error [Default] "The ClusterServiceVersion has no install modes", "";
    NO_SUPPORTED_MODE: "BV110" "no-supported-mode" Error [Default] "No install mode is supported", "";
    CONVERSION_MODES: "BV111" "conversion-modes" Error [Default] "There is a conversion webhook, but other install modes than AllNamespaces are supported", "";
    NO_MIN_KUBE_VERSION: "BV112" "no-min-kube-version" Warning [Default OperatorHub OperatorHubV2] "The ClusterServiceVersion has no minKubeVersion", "";
    INVALID_MIN_KUBE_VERSION: "BV113" "invalid-min-kube-version" Error [Default OperatorHub OperatorHubV2] "minKubeVersion is not MAJOR.MINOR.PATCH", "";
    REQUIRED_FIELD: "BV114" "required-field" Error [Default] "A required field of the ClusterServiceVersion is missing", "";
    ANNOTATION_CASE: "BV115" "annotation-case" Error [Default] "An annotation differs from one of OLM's only in case", "";
    PROPERTIES_ANNOTATION: "BV116" "properties-annotation" Warning [Default] "Properties are in an annotation of the ClusterServiceVersion", "";
    NO_GVK: "BV117" "no-gvk" Error [Default] "The ClusterServiceVersion has no apiVersion or kind", "";
    INVALID_VERSION: "BV118" "invalid-version" Error [Default] "The version of the ClusterServiceVersion is not a semantic version", "";

    DUPLICATE_CRD: "BV201" "duplicate-crd" Error [Default] "Two CustomResourceDefinitions define the same API", "";
    MISSING_CRD: "BV202" "missing-crd" Error [Default] "An owned API has no CustomResourceDefinition in the bundle",
        "add the CustomResourceDefinition, or correct the name, kind or version in the ClusterServiceVersion";
    UNDECLARED_CRD: "BV203" "undeclared-crd" Error [Default] "A CustomResourceDefinition is not among the owned ones of the ClusterServiceVersion", "";
    SERVICE_ACCOUNT: "BV204" "service-account" Error [Default] "The bundle contains a ServiceAccount that OLM creates for a Deployment", "";
    BUNDLE_TOO_LARGE: "BV205" "bundle-too-large" Error [Default] "The compressed manifests exceed the size of a ConfigMap",
        "remove descriptions from CustomResourceDefinitions, or split the operator";
    BUNDLE_ALMOST_TOO_LARGE: "BV206" "bundle-almost-too-large" Warning [Default] "The compressed manifests have more than 85 % of the size of a ConfigMap", "";
    RELEASE_NAME: "BV207" "release-name" Error [Default] "The name of a bundle with a release is not PACKAGE-vVERSION-RELEASE", "";
    RELATED_IMAGE: "BV208" "related-image" Error [Default] "A related image is empty or not a reference", "";
    INVALID_CRD: "BV209" "invalid-crd" Error [Default] "The API server rejects a CustomResourceDefinition", "";

    NO_DEPLOYMENT: "BV301" "no-deployment" Error [GoodPractices] "The ClusterServiceVersion has no Deployment", "";
    NO_RESOURCE_REQUESTS: "BV302" "no-resource-requests" Warning [GoodPractices] "A container has no resource requests", "";
    NO_CRD_DESCRIPTION: "BV303" "no-crd-description" Warning [GoodPractices] "An API of the ClusterServiceVersion has no description", "";
    CHANNEL_NAME: "BV304" "channel-name" Warning [GoodPractices] "A channel does not begin with candidate, fast or stable", "";
    CREATES_CRDS: "BV305" "creates-crds" Warning [GoodPractices] "The operator may create CustomResourceDefinitions", "";
    NAME_WITHOUT_VERSION: "BV306" "name-without-version" Warning [GoodPractices] "The name of the ClusterServiceVersion does not end with a semantic version", "";
    NAME_CONVENTION: "BV307" "name-convention" Warning [GoodPractices] "The name of the ClusterServiceVersion is not NAME.vVERSION", "";

    PROVIDER: "BV311" "provider" Error [OperatorHub OperatorHubV2] "The provider has no name", "";
    MAINTAINER: "BV312" "maintainer" Error [OperatorHub OperatorHubV2] "A maintainer has no name or no valid email address", "";
    LINK: "BV313" "link" Error [OperatorHub OperatorHubV2] "A link has no name or no valid URL", "";
    NO_VERSION: "BV314" "no-version" Error [OperatorHub OperatorHubV2] "The ClusterServiceVersion has no version", "";
    ICON: "BV315" "icon" Error [OperatorHub OperatorHubV2] "The icon is invalid", "";
    NO_ICON: "BV316" "no-icon" Warning [OperatorHub OperatorHubV2] "There is no icon", "";
    DEPRECATED_VALIDATOR: "BV317" "deprecated-validator" Warning [OperatorHub] "The validator operatorhub is deprecated", "";
    CAPABILITIES: "BV318" "capabilities" Error [OperatorHub Capabilities] "The level of capabilities is not a standard one", "";
    CATEGORIES: "BV319" "categories" Error [OperatorHub Categories] "A category is not a standard one", "";
    REMOVED_API: "BV321" "removed-api" Error [OperatorHub OperatorHubV2 AlphaDeprecatedApis]
        "An API version was removed from a Kubernetes version that the bundle supports; a warning if that version is not known to be supported", "";
    UNUSABLE_MIN_KUBE_VERSION: "BV322" "unusable-min-kube-version" Error [OperatorHub OperatorHubV2 AlphaDeprecatedApis]
        "Removed API versions cannot be determined from minKubeVersion", "";
    MAX_OPENSHIFT_VERSION: "BV331" "max-openshift-version" Error [Community] "A bundle with removed API versions has no olm.maxOpenShiftVersion below 4.9", "";
    OPENSHIFT_LABEL: "BV332" "openshift-label" Error [Community] "The label of the bundle image permits OpenShift versions without the removed API versions", "";
    DISRUPTION_BUDGET: "BV341" "disruption-budget" Error [Objects] "A PodDisruptionBudget prevents every eviction", "";
    GLOBAL_PRIORITY: "BV342" "global-priority" Error [Objects] "A PriorityClass becomes the default of the cluster", "";
    WRITES_DISRUPTION_BUDGETS: "BV343" "writes-disruption-budgets" Warning [Objects] "A Role permits writing PodDisruptionBudgets", "";
    WRITES_DEFAULT_SCCS: "BV344" "writes-default-sccs" Error [Objects] "A Role permits changing the default SecurityContextConstraints", "";

    UNPACKED_TOO_LARGE: "BV401" "unpacked-too-large" Error [Olm] "Manifests and metadata exceed the size of the ConfigMap into which OLM unpacks bundles",
        "remove descriptions from CustomResourceDefinitions, or split the operator";
    SAME_KEY: "BV402" "same-key" Error [Olm] "Two files have the same key in the ConfigMap into which OLM unpacks bundles", "rename one of the files";
    NOT_INSTALLED: "BV403" "not-installed" Error [Olm] "OLM does not install objects of a kind that bundles may contain",
        "let the operator create the object, or list it as optional in metadata/properties.yaml";
    REFUSED: "BV404" "refused" Error [Olm] "The API server rejects an object that the installation creates", "";
    UNKNOWN_FIELD: "BV405" "unknown-field" Warning [Olm] "An object has a field that its kind does not have; the API server drops it",
        "correct or remove the field";
    STRATEGY: "BV406" "strategy" Error [Olm] "The install strategy is not deployment", "";
    DUPLICATE_DEPLOYMENT: "BV407" "duplicate-deployment" Error [Olm] "Two Deployments have the same name", "";
    INVALID_WEBHOOK: "BV408" "invalid-webhook" Error [Olm] "OLM rejects a webhook", "";
    NO_SERVER: "BV409" "no-server" Error [Olm] "A webhook or an APIService names no Deployment of the ClusterServiceVersion", "";
    SERVICE_NAME: "BV410" "service-name" Error [Olm] "The Service that OLM creates for a Deployment has an invalid name",
        "shorten the name of the Deployment to 55 characters, of a DNS label";
    DOTTED_SERVER: "BV411" "dotted-server" Error [Olm] "The name of a Deployment that serves webhooks or APIs contains a dot",
        "OLM names the Service with the dot and refers to it without; rename the Deployment";
    CERTIFICATE_VOLUME: "BV412" "certificate-volume" Warning [Olm] "OLM replaces a volume or a mount by that of its certificate",
        "remove the volume and its mounts; OLM adds them";
    CONVERSION_CRD: "BV413" "conversion-crd" Error [Olm] "A conversion webhook cannot convert a CustomResourceDefinition", "";
    SKIP_RANGE: "BV414" "skip-range" Warning [Olm] "olm.skipRange is not a range of versions, and is ignored", "";
    REPLACES_ITSELF: "BV415" "replaces-itself" Error [Olm] "The ClusterServiceVersion replaces or skips itself", "";
    DUPLICATE_OBJECT: "BV416" "duplicate-object" Warning [Olm] "Two files contain the same object, of which the last one counts", "remove one of them";
    DUPLICATE_MODE: "BV417" "duplicate-mode" Error [Olm] "An install mode is listed twice", "";
    NAMESPACE: "BV418" "namespace" Warning [Olm] "An object names a namespace; OLM creates it in that of the Subscription", "remove metadata.namespace";
    REQUIRED_AND_OWNED: "BV419" "required-and-owned" Warning [Olm] "An API is both owned and required", "";
    UNSERVED_API: "BV420" "unserved-api" Error [Olm] "An owned version is not served by the CustomResourceDefinition", "";
    NOT_SERVED: "BV421" "not-served" Error [Olm] "An object has an API version that no supported Kubernetes serves", "";
    CONSOLE_ANNOTATION: "BV422" "console-annotation" Warning [Olm] "An annotation that consoles parse as JSON has another form",
        "consoles ignore the annotation: correct its value, or remove it";
    OPENSHIFT_VERSIONS: "BV423" "openshift-versions" Warning [Olm] "com.redhat.openshift.versions cannot be parsed by the pipelines of catalogs",
        "write v4.12 (this version and later ones), =v4.12, v4.12-v4.15, or a list such as v4.12,v4.13";
    ICON_CONTENT: "BV424" "icon-content" Warning [Olm] "The icon is not base64, or larger than 200 KiB",
        "insert the output of base64 icon.png, of an image of some ten KiB: every client of a catalog downloads the icons of all packages";
    CREATED_AT: "BV425" "created-at" Warning [Olm] "createdAt is not a date",
        "write it as 2026-01-31T12:00:00Z or 2026-01-31";
    CONTAINER_IMAGE: "BV426" "container-image" Warning [Olm] "containerImage is not an image",
        "write the image of the operator as registry.example.com/name:tag or registry.example.com/name@sha256:…";
    OBJECT_TOO_LARGE: "BV427" "object-too-large" Error [Olm] "An object exceeds the size that the API server or etcd accept",
        "divide the data among several objects, or remove descriptions";
    INVALID_PROPERTY: "BV428" "invalid-property" Error [Olm] "A property of metadata/properties.yaml or of the annotation olm.properties is invalid, or contradicts the bundle", "";

    WILDCARD: "BV501" "wildcard" Warning [Permissions] "A rule has wildcards", "list the API groups, resources and verbs that the operator uses";
    ESCALATION: "BV502" "escalation" Warning [Permissions] "A rule permits to gain all other permissions", "";
    READS_SECRETS: "BV503" "reads-secrets" Warning [Permissions] "A rule permits to read all Secrets of the cluster",
        "request it in permissions instead of clusterPermissions, or restrict it with resourceNames";
    UNUSED_ACCOUNT: "BV504" "unused-account" Warning [Permissions] "Permissions are for a ServiceAccount that no Deployment uses", "";
    DEFAULT_ACCOUNT: "BV505" "default-account" Warning [Permissions] "Permissions are for the ServiceAccount default, which other Pods of the namespace use, too", "";

    UNSUPPORTED_PLATFORM: "BV551" "unsupported-platform" Error [MultipleArchitectures] "An image does not support a platform that the labels declare",
        "publish the image for the platform, or remove the label operatorframework.io/arch.NAME or operatorframework.io/os.NAME";
    UNDECLARED_PLATFORM: "BV552" "undeclared-platform" Warning [MultipleArchitectures] "The operator's images support a platform that no label declares",
        "add the labels to metadata.labels of the ClusterServiceVersion";
    NODE_AFFINITY: "BV553" "node-affinity" Warning [MultipleArchitectures] "The node affinity of a Deployment does not match the platforms of its images and labels", "";
    UNINSPECTED_IMAGE: "BV554" "uninspected-image" Warning [MultipleArchitectures] "The platforms of an image cannot be read from its registry", "";

    OTHER_PACKAGE: "BV601" "other-package" Error [Previous] "The previous version is of another package", "";
    VERSION_NOT_HIGHER: "BV602" "version-not-higher" Error [Previous] "The version is not higher than the previous one", "";
    SAME_NAME: "BV603" "same-name" Error [Previous] "The bundle has the name of the previous version, but other content", "";
    NOT_AN_UPDATE: "BV604" "not-an-update" Warning [Previous] "The bundle neither replaces nor skips the previous version", "";
    INSTALL_MODE_DROPPED: "BV605" "install-mode-dropped" Error [Previous] "An install mode is no longer supported",
        "OperatorGroups of this mode keep the previous version from being updated";
    CRD_DROPPED: "BV606" "crd-dropped" Warning [Previous] "A CustomResourceDefinition is no longer in the bundle",
        "it stays on the cluster, without an operator";
    STORED_VERSION_DROPPED: "BV607" "stored-version-dropped" Error [Previous] "The storage version of a CustomResourceDefinition was removed",
        "keep the version, with served: false, until all custom resources are stored in another one";
    SERVED_VERSION_DROPPED: "BV608" "served-version-dropped" Warning [Previous] "A version of a CustomResourceDefinition is no longer served", "";
    CRD_IMMUTABLE: "BV609" "crd-immutable" Error [Previous] "The scope or kind of a CustomResourceDefinition has changed", "";
    SCHEMA_STRICTER: "BV610" "schema-stricter" Error [Previous] "A schema rejects custom resources that the previous one accepts",
        "OLM fails the InstallPlan if an existing custom resource does not match";
    FIELD_DROPPED: "BV611" "field-dropped" Warning [Previous] "A schema no longer has a field; the API server drops its values", "";
    PERMISSION_ADDED: "BV612" "permission-added" Warning [Previous] "The operator gains permissions", "";
    MIN_KUBE_VERSION_RAISED: "BV613" "min-kube-version-raised" Info [Previous] "The bundle requires a newer Kubernetes", "";
    REQUIREMENT_ADDED: "BV614" "requirement-added" Info [Previous] "The bundle requires an API or package that the previous one did not", "";
    DEFAULT_CHANNEL_CHANGED: "BV615" "default-channel-changed" Info [Previous] "The default channel has changed", "";
    REPLACES_UNKNOWN: "BV616" "replaces-unknown" Error [Previous] "The bundle replaces a version that the catalog does not have", "";
    SCHEMA_CONDITION: "BV617" "schema-condition" Warning [Previous] "A schema has another condition than before (rules, allOf, anyOf, oneOf, not), which may reject existing custom resources", "";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_and_names_are_unique_and_sorted() {
        let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len(), "a name occurs twice");
        assert!(RULES.is_sorted_by(|a, b| a.code < b.code), "codes are not in order, or occur twice");
        assert_eq!(rule("bv001"), rule("Unreadable-File"));
        for validator in Validator::ALL {
            assert!(RULES.iter().any(|rule| rule.validators.contains(&validator)), "{validator:?} has no rule");
        }
    }
}
