//! Each rule reports violations, and nothing else.

use std::path::Path;

use super::sources::{Source, parse};
use super::{Finding, citations, descriptions, layers, purity, vocabulary, words};

fn core(files: &[(&str, &str)]) -> Vec<Source> {
    let files = files.iter().map(|(file, text)| Ok((format!("shared/core/src/{file}").into(), (*text).to_owned())));
    parse(files).unwrap()
}

fn places(findings: &[Finding]) -> Vec<(String, usize)> {
    findings
        .iter()
        .map(|finding| (finding.file.file_name().unwrap().to_string_lossy().into_owned(), finding.line))
        .collect()
}

#[test]
fn side_effects_in_the_core_are_found() {
    let sources = core(&[(
        "world/mod.rs",
        "use std::{collections::{BTreeMap, HashMap}, env};\n\
         // std::fs is only mentioned, and so is println!\n\
         fn now() { jiff::Timestamp::now() }\n\
         fn read() { std::fs::read(\"std::net\") }\n\
         fn say() { println!(\"\") }\n\
         fn list() { vec![std::process::id()] }\n\
         fn fine(fs: std::io::Result<()>) { write!(f, \"\") }\n\
         #[cfg(test)] mod tests { use std::thread; #[test] fn t() { println!(\"\") } }\n",
    )]);
    let found: Vec<_> = places(&purity::core(&sources)).into_iter().map(|(_, line)| line).collect();
    assert_eq!(found, [1, 1, 3, 4, 6, 5]);
}

#[test]
fn test_modules_are_ignored() {
    let sources = core(&[
        ("lib.rs", "#[cfg(test)] mod testing; mod world;"),
        ("testing.rs", "use std::fs;"),
        ("world.rs", "#[cfg(test)] mod tests;"),
        ("world/tests.rs", "use std::fs;"),
    ]);
    assert_eq!(purity::core(&sources), []);
    assert_eq!(sources.iter().map(|source| source.is_test).collect::<Vec<_>>(), [false, true, false, true]);
}

#[test]
fn imports_to_higher_layers_across_and_in_cycles_are_found() {
    let caught = |file: &str, text: &str| places(&layers::core_modules(&core(&[(file, text)]))).len();
    assert_eq!(caught("api/mod.rs", "use crate::world::World;"), 1, "up");
    assert_eq!(caught("csv/mod.rs", "use crate::installplan::Plan;"), 1, "across");
    assert_eq!(caught("csv/status/deep.rs", "use super::super::super::installplan::Plan;"), 1, "across, by super");
    assert_eq!(caught("csv/mod.rs", "fn f() { super::planner::plan() }"), 1, "up, in code");
    assert_eq!(caught("csv/mod.rs", "use crate::{api::object, plan::Plan, rbac, world::World};"), 0, "down");
    assert_eq!(caught("csv/status.rs", "use super::Csv; use super::super::csv::model;"), 0, "within");
    assert_eq!(caught("planner/mod.rs", "use crate::{csv, installplan};"), 0, "the planner imports controllers");

    let round = core(&[("world.rs", "use crate::plan::Plan;"), ("plan.rs", "use crate::world::World;")]);
    assert_eq!(layers::core_modules(&round).len(), 2);
}

#[test]
fn imports_of_the_shell_to_higher_layers_are_found() {
    let caught = |file: &str, text: &str| {
        let file = (Path::new("shared/shell/src").join(file), text.to_owned());
        places(&layers::shell_modules(&parse([Ok(file)]).unwrap())).len()
    };
    assert_eq!(caught("image/mod.rs", "use crate::cli::Printer;"), 1, "a library imports no command line");
    assert_eq!(caught("image/pull.rs", "fn f() -> Result<(), crate::cli::CliError> {}"), 1, "its errors are its own");
    assert_eq!(caught("cluster/live.rs", "use crate::{observe, run};"), 2, "up");
    assert_eq!(caught("cli/flags.rs", "use crate::run::Mode;"), 1, "commands import cli, and cli imports no command");
    assert_eq!(caught("run/live.rs", "use crate::{causes, cli, cluster, observe, registry};"), 0, "down");
    assert_eq!(
        caught("image/mod.rs", "#[cfg(test)] mod tests { use crate::cli::Printer; }"),
        0,
        "tests may import everything"
    );
}

