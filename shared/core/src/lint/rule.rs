//! The table of all rules, with the texts that `--explain` prints.

use crate::finding::Severity;
use crate::listing::wrapped;
use crate::world::{GroupKind, kind};

/// A rule.
#[derive(Debug, PartialEq)]
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// The command that explains it with `--explain CODE`.
    pub explained_by: &'static str,
    /// Stable name.
    pub name: &'static str,
    /// Default severity of its findings.
    pub severity: Severity,
    /// What it finds, in one line.
    pub summary: &'static str,
    /// Why that is a problem.
    pub why: &'static str,
    /// An example of what it finds.
    pub example: &'static str,
    /// How to fix it.
    pub fix: &'static str,
    /// The kinds whose objects in the checked namespace all have to be known for a full check.
    pub(crate) here: &'static [GroupKind],
    /// The kinds whose objects in all namespaces have to be known for a full check.
    pub(crate) everywhere: &'static [GroupKind],
    /// Other kinds that it checks; nothing is found in objects of them that are not known.
    pub(crate) reads: &'static [GroupKind],
}

/// The command that checks the rules of this table.
const LINT: &str = "kubectl olm operatorgroup lint";

/// Returns the rule of a table with that code or name, ignoring case.
pub fn rule(rules: &[&'static Rule], name: &str) -> Option<&'static Rule> {
    rules.iter().copied().find(|rule| rule.code.eq_ignore_ascii_case(name) || rule.name.eq_ignore_ascii_case(name))
}

impl Rule {
    /// Returns the command that prints [`Self::explanation`].
    pub fn command(&self) -> String {
        format!("{} --explain {}", self.explained_by, self.code)
    }

    /// Returns the full description, as text.
    pub fn explanation(&self) -> String {
        let Self { code, name, severity, summary, why, example, fix, .. } = self;
        let indented: String = example.lines().map(|line| format!("  {line}\n")).collect();
        let [why, fix] = [(*why).to_owned(), format!("Fix: {fix}")].map(|text| wrapped(&text, 100));
        format!("{code} {name} ({severity})\n\n{summary}.\n\n{why}\n\nExample:\n{indented}\n{fix}\n")
    }
}

/// All rules, by code.
pub static RULES: [&Rule; 22] = [
    &SEVERAL_GROUPS,
    &NO_GROUP,
    &INSTALL_MODES,
    &OWN_NAMESPACE_MISSING,
    &INVALID_TARGETS,
    &TARGETS_AND_SELECTOR,
    &EMPTY_SELECTION,
    &TARGET_MISSING,
    &CONFLICTING_APIS,
    &STATIC_LACKS_API,
    &ACCOUNT_MISSING,
    &ACCOUNT_LACKS_PERMISSIONS,
    &STALE_MEMBER,
    &STALE_STATUS,
    &STALE_APIS,
    &EMPTY_HOLDS_APIS,
    &UNUSED,
    &ORPHANED_COPY,
    &ORPHANED_GROUP_ROLE,
    &ORPHANED_PERMISSIONS,
    &PACKAGE_DOES_NOT_FIT,
    &INVALID_FIELDS,
];

pub(super) static SEVERAL_GROUPS: Rule = Rule {
    code: "OG001",
    explained_by: LINT,
    name: "several-groups",
    severity: Severity::Error,
    summary: "There are several OperatorGroups in one namespace",
    why: "OLM does not choose one: every ClusterServiceVersion of the namespace fails with TooManyOperatorGroups, and no Subscription \
          in it is resolved. Operators that already run keep running until then, so the problem may be noticed late.",
    example: "metadata: {name: one, namespace: garden}\n---\nmetadata: {name: other, namespace: garden}",
    fix: "delete all but one. The one that ClusterServiceVersions name in olm.operatorGroup is the one in use.",
    here: &[kind::OPERATOR_GROUP],
    everywhere: &[],
    reads: &[],
};

pub(super) static NO_GROUP: Rule = Rule {
    code: "OG002",
    explained_by: LINT,
    name: "no-group",
    severity: Severity::Error,
    summary: "There are operators in a namespace without an OperatorGroup",
    why: "An OperatorGroup selects the namespaces that an operator watches. Without one, ClusterServiceVersions fail with \
          NoOperatorGroup, and Subscriptions are not resolved.",
    example: "kind: Subscription\nmetadata: {name: rose, namespace: garden}   # and no OperatorGroup in garden",
    fix: "create an OperatorGroup whose targets the operator supports.",
    here: &[kind::OPERATOR_GROUP],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION, kind::SUBSCRIPTION],
};

pub(super) static INSTALL_MODES: Rule = Rule {
    code: "OG003",
    explained_by: LINT,
    name: "install-modes",
    severity: Severity::Error,
    summary: "A ClusterServiceVersion does not support the targets of its OperatorGroup",
    why: "Its install modes state whether it can watch its own namespace, another one, several, or all. A mode that is not listed is not \
          supported, unless another mode implies it: MultiNamespace implies SingleNamespace, which implies OwnNamespace; several \
          namespaces that include its own require both MultiNamespace and OwnNamespace. The ClusterServiceVersion fails with \
          UnsupportedOperatorGroup. OLM's own controllers infer nothing: findings that depend on inference are reported as info, or as a \
          warning if OLM has refused the ClusterServiceVersion.",
    example: "kind: OperatorGroup\nspec: {}                                       # all namespaces\n---\n\
              kind: ClusterServiceVersion\nspec: {installModes: [{type: OwnNamespace, supported: true}]}",
    fix: "change the group's targets to what its members support, or give the operator a namespace of its own.",
    here: &[],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static OWN_NAMESPACE_MISSING: Rule = Rule {
    code: "OG004",
    explained_by: LINT,
    name: "own-namespace-missing",
    severity: Severity::Error,
    summary: "A ClusterServiceVersion needs its own namespace among the targets",
    why: "The operator can watch the namespace that it runs in, but not the targets without it. An OperatorGroup's own namespace is \
          not a target unless it is named or selected. The ClusterServiceVersion fails with UnsupportedOperatorGroup.",
    example: "kind: OperatorGroup\nmetadata: {name: all, namespace: garden}\nspec: {targetNamespaces: [field]}\n---\n\
              kind: ClusterServiceVersion\nspec: {installModes: [{type: OwnNamespace, supported: true}]}",
    fix: "name the group's own namespace in spec.targetNamespaces, or add the labels that spec.selector requires to it.",
    here: &[],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static INVALID_TARGETS: Rule = Rule {
    code: "OG005",
    explained_by: LINT,
    name: "invalid-targets",
    severity: Severity::Error,
    summary: "The targets are invalid",
    why: "OLM refuses an empty name in spec.targetNamespaces (to target all namespaces, name none), and an invalid selector. It then \
          does not update the group, reports nothing in its status, and its members wait indefinitely.",
    example: "spec: {targetNamespaces: [\"\"]}",
    fix: "name namespaces, or none to target all of them; correct the selector.",
    here: &[],
    everywhere: &[],
    reads: &[],
};

pub(super) static TARGETS_AND_SELECTOR: Rule = Rule {
    code: "OG006",
    explained_by: LINT,
    name: "targets-and-selector",
    severity: Severity::Warning,
    summary: "Both spec.targetNamespaces and spec.selector are given",
    why: "In this case spec.selector is ignored, and namespaces with its labels are not watched.",
    example: "spec:\n  targetNamespaces: [field]\n  selector: {matchLabels: {team: roses}}",
    fix: "remove the one that is not intended. Removing the selector has no effect.",
    here: &[],
    everywhere: &[],
    reads: &[],
};

pub(super) static EMPTY_SELECTION: Rule = Rule {
    code: "OG007",
    explained_by: LINT,
    name: "empty-selection",
    severity: Severity::Warning,
    summary: "The selector matches no namespace, or only namespaces that are being deleted",
    why: "A group without targets has no members: ClusterServiceVersions in its namespace fail with NoTargetNamespaces, which makes the \
          finding an error. The group is updated when a namespace gets the labels.",
    example: "spec: {selector: {matchLabels: {team: rosse}}}    # and no namespace has that label",
    fix: "label the namespaces, or correct the selector.",
    here: &[],
    everywhere: &[kind::NAMESPACE],
    reads: &[],
};

pub(super) static TARGET_MISSING: Rule = Rule {
    code: "OG008",
    explained_by: LINT,
    name: "target-missing",
    severity: Severity::Warning,
    summary: "A target namespace does not exist",
    why: "OLM does not check whether the namespaces in spec.targetNamespaces exist. Operators are configured to watch them \
          nevertheless, and many fail to start if they cannot.",
    example: "spec: {targetNamespaces: [filed]}                # there is field, but no filed",
    fix: "create the namespace, or correct its name.",
    here: &[],
    everywhere: &[kind::NAMESPACE],
    reads: &[],
};

pub(super) static CONFLICTING_APIS: Rule = Rule {
    code: "OG009",
    explained_by: LINT,
    name: "conflicting-apis",
    severity: Severity::Error,
    summary: "Two OperatorGroups provide the same APIs to the same namespaces",
    why: "Two operators would compete for the same resources. OLM assigns them to the first group: members of the other group fail with \
          InterOperatorGroupOwnerConflict, or with CannotModifyStaticOperatorGroupProvidedAPIs if that group is static, and their \
          Deployments are deleted. A group's own namespace counts as a target. If neither group has an operator yet, the finding is a \
          warning.",
    example: "metadata: {name: a, namespace: garden, annotations: {olm.providedAPIs: Rose.v1.example.com}}\n\
              spec: {targetNamespaces: [field]}\n---\n\
              metadata: {name: b, namespace: park}                # with an operator that provides Rose, too\nspec: {}",
    fix: "give the groups targets that have no namespace in common, or remove one of the operators. kubectl olm operatorgroup \
          intersect shows all namespaces and APIs.",
    here: &[],
    everywhere: &[kind::OPERATOR_GROUP, kind::CLUSTER_SERVICE_VERSION],
    reads: &[],
};

pub(super) static STATIC_LACKS_API: Rule = Rule {
    code: "OG010",
    explained_by: LINT,
    name: "static-lacks-api",
    severity: Severity::Error,
    summary: "A static OperatorGroup does not name an API of its member",
    why: "With spec.staticProvidedAPIs, OLM does not add APIs to olm.providedAPIs. A ClusterServiceVersion that provides other APIs \
          fails with CannotModifyStaticOperatorGroupProvidedAPIs, and its Deployments are deleted.",
    example: "metadata: {annotations: {olm.providedAPIs: Rose.v1.example.com}}\nspec: {staticProvidedAPIs: true}\n---\n\
              kind: ClusterServiceVersion                       # provides Rose and Tulip",
    fix: "add the APIs to the annotation, if the operator is intended to run in this namespace.",
    here: &[],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static ACCOUNT_MISSING: Rule = Rule {
    code: "OG011",
    explained_by: LINT,
    name: "service-account-missing",
    severity: Severity::Error,
    summary: "The ServiceAccount of an OperatorGroup does not exist",
    why: "With spec.serviceAccountName, operators are installed with the permissions of that ServiceAccount. Until it exists, nothing is \
          installed, and changes of the targets are not applied.",
    example: "spec: {serviceAccountName: installer}               # and no ServiceAccount of that name in the namespace",
    fix: "create the ServiceAccount, with the permissions to install the operators.",
    here: &[kind::SERVICE_ACCOUNT],
    everywhere: &[],
    reads: &[],
};

pub(super) static ACCOUNT_LACKS_PERMISSIONS: Rule = Rule {
    code: "OG012",
    explained_by: LINT,
    name: "service-account-permissions",
    severity: Severity::Error,
    summary: "The ServiceAccount of an OperatorGroup lacks permissions to install its members",
    why: "InstallPlans are executed, and the Deployments of ClusterServiceVersions are created, with its permissions. Forbidden requests \
          fail, one object after the other. The finding lists the permissions that are missing for incomplete InstallPlans and for \
          missing Deployments. To create a Role, the ServiceAccount also needs all permissions that the Role grants.",
    example: "spec: {serviceAccountName: installer}               # without any permissions",
    fix: "apply the printed Role, if the ServiceAccount is intended to install these operators.",
    here: &[kind::INSTALL_PLAN, kind::ROLE, kind::ROLE_BINDING, kind::DEPLOYMENT],
    everywhere: &[kind::CLUSTER_ROLE, kind::CLUSTER_ROLE_BINDING],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static STALE_MEMBER: Rule = Rule {
    code: "OG013",
    explained_by: LINT,
    name: "stale-member",
    severity: Severity::Warning,
    summary: "The annotations of a ClusterServiceVersion differ from its OperatorGroup",
    why: "OLM writes olm.operatorGroup, olm.operatorNamespace and olm.targetNamespaces on every member, and operators read from them \
          which namespaces to watch. If they stay different, OLM is not running, or another client keeps changing them. If the time of \
          the last change is unknown, the finding is info; just after a change nothing is reported, unless an annotation is missing.",
    example: "kind: ClusterServiceVersion\nmetadata: {annotations: {olm.targetNamespaces: field}}   # the group targets all",
    fix: "make sure that OLM is running, and that no other client writes these annotations.",
    here: &[],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static STALE_STATUS: Rule = Rule {
    code: "OG014",
    explained_by: LINT,
    name: "stale-status",
    severity: Severity::Warning,
    summary: "The status of an OperatorGroup does not match its spec or the namespaces",
    why: "OLM uses status.namespaces, and updates it from the spec. It notices new labels of namespaces within 15 minutes. If the status \
          stays stale, OLM is not running. If the time of the last change is unknown, the finding is info; just after a change nothing is \
          reported.",
    example: "spec: {targetNamespaces: [field, meadow]}\nstatus: {namespaces: [field]}",
    fix: "make sure that OLM is running.",
    here: &[],
    everywhere: &[kind::NAMESPACE],
    reads: &[],
};

pub(super) static STALE_APIS: Rule = Rule {
    code: "OG015",
    explained_by: LINT,
    name: "stale-apis",
    severity: Severity::Warning,
    summary: "olm.providedAPIs of an OperatorGroup does not match what its members provide",
    why: "OLM adds the APIs of members, and removes those that no operator in the namespace provides any longer. A stale API prevents \
          operators of other groups from providing it to the same namespaces. If the time of the last change is unknown, the finding is \
          info; just after a change nothing is reported.",
    example: "metadata: {annotations: {olm.providedAPIs: \"Rose.v1.example.com,Tulip.v1.example.com\"}}   # no operator provides Tulip",
    fix: "set the annotation to the value that OLM would write, and make sure that OLM is running.",
    here: &[kind::CLUSTER_SERVICE_VERSION],
    everywhere: &[],
    reads: &[],
};

pub(super) static EMPTY_HOLDS_APIS: Rule = Rule {
    code: "OG016",
    explained_by: LINT,
    name: "empty-holds-apis",
    severity: Severity::Warning,
    summary: "An OperatorGroup without operators prevents others from providing APIs",
    why: "Its olm.providedAPIs names APIs although its namespace has no ClusterServiceVersion, and it is not static, which would make \
          this intentional. Operators of other groups that provide these APIs to the same namespaces fail.",
    example: "metadata: {annotations: {olm.providedAPIs: Rose.v1.example.com}}   # and no operator in the namespace",
    fix: "remove the annotation; or set spec.staticProvidedAPIs, if the group is intended to reserve these APIs.",
    here: &[kind::CLUSTER_SERVICE_VERSION],
    everywhere: &[],
    reads: &[],
};

pub(super) static UNUSED: Rule = Rule {
    code: "OG017",
    explained_by: LINT,
    name: "unused",
    severity: Severity::Info,
    summary: "An OperatorGroup is not used",
    why: "Its namespace has no operator, and none is being installed. This is harmless. Groups that OLM installs (global-operators, \
          olm-operators) and static ones are not reported.",
    example: "kind: OperatorGroup\nmetadata: {name: all, namespace: garden}   # and no Subscription or ClusterServiceVersion",
    fix: "delete it, if no operator will be installed in the namespace.",
    here: &[kind::CLUSTER_SERVICE_VERSION, kind::SUBSCRIPTION],
    everywhere: &[],
    reads: &[],
};

pub(super) static ORPHANED_COPY: Rule = Rule {
    code: "OG018",
    explained_by: LINT,
    name: "orphaned-copy",
    severity: Severity::Warning,
    summary: "A copied ClusterServiceVersion has lost its original, or its namespace is no longer a target",
    why: "It advertises an operator to users of the namespace although the operator does not watch it. OLM deletes such copies while it \
          is running.",
    example: "kind: ClusterServiceVersion\nmetadata: {name: rose.v1, namespace: field, labels: {olm.copiedFrom: garden}}",
    fix: "delete the copy.",
    here: &[],
    everywhere: &[kind::CLUSTER_SERVICE_VERSION],
    reads: &[],
};

pub(super) static ORPHANED_GROUP_ROLE: Rule = Rule {
    code: "OG019",
    explained_by: LINT,
    name: "orphaned-group-role",
    severity: Severity::Warning,
    summary: "A ClusterRole belongs to an OperatorGroup that does not exist",
    why: "Every OperatorGroup has three ClusterRoles, olm.og.NAME.admin-…, -edit- and -view-, which grant users permissions on the APIs of \
          its operators. OLM deletes them with the group while it is running. Users that are still bound to them keep the permissions.",
    example: "kind: ClusterRole\nmetadata:\n  name: olm.og.all.admin-5UD4U2IfBGbw51Qy2Jaefk1uawvkj2OJILlc3w\n  \
              labels: {olm.owner: all, olm.owner.namespace: garden, olm.owner.kind: OperatorGroup}",
    fix: "delete it, and the bindings to it.",
    here: &[],
    everywhere: &[kind::OPERATOR_GROUP],
    reads: &[kind::CLUSTER_ROLE],
};

pub(super) static ORPHANED_PERMISSIONS: Rule = Rule {
    code: "OG020",
    explained_by: LINT,
    name: "orphaned-permissions",
    severity: Severity::Warning,
    summary: "Roles or bindings belong to a ClusterServiceVersion that does not exist",
    why: "OLM copies the Roles of an operator to the namespaces that it watches, or creates ClusterRoles from them, and deletes them with \
          the operator. Leftover bindings grant permissions to a ServiceAccount, which another user may create again.",
    example: "kind: Role\nmetadata:\n  namespace: field\n  labels: {olm.copiedFrom: garden, olm.owner: rose.v1, \
              olm.owner.namespace: field, olm.owner.kind: ClusterServiceVersion}",
    fix: "delete it.",
    here: &[],
    everywhere: &[kind::CLUSTER_SERVICE_VERSION],
    reads: &[kind::ROLE, kind::ROLE_BINDING, kind::CLUSTER_ROLE, kind::CLUSTER_ROLE_BINDING],
};

pub(super) static PACKAGE_DOES_NOT_FIT: Rule = Rule {
    code: "OG021",
    explained_by: LINT,
    name: "package-does-not-fit",
    severity: Severity::Warning,
    summary: "No version of the package that --package names supports the targets of an OperatorGroup",
    why: "A Subscription in the group's namespace would be resolved and installed, and the ClusterServiceVersion would then fail with \
          UnsupportedOperatorGroup. The table shows which groups each version supports, and which targets it would support.",
    example: "kubectl olm operatorgroup lint --package rose --catalog tea=./catalog -n garden",
    fix: "install it in a namespace whose group it supports, or change the targets.",
    here: &[],
    everywhere: &[],
    reads: &[],
};

pub(super) static INVALID_FIELDS: Rule = Rule {
    code: "OG022",
    explained_by: LINT,
    name: "invalid-fields",
    severity: Severity::Error,
    summary: "The API server would refuse an OperatorGroup",
    why: "A field of its spec does not exist, or its value has the wrong type. kubectl apply reports the same error. With clients that do \
          not request strict field validation, the API server drops the field instead, and a group without targets targets all \
          namespaces.",
    example: "kind: OperatorGroup\nspec: {targetNamespace: [garden]}              # targetNamespaces",
    fix: "correct the field.",
    here: &[],
    everywhere: &[],
    reads: &[],
};
