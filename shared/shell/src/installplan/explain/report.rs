//! Renders an explanation as sections of items, for a terminal or as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use olm_core::api::cluster_service_version;
use olm_core::api::install_plan::Phase;
use olm_core::explain::{
    By, Change, Crd, Csv, CsvChange, DryRun, Explanation, Object, Optional, Permission, Plan, Totals, VerdictResult,
    Webhook, predecessors,
};

use super::super::policy::PolicyResult;
use super::diff;
use crate::cli::paint::{Paint, Tone};
use crate::visible::{lines, one_line};

/// Maximum number of items of a kind that are shown without `--details`.
const SHOWN: usize = 8;

/// Maximum length, in characters, of the message of an operator without `--details`.
const LONG: usize = 160;

/// Prefix of a line about a privileged permission or object, or a possible loss of data.
pub(super) const RISK: &str = "! ";

/// A titled group of items.
pub(super) struct Section {
    pub(super) title: String,
    pub(super) items: Vec<Item>,
    /// Whether the items are rendered as a bulleted list.
    is_list: bool,
    /// Whether the title is shown without any items.
    is_line: bool,
    /// The tone of the title.
    pub(super) tone: Tone,
}

impl Section {
    fn new(title: &str) -> Self {
        Self { title: title.to_owned(), items: Vec::new(), is_list: false, is_line: false, tone: Tone::Plain }
    }
}

/// A line, with nested lines and a diff.
#[derive(Default)]
pub(super) struct Item {
    pub(super) line: String,
    pub(super) under: Vec<String>,
    pub(super) diff: String,
}

impl Item {
    fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), ..Self::default() }
    }
}

/// Renders an explanation for a terminal.
pub(super) fn text(explanation: &Explanation, tried: &[PolicyResult], details: bool, paint: Paint) -> String {
    let mut text = format!("{}\n", one_line(&title(explanation)));
    rendered(sections(explanation, tried, details), paint, &mut text);
    let _ = writeln!(text, "\n{}\nHash: {}", totals(explanation), explanation.hash);
    if let Some(command) = approval(explanation) {
        let _ = writeln!(text, "To approve exactly this: {command}");
    }
    text
}

/// Renders every object with its changes, and every permission, for a terminal: what a user can request before the approval.
pub fn differences(explanation: &Explanation, paint: Paint) -> String {
    let mut text = format!("{}\n", one_line(&title(explanation)));
    let sections = [objects(explanation, true), permissions(explanation, true)];
    rendered(sections.into_iter().filter(|section| !section.items.is_empty()), paint, &mut text);
    let _ = writeln!(text, "\n{}", totals(explanation));
    text
}

fn rendered(sections: impl IntoIterator<Item = Section>, paint: Paint, text: &mut String) {
    for section in sections {
        let _ = writeln!(text, "\n{}", paint.tone(section.tone, &one_line(&section.title)));
        let bullet = if section.is_list { "- " } else { "" };
        for Item { line, under, diff } in section.items {
            let _ = writeln!(text, "  {bullet}{}", one_line(&line));
            for line in under {
                let tone = if line.starts_with(RISK) { Tone::Bad } else { Tone::Plain };
                let _ = writeln!(text, "      {}", paint.tone(tone, &one_line(&line)));
            }
            for line in paint.diff(&lines(&diff)).lines() {
                let _ = writeln!(text, "      {line}");
            }
        }
    }
}