#[test]
fn cycles_of_files_are_found() {
    let caught = |files: &[(&str, &str)]| {
        let findings = layers::circles_of_files(&core(files), &["shared/core/src"]);
        places(&findings).into_iter().map(|(file, _)| file).collect::<Vec<_>>()
    };
    let module = (
        "csv/mod.rs",
        "mod a; mod b; mod c; pub use self::a::A; pub use self::b::*; pub struct Own; fn f() { a::go() }",
    );
    let both = ["a.rs", "b.rs"];
    let b = ("csv/b.rs", "use super::a; pub struct B;");
    assert_eq!(caught(&[module, ("csv/a.rs", "use super::b::B;"), b]), both, "by use");
    assert_eq!(caught(&[module, ("csv/a.rs", "fn f() { super::b::go() }"), b]), both, "in code");
    assert_eq!(
        caught(&[module, ("csv/a.rs", "use crate::csv::B; pub struct A;"), b]),
        both,
        "by what the folder re-exports"
    );
    let c = ("csv/c.rs", "use super::b::B;");
    assert_eq!(caught(&[module, ("csv/a.rs", "use super::c;"), b, c]), ["a.rs", "b.rs", "c.rs"], "three");
    assert_eq!(
        caught(&[module, ("csv/a.rs", "use super::Own; pub struct A;"), b, c]),
        [""; 0],
        "a folder and its files"
    );
    assert_eq!(caught(&[module, ("csv/a.rs", "#[cfg(test)] mod tests { use super::super::b; }"), b]), [""; 0], "tests");
}

#[test]
fn long_and_undocumented_files_are_found() {
    let long = "\n".repeat(701);
    let sources = core(&[("a.rs", "//! Has a job.\n"), ("b.rs", &long), ("c/tests.rs", ""), ("c/tests/d.rs", "")]);
    assert_eq!(places(&words::too_long(&sources)), [("b.rs".to_owned(), 701)]);
    assert_eq!(places(&words::without_a_job(&sources)), [("b.rs".to_owned(), 1)]);
}

#[test]
fn unknown_commands_flags_and_packages_are_found() {
    let promises = words::Promises::kept().unwrap();
    let made_up = ["brew", "kubectl-olm-brew", "--brew"];
    for broken in [
        format!("kubectl olm {}", made_up[0]),
        format!("cargo run --release -p {} -- --simulate", made_up[1]),
        format!("kubectl olm run --once {}", made_up[2]),
        format!("cargo run -p kubectl-olm-run -- {}", made_up[2]),
    ] {
        assert_eq!(promises.broken_by(&broken).len(), 1, "{broken}");
    }
    for kept in ["kubectl olm run --once", "kubectl olm version", "kubectl olm --help", "cargo test -p olm-core"] {
        assert!(promises.broken_by(kept).is_empty(), "{kept}");
    }
}

#[test]
fn broken_citations_are_found() {
    let page = "# Plans\n\n## Phases of a `plan`\n\n## Twice\n\n## Twice\n\n```sh\n# no heading\n```\n";
    let caught = |file: &str, text: &str| {
        let files =
            [("shared/docs/olm/plan.md", page), ("shared/core/src/lib.rs", ""), ("README.md", ""), (file, text)];
        let files: Vec<_> = files.iter().map(|(file, text)| ((*file).into(), (*text).to_owned())).collect();
        citations::broken_in(&files).unwrap().len()
    };
    for (file, fine) in [
        ("a.rs", "//! Phases (olm/plan.md#phases-of-a-plan, olm/plan.md). See shared/docs/olm/plan.md.\n"),
        ("a.rs", "fn f() { g(\"nowhere.md\") } // See https://example.com/nowhere.md and RFC 1 §2.\n"),
        ("a.yaml", "# See olm/plan.md#twice-1.\nkey: nowhere.md\n"),
        (
            "shared/docs/a.md",
            "[a](olm/plan.md#twice) [b](../../README.md) [c](https://example.com/x.md) `olm/plan.md#twice`\n",
        ),
        (
            "a.md",
            "# A\n`core/src/lib.rs` `shared/core/` `tests/*.rs` `other/src` [a](#a)\n```\n[x](nowhere.md) `core/no.rs`\n```\n",
        ),
    ] {
        assert_eq!(caught(file, fine), 0, "{fine}");
    }
    for (file, broken) in [
        ("a.rs", "//! Phases (reference/plan.md).\n"),
        ("a.rs", concat!("fn f() {} /", "/ See olm/plan.md#phases.\n")),
        ("a.rs", "/// Phases (plan, §3).\n"),
        ("a.rs", "/// olm/plan.md#no-heading\n"),
        ("run", "# See DESIGN.md.\n"),
        ("a.toml", "# See olm/plan.md#nowhere.\n"),
        ("a.md", "[a](shared/docs/nowhere.md)\n"),
        ("a.md", "[a](README.md#nowhere)\n"),
        ("a.md", "[a](#nowhere)\n"),
        ("a.md", "`olm/plan.md#nowhere`\n"),
        ("a.md", "`core/src/nowhere.rs`\n"),
    ] {
        assert_eq!(caught(file, broken), 1, "{broken}");
    }
}

