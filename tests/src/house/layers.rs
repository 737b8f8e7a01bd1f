//! Permitted imports between modules and crates.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::generated::Generated;
use super::sources::{self, Source, code};
use super::{Finding, manifests};

/// A layer of a crate.
struct Layer {
    /// Its name in the table of the crate's documentation; the module, if it has only one.
    name: &'static str,
    /// Its modules; empty: all modules that no other layer names.
    modules: &'static [&'static str],
    /// What the modules are for.
    purpose: &'static str,
}

const fn layer(name: &'static str, modules: &'static [&'static str], purpose: &'static str) -> Layer {
    Layer { name, modules, purpose }
}

/// olm-core's layers from the lowest to the highest: a module may import from lower layers and, except for controllers, from its
/// own. Controllers do not import each other.
const CORE: [Layer; 10] = [
    layer(
        "foundation",
        &[
            "api",
            "budget",
            "finding",
            "go_format",
            "listing",
            "markup",
            "settings",
            "structural",
            "version",
            "visible",
            "yaml",
        ],
        "objects, formats and limits",
    ),
    layer("content", &["bundle", "catalog", "constraint"], "what catalogs and bundles contain"),
    layer("state", &["plan", "world"], "decisions as values; the known state of the cluster"),
    layer(
        "rules",
        &["membership", "metrics", "packages", "rbac", "resolver", "unpack"],
        "rules that several controllers share, metrics, and PackageManifests",
    ),
    layer(CONTROLLERS, &[], "plans for the objects of a kind"),
    layer(
        "health",
        &["diagnosis", "distribution", "health", "removal"],
        "the objects of OLM itself, the state of operators with its causes, and their removal",
    ),
    layer("planner", &["planner"], "selects the key to plan next"),
    layer("sim", &["sim"], "an in-memory API server, and the simulation loop"),
    layer("explain", &["explain"], "the effects of an InstallPlan, determined by simulation"),
    layer(
        "lint",
        &["doctor", "lint", "validate"],
        "problems of clusters, OperatorGroups and bundles, according to the controllers' own rules",
    ),
];

const CONTROLLERS: &str = "controllers";

/// olm-shell's layers from the lowest to the highest: a module may import from lower layers and from its own. `CliError` belongs to
/// `cli`, so each lower module has an error type of its own.
const SHELL: [Layer; 8] = [
    layer("common", &["blocking", "causes", "listener", "tls", "visible"], "used by all other layers"),
    layer("image", &["image"], "images: pulled from registries, read from OCI layouts"),
    layer("registry", &["registry"], "catalogs: directories, and the gRPC protocol, as client and server"),
    layer("cluster", &["cluster"], "the API server: requests, watches, the loop of the controllers, the Lease"),
    layer("observe", &["observe"], "the state of a cluster, or of files instead of it, read once as a World"),
    layer("cli", &["cli"], "the command line: flags, streams, tables, errors as shown to users"),
    layer("commands", &[], "what each command does"),
    layer("program", &["program", "reference"], "the `main` function of plugins, and the reference of their commands"),
];

/// Returns the height of a module's layer; a higher layer imports from lower ones.
fn height(layers: &[Layer], module: &str) -> usize {
    let others = layers.iter().position(|layer| layer.modules.is_empty()).unwrap_or_default();
    layers.iter().position(|layer| layer.modules.contains(&module)).unwrap_or(others)
}

/// Returns `lib.rs` of olm-core and of olm-shell with the tables of their layers, from the highest to the lowest.
///
/// # Errors
/// A file cannot be read or has no table.
pub fn tables() -> Result<Vec<Generated>> {
    [("shared/core/src/lib.rs", &CORE[..]), ("shared/shell/src/lib.rs", &SHELL[..])]
        .into_iter()
        .map(|(file, layers)| {
            let text = fs::read_to_string(sources::root().join(file)).context(file)?;
            let (before, rest) = text.split_once("//! ```text\n").context(file)?;
            let (_, after) = rest.split_once("//! ```\n").context(file)?;
            let table = table(layers, after);
            Ok(Generated { file: file.into(), text: format!("{before}//! ```text\n{table}//! ```\n{after}") })
        })
        .collect()
}

/// Returns the table of layers; `declarations` declares the modules of the crate.
fn table(layers: &[Layer], declarations: &str) -> String {
    const WIDTH: usize = 120;
    let declared =
        declarations.lines().filter_map(|line| line.strip_suffix(';')?.split_once("mod ").map(|(_, name)| name));
    let is_named = |module: &&str| layers.iter().any(|layer| layer.modules.contains(module));
    let others: Vec<&str> = declared.filter(|module| !is_named(module) && *module != "testing").collect();
    let column = layers.iter().map(|layer| layer.name.len()).max().unwrap_or_default() + 2;
    let mut table = String::new();
    for Layer { name, modules, purpose } in layers.iter().rev() {
        table += &format!("//!   {name:column$}{purpose}\n");
        let modules = if modules.is_empty() { &others[..] } else { modules };
        if modules == [*name] {
            continue;
        }
        let mut line = String::new();
        for (at, module) in modules.iter().enumerate() {
            let word = if at + 1 < modules.len() { format!("{module}, ") } else { (*module).to_owned() };
            if line.len() + word.len() > WIDTH - column {
                table += &format!("//!   {:column$}{}\n", "", line.trim_end());
                line.clear();
            }
            line += &word;
        }
        table += &format!("//!   {:column$}{line}\n", "");
    }
    table
}

/// Returns imports between olm-core's modules that lead to a higher layer, to another controller, or into a cycle.
pub fn core_modules(sources: &[Source]) -> Vec<Finding> {
    let wrong = |here: &str, there: &str| {
        let (here_at, there_at) = (height(&CORE, here), height(&CORE, there));
        let is_wrong = there_at > here_at || there_at == here_at && CORE[here_at].name == CONTROLLERS;
        is_wrong.then(|| format!("{here} imports {there}: controllers import lower layers, and not each other"))
    };
    modules("shared/core/src", sources, wrong)
}

/// Returns imports between olm-shell's modules that lead to a higher layer or into a cycle, except in test code.
pub fn shell_modules(sources: &[Source]) -> Vec<Finding> {
    let wrong = |here: &str, there: &str| {
        (height(&SHELL, there) > height(&SHELL, here))
            .then(|| format!("{here} imports {there}, which is in a higher layer"))
    };
    let sources = sources.iter().filter(|source| !source.is_test);
    modules("shared/shell/src", sources, wrong)
}

/// Returns forbidden imports and cycles between the modules of a crate.
fn modules<'a>(
    root: &str,
    sources: impl IntoIterator<Item = &'a Source>,
    wrong: impl Fn(&str, &str) -> Option<String>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources {
        let Ok(inside) = source.file.strip_prefix(root) else { continue };
        let depth = inside.components().count();
        let Some(module) = inside.components().next() else { continue };
        let module = module.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
        if module == "lib" {
            continue;
        }
        for (path, line) in code(source).paths {
            let Some(path) = from_the_crate(&path, inside, depth) else { continue };
            let (other, _) = path.split_once("::").unwrap_or((path, ""));
            if other == module || other.starts_with(char::is_uppercase) {
                continue;
            }
            if let Some(what) = wrong(&module, other) {
                findings.push(Finding::new(&source.file, line, what));
            }
            imports.entry(module.clone()).or_default().insert(other.to_owned());
        }
    }
    findings.extend(circles(root, &imports));
    findings.dedup();
    findings
}