/// Renders an explanation as Markdown.
pub(super) fn markdown(explanation: &Explanation, tried: &[PolicyResult], details: bool) -> String {
    let mut text = format!("# {}\n", escaped(&title(explanation)));
    for section in sections(explanation, tried, details) {
        let _ = writeln!(text, "\n## {}\n", escaped(section.title.trim_end_matches(':')));
        for Item { line, under, diff } in section.items {
            let _ = writeln!(text, "- {}", escaped(&line));
            for line in under {
                let _ = writeln!(text, "  - {}", escaped(&line));
            }
            if !diff.is_empty() {
                let diff = lines(&diff);
                let indented: String = diff.lines().map(|line| format!("  {line}\n")).collect();
                let fence = fence(&diff);
                let _ = writeln!(text, "\n  {fence}diff\n{indented}  {fence}");
            }
        }
    }
    let _ = writeln!(text, "\n{}\n\nHash: `{}`", totals(explanation), explanation.hash);
    if let Some(command) = approval(explanation) {
        let _ = writeln!(text, "\nTo approve exactly this: `{command}`");
    }
    text
}

/// Renders the numbers of objects and permissions.
fn totals(explanation: &Explanation) -> String {
    let Totals { add, change, destroy, gained, lost } = explanation.totals;
    format!("Total: {add} to add, {change} to change, {destroy} to destroy; permissions: {gained} gained, {lost} lost")
}

/// Returns the command that approves the plan if it still does the same; `None` if it cannot be approved.
pub(super) fn approval(explanation: &Explanation) -> Option<String> {
    let Plan { name, exists, phase, approved, .. } = &explanation.plan;
    let waits = *exists && !approved && phase == Phase::RequiresApproval.as_str();
    let namespace = &explanation.namespace;
    waits.then(|| format!("kubectl olm install-plan approve {name} -n {namespace} --explained {}", explanation.hash))
}

/// Returns a code fence that is longer than any run of backquotes in the text.
fn fence(text: &str) -> String {
    let mut longest = 2;
    let mut row = 0;
    for c in text.chars() {
        row = if c == '`' { row + 1 } else { 0 };
        longest = longest.max(row);
    }
    "`".repeat(longest + 1)
}

/// Escapes a text, so that Markdown renders it literally and in one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    // At the beginning of a line these characters start headings, quotes and lists; `.` and `)` after digits start lists.
    let (mut is_begun, mut is_number) = (false, true);
    for c in one_line(text).chars() {
        let begins = !is_begun && matches!(c, '#' | '>' | '+' | '-' | '=' | '~');
        let counts = is_begun && is_number && matches!(c, '.' | ')');
        is_begun |= c != ' ';
        is_number &= c == ' ' || c.is_ascii_digit();
        if begins || counts || matches!(c, '\\' | '*' | '_' | '`' | '<' | '[' | '|' | '&') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Renders the verdict and the operators: what is shown before an approval.
pub fn summary(explanation: &Explanation) -> String {
    let mut text = String::new();
    for csv in &explanation.csvs {
        let _ = writeln!(text, "{}", one_line(&csv_line(csv)));
    }
    let _ = writeln!(text, "{}", verdict_line(explanation));
    for because in explanation.verdict.reasons.iter().filter(|b| b.result != VerdictResult::Safe) {
        let _ = writeln!(text, "  - {}", one_line(&because.message));
    }
    text
}

/// Renders the summary, the numbers of objects, the permissions, and the CustomResourceDefinitions: what is shown before an
/// installation.
pub fn overview(explanation: &Explanation) -> String {
    let mut text = summary(explanation);
    let objects = Section { items: Vec::new(), ..objects(explanation, false) };
    let shown = if explanation.objects.is_empty() { Vec::new() } else { vec![objects] };
    let listed = [permissions(explanation, false), crds(explanation, false, SHOWN)];
    for Section { title, items, .. } in shown.into_iter().chain(listed.into_iter().filter(|s| !s.items.is_empty())) {
        let _ = writeln!(text, "{}", one_line(&title));
        for Item { line, under, .. } in items {
            let _ = writeln!(text, "  {}", one_line(&line));
            for line in under {
                let _ = writeln!(text, "    {}", one_line(&line));
            }
        }
    }
    text
}

pub(super) fn title(explanation: &Explanation) -> String {
    let Explanation { namespace, plan, .. } = explanation;
    let Plan { name, exists, phase, approval, approved, .. } = plan;
    if approval.is_empty() && explanation.verdict.result == VerdictResult::Unknown {
        return format!("Cannot determine whether an InstallPlan would be created in namespace {namespace}");
    }
    if approval.is_empty() {
        return format!("No InstallPlan would be created in namespace {namespace}");
    }
    if !exists {
        let then = if *approved { "it would be executed at once" } else { "it would wait for approval" };
        return format!("InstallPlan to be created in namespace {namespace}: {then}");
    }
    let state = match Phase::from(phase.as_str()) {
        Phase::RequiresApproval if *approved => "is approved, but not executed yet",
        Phase::RequiresApproval => "waits for approval",
        Phase::Installing => "is being executed",
        Phase::Complete => "is complete",
        Phase::Failed => "has failed",
        Phase::None | Phase::Planning | Phase::Other => "is new",
    };
    format!("InstallPlan {name} in namespace {namespace}: {state}")
}

fn verdict_line(explanation: &Explanation) -> &'static str {
    match explanation.verdict.result {
        VerdictResult::Safe if explanation.plan.approval.is_empty() => "Nothing to do:",
        VerdictResult::Safe => "Safe: the plan would succeed.",
        VerdictResult::NeedsDecision => "Needs review: the plan would succeed, but these effects need a decision:",
        VerdictResult::Unknown if explanation.plan.approval.is_empty() => "Unknown:",
        VerdictResult::Unknown => "Unknown: whether the plan would succeed cannot be determined:",
        VerdictResult::WouldFail if explanation.plan.approval.is_empty() => "No InstallPlan can be created:",
        VerdictResult::WouldFail => "The plan would fail:",
    }
}

