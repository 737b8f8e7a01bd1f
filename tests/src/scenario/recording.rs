//! Writes a recording in the format of the golden files, so that the recordings' own `compare` program can compare it, too.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::format::{Recording, Scenario};
use super::python::{Form, dumps};

/// Writes `recording.yaml` and `recording-transitions.yaml` into the folder.
pub fn write(recording: &Recording, scenario: &Scenario, folder: &Path) -> Result<()> {
    let head = format!("# {}: {}\n", scenario.name, scenario.script.about);
    for (file, value) in
        [("recording.yaml", objects(recording)), ("recording-transitions.yaml", transitions(recording))]
    {
        let path = folder.join(file);
        std::fs::write(&path, head.clone() + &yaml(&value))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn objects(recording: &Recording) -> Value {
    let mut before = &BTreeMap::new();
    let steps = recording.steps.iter().map(|step| {
        let changed: serde_json::Map<_, _> = step
            .objects
            .iter()
            .filter(|(id, object)| before.get(*id) != Some(*object))
            .map(|(id, object)| (id.clone(), object.clone()))
            .collect();
        let gone: Vec<_> = before.keys().filter(|id| !step.objects.contains_key(*id)).collect();
        let step_value = json!({
            "name": step.name, "unsettled": step.unsettled, "gone": gone, "events": step.events, "changed": changed,
        });
        before = &step.objects;
        step_value
    });
    json!({"recordings": 1, "unstable": recording.unstable, "steps": steps.collect::<Vec<_>>()})
}

fn transitions(recording: &Recording) -> Value {
    let steps = recording.steps.iter().map(|step| json!({"name": step.name, "saw": step.saw}));
    json!({"loose": [], "steps": steps.collect::<Vec<_>>()})
}

/// Formats block YAML that YAML 1.1 and 1.2 parsers read as the same value: every ambiguous text is quoted.
fn yaml(value: &Value) -> String {
    let mut out = String::new();
    write_block(&mut out, value, 0);
    out
}

fn write_block(out: &mut String, value: &Value, indent: usize) {
    let pad = "  ".repeat(indent);
    match value {
        Value::Object(map) => {
            for (key, item) in map {
                let _ = write!(out, "{pad}{}:", scalar(&json!(key)));
                write_item(out, item, indent + 1, "\n");
            }
        }
        Value::Array(list) => {
            for item in list {
                let _ = write!(out, "{pad}-");
                write_item(out, item, indent + 1, "\n");
            }
        }
        other => {
            let _ = writeln!(out, "{pad}{}", scalar(other));
        }
    }
}

fn write_item(out: &mut String, item: &Value, indent: usize, opening: &str) {
    match item {
        Value::Object(map) if !map.is_empty() => out.push_str(opening),
        Value::Array(list) if !list.is_empty() => out.push_str(opening),
        other => {
            let _ = writeln!(out, " {}", scalar(other));
            return;
        }
    }
    write_block(out, item, indent);
}

fn scalar(value: &Value) -> String {
    match value.as_str() {
        Some(text) if is_plain(text) => text.to_owned(),
        // A key of more than 1024 characters would need YAML's `? ` form; none occurs.
        Some(_) => quoted(value),
        None => dumps(value, Form::Compact),
    }
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "~"];
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// Formats a double-quoted text. YAML has no surrogates, so printable characters outside ASCII are not escaped.
fn quoted(text: &Value) -> String {
    let json = dumps(text, Form::Readable);
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::super::format::Step;
    use super::*;

    #[test]
    fn recordings_are_read_back_unchanged() {
        let odd = json!({
            "yes": "no", "1": "1", "time": "12:30:45", "text": "a: b\n# c\t\u{7f}\u{85}🌹 'q' \"d\" \\", "number": 1.5,
            "empty": {"map": {}, "list": [], "text": ""}, "nested": [[1, [2]], [{"a": [{"b": null}]}]], "octal": "0644", "bool": true,
        });
        let step = |name: &str, objects: &[(&str, &Value)]| Step {
            name: name.to_owned(),
            objects: objects.iter().map(|(id, object)| ((*id).to_owned(), (*object).clone())).collect(),
            events: vec![json!({"object": "Rose/garden/red", "message": "it: blooms"})],
            unsettled: true,
            saw: [("Subscription/garden/rose".to_owned(), vec![json!(["", "installed=", "current="])])].into(),
            faults: vec![],
        };
        let other = json!({"kind": "Rose"});
        let steps = vec![
            step("first", &[("Odd/one", &odd)]),
            step("no: 2", &[("Odd/one", &other), ("New/<1>", &odd)]),
            step("3", &[]),
        ];
        let recording = Recording { unstable: vec!["a: event {\"b\": 1}".to_owned()], steps };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("scenario.yaml"), "about: 'odd: things'\nsteps: []\n").unwrap();
        let scenario = Scenario::read(folder.path()).unwrap();
        write(&recording, &scenario, folder.path()).unwrap();
        let read =
            Recording::read(&folder.path().join("recording.yaml"), &folder.path().join("recording-transitions.yaml"));
        assert_eq!(read.unwrap(), recording);
    }
}