/// Returns a path relative to the crate root, if it leads there. `inside` is the file that contains it, `depth` the number of
/// its components.
fn from_the_crate<'a>(path: &'a str, inside: &Path, depth: usize) -> Option<&'a str> {
    if let Some(rest) = path.strip_prefix("crate::") {
        return Some(rest);
    }
    // From `a/b.rs`, which is module a::b, two `super` lead to the crate root.
    let is_mod = inside.file_name().is_some_and(|name| name == "mod.rs");
    let to_the_crate = if is_mod { depth - 1 } else { depth };
    (0..to_the_crate.max(1)).try_fold(path, |rest, _| rest.strip_prefix("super::"))
}

/// Returns modules that import themselves indirectly.
fn circles(root: &str, imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for start in imports.keys() {
        let mut reached = BTreeSet::new();
        let mut open: Vec<_> = imports.get(start).into_iter().flatten().collect();
        while let Some(module) = open.pop() {
            if reached.insert(module) {
                open.extend(imports.get(module).into_iter().flatten());
            }
        }
        if reached.contains(start) {
            let what = format!("{start} imports itself indirectly: {reached:?}");
            findings.push(Finding::new(format!("{root}/lib.rs"), 0, what));
        }
    }
    findings
}

/// The source folders in which files must not import each other in a cycle.
pub const WITHOUT_CIRCLES: [&str; 2] = ["shared/core/src", "shared/shell/src"];

/// Returns cycles between files below the roots. Imports of a module from its own folder are ignored, because they form the
/// module, and so is test code. An import counts for the file that defines the imported item, not for one that re-exports it.
pub fn circles_of_files(sources: &[Source], roots: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for root in roots {
        let files = Files::below(root, sources);
        let imports: BTreeMap<&Module, BTreeSet<&Module>> =
            files.0.iter().map(|(module, file)| (module, files.imports(module, file))).collect();
        for (module, file) in &files.0 {
            if let Some(way) = way_back(module, &imports) {
                let way: Vec<String> = way.iter().map(|module| module.join("::")).collect();
                let what = format!("imports itself: {}", way.join(" -> "));
                findings.push(Finding::new(&file.source.file, 0, what));
            }
        }
    }
    findings
}

/// The path of a module from the crate root.
type Module = Vec<String>;

/// A file with the names that it imports: local name and path.
struct File<'a> {
    source: &'a Source,
    names: Vec<(String, String)>,
    defined: BTreeSet<String>,
}

struct Files<'a>(BTreeMap<Module, File<'a>>);