fn tone(explanation: &Explanation) -> Tone {
    match explanation.verdict.result {
        VerdictResult::Safe => Tone::Good,
        VerdictResult::NeedsDecision | VerdictResult::Unknown => Tone::Doubtful,
        VerdictResult::WouldFail => Tone::Bad,
    }
}

pub(super) fn sections(explanation: &Explanation, tried: &[PolicyResult], details: bool) -> Vec<Section> {
    let shown = if details { usize::MAX } else { SHOWN };
    let sections = [
        verdict(explanation),
        list("Policies:", tried.iter().map(|tried| Item::new(tried.to_string())).collect(), usize::MAX),
        operators(explanation, details),
        objects(explanation, details),
        dry_run(explanation, details),
        permissions(explanation, details),
        list("Objects with effects beyond their namespace (!):", object_privileges(explanation), shown),
        crds(explanation, details, shown),
        list("Images:", images(explanation), shown),
        list("Webhooks:", explanation.webhooks.iter().filter_map(webhook).collect(), shown),
        list("Optional objects:", explanation.optional.iter().map(optional).collect(), shown),
        list("Bundles whose content is unavailable:", bundles(explanation), shown),
        list("Deprecated:", deprecations(explanation), shown),
        irreversible(explanation, shown),
        afterwards(explanation),
        list("Could not be read (this explanation may be incomplete):", unreadable(explanation), shown),
    ];
    sections.into_iter().filter(|section| !section.items.is_empty() || section.is_line).collect()
}

/// Returns a section that shows only the first items.
fn list(title: &str, mut items: Vec<Item>, shown: usize) -> Section {
    let more = items.len().saturating_sub(shown);
    if more > 1 {
        items.truncate(shown);
        items.push(Item::new(format!("and {more} more (--details shows them)")));
    }
    Section { items, ..Section::new(title) }
}

