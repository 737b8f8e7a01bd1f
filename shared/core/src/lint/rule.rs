//! The table of all rules: what `--explain` prints, and the documentation says.

use crate::finding::Severity;
use crate::world::{GroupKind, kind};

/// A rule.
#[derive(Debug, PartialEq)]
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// Stable name.
    pub name: &'static str,
    /// How bad a finding is, unless there is a reason to see it otherwise.
    pub severity: Severity,
    /// What it finds, in a line.
    pub summary: &'static str,
    /// Why that is wrong.
    pub why: &'static str,
    /// What it finds, as an example.
    pub example: &'static str,
    /// How it is mended.
    pub fix: &'static str,
    /// The kinds whose objects in the namespace in question all have to be known for it.
    pub(super) here: &'static [GroupKind],
    /// The kinds whose objects all have to be known for it, wherever they are.
    pub(super) everywhere: &'static [GroupKind],
    /// Other kinds that it is about: what is not known of them nothing is found in.
    pub(super) reads: &'static [GroupKind],
}

/// The rule of that code or name, in any case.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.into_iter().find(|rule| rule.code.eq_ignore_ascii_case(name) || rule.name.eq_ignore_ascii_case(name))
}

impl Rule {
    /// The command that prints [`Self::explanation`].
    pub fn command(&self) -> String {
        format!("kubectl olm operatorgroup lint --explain {}", self.code)
    }

    /// Everything about it, for people.
    pub fn explanation(&self) -> String {
        let Self { code, name, severity, summary, why, example, fix, .. } = self;
        let indented: String = example.lines().map(|line| format!("  {line}\n")).collect();
        let [why, fix] = [(*why).to_owned(), format!("Fix: {fix}")].map(|text| wrapped(&text));
        format!("{code} {name} ({severity})\n\n{summary}.\n\n{why}\n\nExample:\n{indented}\n{fix}\n")
    }
}

/// A paragraph in lines of a width that is easy to read.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last().map_or(0, String::len);
        if last > 0 && last + 1 + word.len() > WIDTH {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// All rules, by code.
pub static RULES: [&Rule; 22] = [
    &SEVERAL_GROUPS,
    &NO_GROUP,
    &INSTALL_MODES,
    &OWN_NAMESPACE_MISSING,
    &INVALID_TARGETS,
    &TARGETS_AND_SELECTOR,
    &SELECTS_NOTHING,
    &TARGET_MISSING,
    &APIS_CLASH,
    &STATIC_LACKS_API,
    &ACCOUNT_MISSING,
    &ACCOUNT_LACKS_RIGHTS,
    &STALE_MEMBER,
    &STALE_STATUS,
    &STALE_APIS,
    &EMPTY_HOLDS_APIS,
    &UNUSED,
    &ORPHANED_COPY,
    &ORPHANED_GROUP_ROLE,
    &ORPHANED_RIGHTS,
    &PACKAGE_DOES_NOT_FIT,
    &INVALID_FIELDS,
];

pub(super) static SEVERAL_GROUPS: Rule = Rule {
    code: "OG001",
    name: "several-groups",
    severity: Severity::Error,
    summary: "There are several OperatorGroups in one namespace",
    why: "OLM does not choose one: every ClusterServiceVersion of the namespace fails with TooManyOperatorGroups, and no Subscription \
          there is resolved. What runs goes on running until then, so that it may be noticed late.",
    example: "metadata: {name: one, namespace: garden}\n---\nmetadata: {name: other, namespace: garden}",
    fix: "delete all but one. The one that ClusterServiceVersions name in olm.operatorGroup is the one in use.",
    here: &[kind::OPERATOR_GROUP],
    everywhere: &[],
    reads: &[],
};

pub(super) static NO_GROUP: Rule = Rule {
    code: "OG002",
    name: "no-group",
    severity: Severity::Error,
    summary: "There are operators in a namespace without an OperatorGroup",
    why: "Without one nothing says which namespaces an operator is to watch: ClusterServiceVersions fail with NoOperatorGroup, and \
          Subscriptions are not resolved.",
    example: "kind: Subscription\nmetadata: {name: rose, namespace: garden}   # and no OperatorGroup in garden",
    fix: "create an OperatorGroup whose targets the operator supports.",
    here: &[kind::OPERATOR_GROUP],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION, kind::SUBSCRIPTION],
};