impl<'a> Files<'a> {
    fn below(root: &str, sources: &'a [Source]) -> Self {
        let files = sources.iter().filter(|source| !source.is_test).filter_map(|source| {
            let inside = source.file.strip_prefix(root).ok()?.with_extension("");
            let mut module: Module = inside.iter().map(|name| name.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|name| matches!(name.as_str(), "lib" | "main" | "mod")) {
                module.pop();
            }
            let (mut names, mut defined) = (Vec::new(), BTreeSet::new());
            for item in &source.syntax.items {
                if let syn::Item::Use(item) = item {
                    renamed("", &item.tree, &mut names);
                }
                defined.extend(defines(item));
            }
            Some((module, File { source, names, defined }))
        });
        Self(files.collect())
    }

    /// Returns the files that a file imports, without those of its own folder.
    fn imports(&self, module: &Module, file: &File<'a>) -> BTreeSet<&Module> {
        let paths = code(file.source).paths.into_iter();
        let imported = paths.filter_map(|(path, _)| self.defining(&absolute(module, &path)?, 0));
        imported.filter(|other| !other.starts_with(module)).collect()
    }

    /// Returns the file that defines the item at a path from the crate root, following re-exports.
    fn defining(&self, path: &[String], followed: usize) -> Option<&Module> {
        const FOLLOWED: usize = 8;
        let (module, file) = (0..=path.len()).rev().find_map(|length| self.0.get_key_value(&path[..length]))?;
        let Some(name) = path.get(module.len()).filter(|_| followed < FOLLOWED) else { return Some(module) };
        if file.defined.contains(name) {
            return Some(module);
        }
        for (new, path) in &file.names {
            let Some(other) = absolute(module, path) else { continue };
            if new == name {
                return self.defining(&other, followed + 1);
            }
            let is_there = |other: &Module| self.0.get(other).is_some_and(|other| other.defined.contains(name));
            if new == "*" && is_there(&other) {
                return self.0.get_key_value(&other).map(|(module, _)| module);
            }
        }
        Some(module)
    }
}

/// Resolves a path that begins with `crate`, `self` or `super` to one from the crate root.
fn absolute(module: &Module, path: &str) -> Option<Module> {
    let mut names = path.split("::").map(str::to_owned).peekable();
    let mut absolute = module.clone();
    match names.next()?.as_str() {
        "crate" => absolute.clear(),
        "self" => {}
        "super" => {
            absolute.pop()?;
            while names.next_if(|name| name == "super").is_some() {
                absolute.pop()?;
            }
        }
        _ => return None,
    }
    absolute.extend(names.filter(|name| name != "self"));
    Some(absolute)
}

/// Returns the names that a `use` imports, with their paths; `*` for a glob import.
fn renamed(prefix: &str, tree: &syn::UseTree, names: &mut Vec<(String, String)>) {
    let joined = |name: &syn::Ident| if prefix.is_empty() { name.to_string() } else { format!("{prefix}::{name}") };
    match tree {
        syn::UseTree::Path(path) => renamed(&joined(&path.ident), &path.tree, names),
        syn::UseTree::Name(name) => names.push((name.ident.to_string(), joined(&name.ident))),
        syn::UseTree::Rename(name) => names.push((name.rename.to_string(), joined(&name.ident))),
        syn::UseTree::Glob(_) => names.push(("*".to_owned(), prefix.to_owned())),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| renamed(prefix, tree, names)),
    }
}

fn defines(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        _ => return None,
    };
    Some(name.to_string())
}

/// Returns the shortest import cycle from a module back to itself.
fn way_back<'a>(start: &'a Module, imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> Option<Vec<&'a Module>> {
    let mut ways = VecDeque::from([vec![start]]);
    let mut reached = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        let here = way.last()?;
        for next in imports.get(here).into_iter().flatten() {
            if *next == start {
                return Some([&way[..], &[start]].concat());
            }
            if reached.insert(*next) {
                ways.push_back([&way[..], &[*next]].concat());
            }
        }
    }
    None
}

/// Crates that plugins must not depend on: the shell wraps them.
const NOT_IN_PLUGINS: [&str; 8] =
    ["hyper", "k8s-openapi", "kube", "olm-core", "rustls", "tokio", "tonic", "tracing-subscriber"];

/// Returns dependencies between crates that lead to a higher layer or bypass the shell.
pub fn crates() -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in manifests::members()? {
        let banned = |name: &str| match member.name.as_str() {
            "olm-core" => name.starts_with("olm-") || name.starts_with("kubectl-olm"),
            "olm-shell" => name == "olm-tests" || name.starts_with("kubectl-olm"),
            "olm-tests" => name.starts_with("kubectl-olm"),
            _ => NOT_IN_PLUGINS.contains(&name) || name.starts_with("kubectl-olm"),
        };
        let wrong = member.dependencies().filter(|(_, name, _)| banned(name));
        findings.extend(wrong.map(|(table, name, _)| {
            Finding::new(&member.file, 0, format!("[{table}] {name}: imports go plugins -> shell -> core"))
        }));
    }
    Ok(findings)
}