fn verdict(explanation: &Explanation) -> Section {
    let reasons = explanation.verdict.reasons.iter().map(|because| {
        let is_note = because.result == VerdictResult::Safe && explanation.verdict.result != VerdictResult::Safe;
        let note = if is_note { "note: " } else { "" };
        let hint = Some(&because.hint).filter(|hint| !hint.is_empty());
        let under = hint.map(|hint| format!("hint: {hint}")).into_iter().collect();
        Item { line: format!("{note}{}", because.message), under, ..Item::default() }
    });
    let items: Vec<Item> = reasons.collect();
    if items.is_empty() {
        let line = if explanation.plan.approval.is_empty() {
            "Everything that was requested is installed."
        } else {
            "All objects can be created, and no privileged permissions are gained."
        };
        return Section {
            items: vec![Item::new(line)],
            tone: tone(explanation),
            ..Section::new(verdict_line(explanation))
        };
    }
    Section { items, is_list: true, tone: tone(explanation), ..Section::new(verdict_line(explanation)) }
}

fn csv_line(csv: &Csv) -> String {
    let Csv { name, package, replaces, from, to, change, .. } = csv;
    let package = if package.is_empty() { name } else { package };
    let versions = match (from, to) {
        (Some(from), Some(to)) => format!("{from} -> {to}"),
        (None, Some(version)) | (Some(version), None) => version.clone(),
        (None, None) => String::new(),
    };
    let names = match replaces {
        Some(old) => format!("{old} -> {name}"),
        None => name.clone(),
    };
    let does = match change {
        CsvChange::Install => "install",
        CsvChange::Upgrade => "upgrade",
        CsvChange::Downgrade => "downgrade",
        CsvChange::Remove => "remove",
        CsvChange::None => "keep",
    };
    format!("{does} {package} {versions} ({names})")
}

fn operators(explanation: &Explanation, details: bool) -> Section {
    let items = explanation.csvs.iter().map(|csv| {
        let mut under: Vec<String> = csv.reasons.iter().map(|because| format!("because {because}")).collect();
        if csv.bystander {
            under.push("unrelated: it is in the same plan, but was not requested here".to_owned());
        }
        let comes_to = match csv.phase.as_str() {
            phase if phase.is_empty() || cluster_service_version::Phase::from(phase).has_succeeded() => None,
            phase if csv.message.is_empty() => Some(format!("it would stay in phase {phase}")),
            phase if details => Some(format!("it would stay in phase {phase}: {}", csv.message)),
            phase => Some(format!("it would stay in phase {phase}: {}", shortened(&csv.message))),
        };
        under.extend(comes_to);
        Item { line: csv_line(csv), under, ..Item::default() }
    });
    Section { items: items.collect(), ..Section::new("Operators:") }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Create => "create",
        Change::Update => "update",
        Change::Delete => "delete",
        Change::Unchanged => "leave",
        Change::Refused => "refused",
        Change::Skipped => "skip",
        Change::NotReached => "not reached",
    }
}

/// Returns what happens to an object. An object that takes the place of another one is a replacement.
fn verb(object: &Object) -> &'static str {
    match object.change {
        Change::Create if !object.replaces.is_empty() => "replace",
        change => word(change),
    }
}

/// The verbs of objects, as participles, in the order in which they are counted.
const COUNTED: [(&str, &str); 8] = [
    ("create", "created"),
    ("update", "updated"),
    ("replace", "replaced"),
    ("delete", "deleted"),
    ("leave", "unchanged"),
    ("refused", "refused"),
    ("skip", "skipped"),
    ("not reached", "not reached"),
];

fn objects(explanation: &Explanation, details: bool) -> Section {
    let predecessors = predecessors(explanation);
    // A replaced object is shown with its successor.
    let is_replaced = |object: &Object| object.change == Change::Delete && !object.replaced_by.is_empty();
    let shown = || explanation.objects.iter().enumerate().filter(|(_, object)| !is_replaced(object));
    let counts = COUNTED.into_iter().map(|(does, word)| (shown().filter(|(_, o)| verb(o) == does).count(), word));
    let counts: Vec<String> = counts.filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let title = format!("Objects: {}", counts.join(", "));
    let items = if details {
        let item = |(index, object): (usize, &Object)| {
            let before = predecessors.get(&index).unwrap_or(&object.before);
            Item { diff: diff::lines(before, &object.after), ..object_item(object) }
        };
        shown().map(item).collect()
    } else {
        let objects = || shown().map(|(_, object)| object);
        let mut items = grouped(objects().filter(|o| o.by == By::Step && o.change != Change::Unchanged));
        let others = grouped(objects().filter(|o| o.by != By::Step));
        if !others.is_empty() {
            items.push(Item::new("and as a consequence:"));
            items.extend(others.into_iter().map(|item| Item { line: format!("  {}", item.line), ..item }));
        }
        items
    };
    Section { items, ..Section::new(&title) }
}