pub(super) static INSTALL_MODES: Rule = Rule {
    code: "OG003",
    name: "install-modes",
    severity: Severity::Error,
    summary: "A ClusterServiceVersion does not support the targets of its OperatorGroup",
    why: "Its install modes say whether it can watch its own namespace, another one, several, or all. What is not listed is not \
          supported, unless another implies it: several namespaces imply one, one implies its own; several with the own one among \
          them take both MultiNamespace and OwnNamespace. The ClusterServiceVersion fails with UnsupportedOperatorGroup. OLM's own \
          controllers infer nothing: where it comes to that it is told for information, or as a warning where they run.",
    example: "kind: OperatorGroup\nspec: {}                                       # all namespaces\n---\n\
              kind: ClusterServiceVersion\nspec: {installModes: [{type: OwnNamespace, supported: true}]}",
    fix: "change the group's targets to what its members support, or give the operator a namespace of its own.",
    here: &[],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static OWN_NAMESPACE_MISSING: Rule = Rule {
    code: "OG004",
    name: "own-namespace-missing",
    severity: Severity::Error,
    summary: "A ClusterServiceVersion needs its own namespace among the targets",
    why: "The operator can watch the namespace that it runs in, but not the targets without it. An OperatorGroup's own namespace is \
          not a target unless it is named or selected. The ClusterServiceVersion fails with UnsupportedOperatorGroup.",
    example: "kind: OperatorGroup\nmetadata: {name: all, namespace: garden}\nspec: {targetNamespaces: [field]}\n---\n\
              kind: ClusterServiceVersion\nspec: {installModes: [{type: OwnNamespace, supported: true}]}",
    fix: "name the group's own namespace in spec.targetNamespaces, or give it a label that spec.selector asks for.",
    here: &[],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static INVALID_TARGETS: Rule = Rule {
    code: "OG005",
    name: "invalid-targets",
    severity: Severity::Error,
    summary: "The targets make no sense",
    why: "OLM refuses an empty name among spec.targetNamespaces (all namespaces are meant by naming none at all), and a selector that \
          is not one. It then leaves the group as it is, without a word in its status, and its members wait for ever.",
    example: "spec: {targetNamespaces: [\"\"]}",
    fix: "name namespaces, or none at all for all of them; write the selector as in any other object.",
    here: &[],
    everywhere: &[],
    reads: &[],
};

pub(super) static TARGETS_AND_SELECTOR: Rule = Rule {
    code: "OG006",
    name: "targets-and-selector",
    severity: Severity::Warning,
    summary: "Both spec.targetNamespaces and spec.selector are given",
    why: "Then spec.selector is ignored, and namespaces that get its labels are not watched.",
    example: "spec:\n  targetNamespaces: [field]\n  selector: {matchLabels: {team: roses}}",
    fix: "remove the one that is not meant. Removing the selector changes nothing.",
    here: &[],
    everywhere: &[],
    reads: &[],
};

pub(super) static SELECTS_NOTHING: Rule = Rule {
    code: "OG007",
    name: "selects-nothing",
    severity: Severity::Warning,
    summary: "The selector matches no namespace, or only some that are being deleted",
    why: "A group without targets has no members: ClusterServiceVersions in its namespace fail with NoTargetNamespaces (then it is an \
          error). Which namespaces match is looked at again when one gets the labels.",
    example: "spec: {selector: {matchLabels: {team: rosse}}}    # and no namespace has that label",
    fix: "label the namespaces, or correct the selector.",
    here: &[],
    everywhere: &[kind::NAMESPACE],
    reads: &[],
};

pub(super) static TARGET_MISSING: Rule = Rule {
    code: "OG008",
    name: "target-missing",
    severity: Severity::Warning,
    summary: "A target namespace does not exist",
    why: "OLM does not ask whether the namespaces in spec.targetNamespaces exist. Operators are told to watch them all the same, and \
          many fail to start when they cannot.",
    example: "spec: {targetNamespaces: [filed]}                # there is field, but no filed",
    fix: "create the namespace, or correct its name.",
    here: &[],
    everywhere: &[kind::NAMESPACE],
    reads: &[],
};

pub(super) static APIS_CLASH: Rule = Rule {
    code: "OG009",
    name: "apis-clash",
    severity: Severity::Error,
    summary: "Two OperatorGroups provide the same APIs to the same namespaces",
    why: "Two operators would compete for the same resources. OLM lets the first have them: members of the other group fail with \
          InterOperatorGroupOwnerConflict, or with CannotModifyStaticOperatorGroupProvidedAPIs when that group is static, and their \
          Deployments are deleted. A group's own namespace counts as a target. Where neither has an operator yet it is a warning.",
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
    name: "static-lacks-api",
    severity: Severity::Error,
    summary: "A static OperatorGroup does not name an API of its member",
    why: "With spec.staticProvidedAPIs OLM does not add APIs to olm.providedAPIs. A ClusterServiceVersion that provides others fails \
          with CannotModifyStaticOperatorGroupProvidedAPIs, and its Deployments are deleted.",
    example: "metadata: {annotations: {olm.providedAPIs: Rose.v1.example.com}}\nspec: {staticProvidedAPIs: true}\n---\n\
              kind: ClusterServiceVersion                       # provides Rose and Tulip",
    fix: "add the APIs to the annotation, if the operator is meant to be there.",
    here: &[],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static ACCOUNT_MISSING: Rule = Rule {
    code: "OG011",
    name: "service-account-missing",
    severity: Severity::Error,
    summary: "The ServiceAccount of an OperatorGroup does not exist",
    why: "With spec.serviceAccountName operators are installed with the rights of that ServiceAccount. As long as it does not exist \
          nothing is installed, and changes of the targets are not taken up.",
    example: "spec: {serviceAccountName: installer}               # and no ServiceAccount of that name in the namespace",
    fix: "create the ServiceAccount, with rights for what is to be installed.",
    here: &[kind::SERVICE_ACCOUNT],
    everywhere: &[],
    reads: &[],
};

pub(super) static ACCOUNT_LACKS_RIGHTS: Rule = Rule {
    code: "OG012",
    name: "service-account-rights",
    severity: Severity::Error,
    summary: "The ServiceAccount of an OperatorGroup may not do what its members' installation takes",
    why: "InstallPlans, and the Deployments of ClusterServiceVersions, are made with its rights. What is forbidden fails, one object \
          after the other. Told are the rights that are missing for InstallPlans that are not complete and for Deployments that are \
          not there; who makes a Role also needs all rights that are in it.",
    example: "spec: {serviceAccountName: installer}               # which may do nothing",
    fix: "apply the Role that is printed, if the ServiceAccount is meant to install these operators.",
    here: &[kind::INSTALL_PLAN, kind::ROLE, kind::ROLE_BINDING, kind::DEPLOYMENT],
    everywhere: &[kind::CLUSTER_ROLE, kind::CLUSTER_ROLE_BINDING],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static STALE_MEMBER: Rule = Rule {
    code: "OG013",
    name: "stale-member",
    severity: Severity::Warning,
    summary: "A ClusterServiceVersion does not carry what its OperatorGroup says",
    why: "OLM writes olm.operatorGroup, olm.operatorNamespace and olm.targetNamespaces on every member, and operators read from them \
          which namespaces to watch. When they stay different, OLM does not run, or somebody keeps changing them. Where nothing \
          tells when the objects were changed last this is for information; just after a change nothing is said, unless an \
          annotation is missing.",
    example: "kind: ClusterServiceVersion\nmetadata: {annotations: {olm.targetNamespaces: field}}   # the group targets all",
    fix: "see that OLM runs, and that nobody else writes these annotations.",
    here: &[],
    everywhere: &[],
    reads: &[kind::CLUSTER_SERVICE_VERSION],
};

pub(super) static STALE_STATUS: Rule = Rule {
    code: "OG014",
    name: "stale-status",
    severity: Severity::Warning,
    summary: "The status of an OperatorGroup lags behind its spec or the namespaces",
    why: "OLM goes by status.namespaces, and keeps it as spec asks for. It notices new labels of namespaces within a quarter of an \
          hour. When it stays behind, OLM does not run. Where nothing tells when the objects were changed last this is for \
          information; just after a change nothing is said.",
    example: "spec: {targetNamespaces: [field, meadow]}\nstatus: {namespaces: [field]}",
    fix: "see that OLM runs.",
    here: &[],
    everywhere: &[kind::NAMESPACE],
    reads: &[],
};

pub(super) static STALE_APIS: Rule = Rule {
    code: "OG015",
    name: "stale-apis",
    severity: Severity::Warning,
    summary: "olm.providedAPIs of an OperatorGroup is not what its members provide",
    why: "OLM adds the APIs of members and takes away those that nobody in the namespace provides any more. An API that stays keeps \
          operators of other groups from providing it to the same namespaces. Where nothing tells when the objects were changed last \
          this is for information; just after a change nothing is said.",
    example: "metadata: {annotations: {olm.providedAPIs: \"Rose.v1.example.com,Tulip.v1.example.com\"}}   # nobody provides Tulip",
    fix: "write into the annotation what OLM would write, and see that OLM runs.",
    here: &[kind::CLUSTER_SERVICE_VERSION],
    everywhere: &[],
    reads: &[],
};

pub(super) static EMPTY_HOLDS_APIS: Rule = Rule {
    code: "OG016",
    name: "empty-holds-apis",
    severity: Severity::Warning,
    summary: "An OperatorGroup without operators keeps others from providing APIs",
    why: "Its olm.providedAPIs names APIs although there is no ClusterServiceVersion in its namespace, and it is not static, which would \
          say that this is meant. Operators of other groups that provide them to the same namespaces fail.",
    example: "metadata: {annotations: {olm.providedAPIs: Rose.v1.example.com}}   # and no operator in the namespace",
    fix: "remove the annotation; or set spec.staticProvidedAPIs, if the group is to protect these APIs.",
    here: &[kind::CLUSTER_SERVICE_VERSION],
    everywhere: &[],
    reads: &[],
};

pub(super) static UNUSED: Rule = Rule {
    code: "OG017",
    name: "unused",
    severity: Severity::Info,
    summary: "Nobody uses an OperatorGroup",
    why: "There is no operator in its namespace, and none is on its way. It does no harm. Groups that come with OLM \
          (global-operators, olm-operators) and static ones are left out.",
    example: "kind: OperatorGroup\nmetadata: {name: all, namespace: garden}   # and no Subscription or ClusterServiceVersion",
    fix: "delete it, if nothing is to be installed there.",
    here: &[kind::CLUSTER_SERVICE_VERSION, kind::SUBSCRIPTION],
    everywhere: &[],
    reads: &[],
};

pub(super) static ORPHANED_COPY: Rule = Rule {
    code: "OG018",
    name: "orphaned-copy",
    severity: Severity::Warning,
    summary: "A copied ClusterServiceVersion has lost its original, or its namespace is no longer a target",
    why: "It tells the namespace's users of an operator that does not watch them. OLM deletes such copies when it runs.",
    example: "kind: ClusterServiceVersion\nmetadata: {name: rose.v1, namespace: field, labels: {olm.copiedFrom: garden}}",
    fix: "delete the copy.",
    here: &[],
    everywhere: &[kind::CLUSTER_SERVICE_VERSION],
    reads: &[],
};

pub(super) static ORPHANED_GROUP_ROLE: Rule = Rule {
    code: "OG019",
    name: "orphaned-group-role",
    severity: Severity::Warning,
    summary: "A ClusterRole of an OperatorGroup that is gone",
    why: "Every OperatorGroup has three ClusterRoles, olm.og.NAME.admin-…, -edit- and -view-, by which people get rights on what its \
          operators provide. OLM deletes them with the group when it runs. Those who are still bound keep the rights.",
    example: "kind: ClusterRole\nmetadata:\n  name: olm.og.all.admin-5UD4U2IfBGbw51Qy2Jaefk1uawvkj2OJILlc3w\n  \
              labels: {olm.owner: all, olm.owner.namespace: garden, olm.owner.kind: OperatorGroup}",
    fix: "delete it, and the bindings to it.",
    here: &[],
    everywhere: &[kind::OPERATOR_GROUP],
    reads: &[kind::CLUSTER_ROLE],
};

pub(super) static ORPHANED_RIGHTS: Rule = Rule {
    code: "OG020",
    name: "orphaned-rights",
    severity: Severity::Warning,
    summary: "Rights of a ClusterServiceVersion that is gone",
    why: "OLM copies the Roles of an operator to the namespaces it watches, or makes ClusterRoles of them, and deletes them with it. \
          What stays gives rights to a ServiceAccount that anybody may create again.",
    example: "kind: Role\nmetadata:\n  namespace: field\n  labels: {olm.copiedFrom: garden, olm.owner: rose.v1, \
              olm.owner.namespace: field, olm.owner.kind: ClusterServiceVersion}",
    fix: "delete it.",
    here: &[],
    everywhere: &[kind::CLUSTER_SERVICE_VERSION],
    reads: &[kind::ROLE, kind::ROLE_BINDING, kind::CLUSTER_ROLE, kind::CLUSTER_ROLE_BINDING],
};

pub(super) static PACKAGE_DOES_NOT_FIT: Rule = Rule {
    code: "OG021",
    name: "package-does-not-fit",
    severity: Severity::Warning,
    summary: "No version of the package that --package names supports the targets of an OperatorGroup",
    why: "A Subscription there would be resolved and installed, and then fail with UnsupportedOperatorGroup. The table shows for \
          every version which groups it fits, and which targets would fit it.",
    example: "kubectl olm operatorgroup lint --package rose --catalog tea=./catalog -n garden",
    fix: "install it in a namespace whose group it fits, or change the targets.",
    here: &[],
    everywhere: &[],
    reads: &[],
};

pub(super) static INVALID_FIELDS: Rule = Rule {
    code: "OG022",
    name: "invalid-fields",
    severity: Severity::Error,
    summary: "The API server would refuse an OperatorGroup",
    why: "A field of its spec does not exist, or what is in it is of another type. kubectl apply ends with the same words. Clients that \
          do not ask the API server to be strict lose the field instead, and a group without targets targets all namespaces.",
    example: "kind: OperatorGroup\nspec: {targetNamespace: [garden]}              # targetNamespaces",
    fix: "correct the field.",
    here: &[],
    everywhere: &[],
    reads: &[],
};
