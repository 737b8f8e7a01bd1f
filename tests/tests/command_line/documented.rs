//! Documented output is real output: each line below a command in a document is printed by that command on the quickstart, or
//! occurs in a test of a plugin.

use std::fs;
use std::path::Path;

use olm_tests::data::{files, repository};

use super::{Home, captured};

/// A command in a document, and the output shown below it.
struct Example {
    command: String,
    shown: Vec<String>,
}

/// Returns the examples in a document's `console` blocks. A line `…` represents omitted lines.
fn examples(text: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut in_console = false;
    for line in text.lines() {
        if let Some(fence) = line.strip_prefix("```") {
            in_console = fence == "console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| in_console) {
            examples.push(Example { command: command.to_owned(), shown: Vec::new() });
        } else if let Some(example) = examples.last_mut().filter(|_| in_console && !matches!(line.trim(), "" | "…")) {
            example.shown.push(line.to_owned());
        }
    }
    examples
}

/// Returns all expected texts of the plugins' tests.
fn tests_of_plugins() -> String {
    let tests = files(&repository().join("plugins")).into_iter().filter(|file| {
        let is_test = file.components().any(|folder| folder.as_os_str() == "tests");
        is_test && file.extension().is_some_and(|extension| extension == "rs" || extension == "snap")
    });
    tests.map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn documented_output_is_printed_by_commands() {
    let home = Home::new();
    let compared = tests_of_plugins();
    let mut documents = vec![repository().join("README.md")];
    documents.extend(files(&repository().join("shared/docs")));
    documents.retain(|file| file.extension().is_some_and(|extension| extension == "md"));
    let (mut count, mut wrong) = (0, Vec::new());
    for document in &documents {
        for Example { command, shown } in examples(&fs::read_to_string(document).unwrap()) {
            count += 1;
            let printed = printed(&home, &command);
            let printed = printed.as_ref().unwrap_or(&compared);
            let missing = shown.iter().filter(|line| !printed.contains(line.as_str()));
            let name = document.file_name().unwrap().to_string_lossy();
            wrong.extend(missing.map(|line| format!("{name}: {command}\n    does not print: {line}")));
        }
    }
    assert!(count > 10, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the output of a command that needs only files of this repository; `None` for any other.
fn printed(home: &Home, command: &str) -> Option<String> {
    let words = command.strip_prefix("kubectl olm ")?;
    let is_local =
        ["tests/quickstart", "tests/plain"].iter().any(|folder| words.contains(folder)) || words == "version --client";
    let run =
        || home.command(Path::new("kubectl-olm")).args(words.split_whitespace()).current_dir(repository()).output();
    let (_, out, err) = is_local.then(|| captured(&run().unwrap()))?;
    Some(out + &err)
}