fn object_item(object: &Object) -> Item {
    let Object { gvk, namespace, by, message, .. } = object;
    let by = match by {
        By::Step => "",
        By::Olm => " (by OLM)",
        By::GarbageCollection => " (garbage collection)",
    };
    let names = names(object);
    let path = if namespace.is_empty() { names } else { format!("{namespace}/{names}") };
    let under = Some(message.clone()).filter(|message| !message.is_empty()).into_iter().collect();
    Item { line: format!("{} {} {path}{by}", verb(object), gvk.kind), under, ..Item::default() }
}

/// Returns the name of an object, and of the object that it replaces.
fn names(object: &Object) -> String {
    match object.replaces.as_str() {
        "" => object.name.clone(),
        old => format!("{old} by {}", object.name),
    }
}

/// Returns one line per kind and change, in order of their first object.
fn grouped<'o>(objects: impl Iterator<Item = &'o Object>) -> Vec<Item> {
    let mut groups: Vec<((&str, &str), Vec<&Object>)> = Vec::new();
    for object in objects {
        let key = (verb(object), object.gvk.kind.as_str());
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(object),
            None => groups.push((key, vec![object])),
        }
    }
    let item = |((verb, kind), group): ((&str, &str), Vec<&Object>)| match &group[..] {
        [one] => Item::new(format!("{verb} {kind} {}", names(one))),
        [first, second] => Item::new(format!("{verb} 2 {}: {}, {}", plural(kind), names(first), names(second))),
        [first, ..] => {
            let (n, kind) = (group.len(), plural(kind));
            Item::new(format!("{verb} {n} {kind}: {} and {} more", names(first), n - 1))
        }
        [] => Item::default(),
    };
    groups.into_iter().map(item).collect()
}

fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

/// Returns a line about the results of the API server's dry run, and why objects were not sent.
fn dry_run(explanation: &Explanation, details: bool) -> Section {
    let DryRun { sent, accepted, refused, not_sent, message } = &explanation.dry_run;
    let all = u64::try_from(refused.len()).unwrap_or_default() + accepted;
    let objects = |n: u64| if n == 1 { "1 object".to_owned() } else { format!("{n} objects") };
    let because = if message.is_empty() { String::new() } else { format!(": {message}") };
    let title = match (*sent, accepted) {
        (false, _) => format!("Dry run: no objects were sent to the API server{because}"),
        (true, n) if *n == all && message.is_empty() => {
            format!("Dry run: the API server would accept {}", objects(all))
        }
        (true, n) if *n == all => {
            format!("Dry run: the API server would accept the {} that were sent{because}", objects(all))
        }
        (true, n) => format!("Dry run: the API server would accept {n} of {}{because}", objects(all)),
    };
    let unsent = not_sent.iter().filter(|_| details);
    let items = unsent
        .map(|failure| Item::new(format!("no result for {} {}: {}", failure.gvk.kind, failure.name, failure.message)));
    Section { items: items.collect(), is_line: *sent || !message.is_empty(), ..Section::new(&title) }
}