#[test]
fn refused_words_are_found_in_comments_and_markdown() {
    let found = |file: &str, text: &str| {
        let files: [citations::File; 1] = [(file.into(), text.to_owned())];
        vocabulary::dialect_in(&files).unwrap().len()
    };
    for (file, text) in [
        ("a.rs", "/// Nobody reads it.\n"),
        ("a.rs", concat!("fn f() {} /", "/ It makes no sense.\n")),
        ("a.md", "Somebody writes it.\n"),
        ("a.md", "The file is not there, and all others are.\n"),
    ] {
        assert_eq!(found(file, text), 1, "{text}");
    }
    for (file, text) in [
        ("a.rs", "const NAME: &str = \"nobody\";\n"),
        ("a.md", "A user writes it.\n"),
        ("a.rs", "/// Returns whether `wanted` is empty.\n"),
        ("CONTRIBUTING.md", "| user | somebody |\n"),
    ] {
        assert_eq!(found(file, text), 0, "{text}");
    }
}

#[test]
fn refused_words_are_found_in_messages() {
    let text = r#"fn f() { g(format!("nothing was told {}", 1), "told", "as wanted by {told}", "as {wanted} by it") }
        #[cfg(test)] mod tests { const TEXT: &str = "as it was told"; }"#;
    let sources = parse([Ok(("a.rs".into(), text.to_owned()))]).unwrap();
    let found = vocabulary::dialect_of_strings(&sources).unwrap();
    let found: Vec<_> = found.iter().map(|finding| finding.what.split(':').next().unwrap_or_default()).collect();
    assert_eq!(found, ["\"told\"", "\"wanted\""]);
}

#[test]
fn fields_of_output_without_a_description_are_found() {
    let schema = serde_json::json!({
        "description": "The roses of a garden.",
        "properties": {
            "apiVersion": {}, "kind": {},
            "colour": { "description": "The colour of the rose." },
            "size": { "description": "Size" },
            "leaf": { "$ref": "#/$defs/Leaf" },
        },
        "$defs": { "Leaf": { "properties": { "kind": {} }, "oneOf": [{ "const": "green" }] } },
    });
    let found = descriptions::poor_output(&[("Garden".to_owned(), schema)]);
    let fields: Vec<_> = found.iter().map(|finding| finding.what.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(fields, ["Garden.leaf", "Garden.size", "Leaf", "Leaf, value \"green\"", "Leaf.kind"]);
}

#[test]
fn poor_descriptions_are_found() {
    let described = |description: &str| serde_json::json!({ "type": "string", "description": description });
    let crd = |field: serde_json::Value, column: &str| {
        let mut schema = described("A kind of its own.");
        schema["properties"] = serde_json::json!({
            "kind": {},
            "spec": {
                "description": "The wanted state of it.",
                "properties": { "list": { "description": "The list of the fields.", "items": { "properties": { "field": field } } } },
            },
        });
        serde_json::json!({ "spec": { "names": { "kind": "Rose" }, "versions": [{
            "name": "v1",
            "schema": { "openAPIV3Schema": schema },
            "additionalPrinterColumns": [{ "name": "Colour", "description": column }],
        }] } })
    };
    let caught = |field, column| {
        let found = descriptions::poor("crds.json".as_ref(), &[crd(field, column)]);
        found.into_iter().map(|finding| finding.what).collect::<Vec<_>>()
    };
    let good = "The colour of the rose.";
    assert_eq!(caught(described(good), good), [""; 0]);
    for poor in ["", "Colour.", "The colour of the rose", "Which colour is it?"] {
        let found = caught(described(poor), good);
        assert_eq!(found.len(), 1, "{poor}");
        assert!(found[0].starts_with("Rose v1, spec.list.field: "), "{found:?}");
    }
    assert_eq!(caught(serde_json::json!({ "type": "string" }), "Colour").len(), 2);
}