fn permissions(explanation: &Explanation, details: bool) -> Section {
    let rbac = &explanation.rbac;
    let mut items = Vec::new();
    for (word, permissions) in [("gains", &rbac.gained), ("loses", &rbac.lost)] {
        let mut accounts: BTreeMap<&str, Vec<&Permission>> = BTreeMap::new();
        for permission in permissions {
            accounts.entry(&permission.account).or_default().push(permission);
        }
        for (account, permissions) in accounts {
            let (marked, ordinary): (Vec<_>, Vec<_>) = permissions.into_iter().partition(|r| !r.escalations.is_empty());
            let shown = if details { usize::MAX } else { SHOWN };
            let mut under: Vec<String> = marked
                .iter()
                .take(shown)
                .map(|permission| format!("{RISK}{}", render_permission(permission)))
                .collect();
            let more = marked.len().saturating_sub(shown);
            if more > 0 {
                under.push(format!("{RISK}and {more} more privileged permissions"));
            }
            match ordinary.len() {
                0 => {}
                n if details || marked.is_empty() && n <= SHOWN => {
                    under.extend(ordinary.iter().map(|permission| render_permission(permission)));
                }
                1 => under.push("and 1 unprivileged permission".to_owned()),
                n => under.push(format!("{}{n} unprivileged permissions", if marked.is_empty() { "" } else { "and " })),
            }
            items.push(Item { line: format!("{account} {word}"), under, ..Item::default() });
        }
    }
    if !rbac.aggregated.is_empty() {
        let n = rbac.aggregated.len();
        let under = if details { rbac.aggregated.clone() } else { Vec::new() };
        let line =
            format!("{n} ClusterRoles for users change: aggregated to admin, edit and view, or of an OperatorGroup");
        items.push(Item { line, under, ..Item::default() });
    }
    let title = if rbac.escalates { "Permissions (! privileged):" } else { "Permissions:" };
    Section { items, ..Section::new(title) }
}

/// Returns the objects with escalations.
fn object_privileges(explanation: &Explanation) -> Vec<Item> {
    let marked = explanation.objects.iter().filter(|object| !object.escalations.is_empty());
    let item = |object: &Object| {
        let marks = object.escalations.iter().map(|escalation| format!("{RISK}{}", escalation.words()));
        Item { line: format!("{} {}", object.gvk.kind, object.name), under: marks.collect(), ..Item::default() }
    };
    marked.map(item).collect()
}

/// Renders a permission as a phrase.
pub(crate) fn render_permission(permission: &Permission) -> String {
    let Permission { namespace, api_groups, resources, resource_names, non_resource_urls, verbs, escalations, .. } =
        permission;
    let place = match namespace {
        Some(namespace) => format!(" in namespace {namespace}"),
        None => " cluster-wide".to_owned(),
    };
    let groups: Vec<&str> = api_groups.iter().map(String::as_str).filter(|group| !group.is_empty()).collect();
    let what = if resources.is_empty() {
        non_resource_urls.join(", ")
    } else {
        let groups = if groups.is_empty() { String::new() } else { format!(" of {}", groups.join(", ")) };
        format!("{}{groups}", resources.join(", "))
    };
    let named = if resource_names.is_empty() { String::new() } else { format!(" named {}", resource_names.join(", ")) };
    let marks: Vec<&str> = escalations.iter().map(|escalation| escalation.words()).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
    if verbs.is_empty() {
        return format!("the rules of {}{place}{marks}", permission.role);
    }
    format!("{} {what}{named}{place}{marks}", verbs.join(", "))
}

fn crds(explanation: &Explanation, details: bool, shown: usize) -> Section {
    let worth = |crd: &&Crd| details || crd.change != Change::Unchanged || !crd.safe;
    let items = explanation.crds.iter().filter(worth).map(|crd| {
        let mut parts = vec![word(crd.change).to_owned()];
        if crd.change != Change::Create && !crd.added_versions.is_empty() {
            parts.push(format!("adds version {}", crd.added_versions.join(", ")));
        }
        if !crd.removed_versions.is_empty() {
            parts.push(format!("removes version {}", crd.removed_versions.join(", ")));
        }
        if let Some((old, new)) = &crd.storage {
            parts.push(format!("storage version {new} instead of {old}"));
        }
        match crd.existing {
            _ if crd.change == Change::Create || !crd.safe => {}
            None => parts.push("its objects could not be read".to_owned()),
            Some(0) => parts.push("no existing objects".to_owned()),
            Some(1) => parts.push("the existing object is valid".to_owned()),
            Some(n) => parts.push(format!("all {n} existing objects are valid")),
        }
        let mut under = Vec::new();
        if !crd.safe {
            under.push(format!("{RISK}{}", crd.message));
            under.extend(crd.invalid.iter().chain(&crd.losses).cloned());
        }
        Item { line: format!("{}: {}", crd.name, parts.join("; ")), under, ..Item::default() }
    });
    list("CustomResourceDefinitions:", items.collect(), shown)
}

fn images(explanation: &Explanation) -> Vec<Item> {
    let images = &explanation.images;
    let by_tag = |image: &String| {
        let moves = images.by_tag.contains(image);
        if moves { " (tag: the image may change)" } else { "" }
    };
    let added = images.added.iter().map(|image| Item::new(format!("+ {image}{}", by_tag(image))));
    let removed = images.removed.iter().map(|image| Item::new(format!("- {image}")));
    added.chain(removed).collect()
}

fn webhook(webhook: &Webhook) -> Option<Item> {
    let Webhook { name, r#type, change, rules, failure_policy, .. } = webhook;
    if *change == Change::Unchanged {
        return None;
    }
    let without = match failure_policy.as_str() {
        "Fail" => "; requests fail if it does not respond",
        "Ignore" => "; requests continue if it does not respond",
        _ => "",
    };
    Some(Item::new(format!("{} {type} {name}: {}{without}", word(*change), rules.join("; "))))
}

fn optional(optional: &Optional) -> Item {
    let Optional { gvk, name, skipped, message, .. } = optional;
    let line =
        if *skipped { format!("skip {} {name}: {message}", gvk.kind) } else { format!("create {} {name}", gvk.kind) };
    Item::new(line)
}

fn bundles(explanation: &Explanation) -> Vec<Item> {
    let missing = explanation.bundles.iter().filter(|bundle| !bundle.unpacked);
    missing.map(|bundle| Item::new(format!("{} ({}): {}", bundle.csv, bundle.image, bundle.message))).collect()
}

fn deprecations(explanation: &Explanation) -> Vec<Item> {
    let items = explanation
        .deprecations
        .iter()
        .map(|d| Item::new(format!("{} {} (Subscription {}): {}", d.what, d.name, d.subscription, d.message)));
    items.collect()
}

/// Groups the objects by effect, so that each effect is listed once.
fn irreversible(explanation: &Explanation, shown: usize) -> Section {
    let mut sentences: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &explanation.irreversible {
        match sentences.iter_mut().find(|(message, _)| *message == one.message) {
            Some((_, objects)) => objects.push(&one.object),
            None => sentences.push((&one.message, vec![&one.object])),
        }
    }
    let item = |(message, objects): (&str, Vec<&str>)| match &objects[..] {
        [one] => Item::new(format!("{one} {message}")),
        many => {
            let named = many.len().min(shown);
            let mut under: Vec<String> = many[..named].iter().map(|object| (*object).to_owned()).collect();
            if named < many.len() {
                under.push(format!("and {} more", many.len() - named));
            }
            Item { line: format!("each of these {} {message}:", many.len()), under, ..Item::default() }
        }
    };
    Section { items: sentences.into_iter().map(item).collect(), ..Section::new("What cannot be undone:") }
}

fn afterwards(explanation: &Explanation) -> Section {
    let items = explanation.afterwards.iter().map(|next| {
        let when = if next.needs_approval { "after approval" } else { "without approval" };
        Item::new(format!("{}, {when}", next.csvs.join(", ")))
    });
    Section { items: items.collect(), ..Section::new("Next InstallPlans:") }
}

fn unreadable(explanation: &Explanation) -> Vec<Item> {
    explanation.unreadable.iter().map(|unreadable| Item::new(unreadable.message.clone())).collect()
}
