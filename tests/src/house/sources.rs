//! The files of the repository, and parsed Rust files, so that rules check code and not comments and strings.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::Span;
use syn::visit::{self, Visit};

/// Returns the root of the repository.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns every file of the repository, relative to its root and sorted, without build output and git's own files.
pub fn files() -> Result<Vec<PathBuf>> {
    fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
        let entries = fs::read_dir(root().join(folder)).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                if entry.file_name() != "target" && entry.file_name() != ".git" {
                    walk(&path, files)?;
                }
            } else if entry.file_name() != ".git" {
                files.push(path);
            }
        }
        Ok(())
    }
    let mut files = Vec::new();
    walk(Path::new(""), &mut files)?;
    files.sort();
    Ok(files)
}

/// Reads the text of a file, `None` if it is not UTF-8.
pub fn text(file: &Path) -> Result<Option<String>> {
    let bytes = fs::read(root().join(file)).with_context(|| file.display().to_string())?;
    Ok(String::from_utf8(bytes).ok())
}

/// A Rust file.
pub struct Source {
    /// Its path, relative to the root of the repository.
    pub file: PathBuf,
    /// Its text.
    pub text: String,
    /// Its syntax.
    pub syntax: syn::File,
    /// Whether all of it is test code: in a `tests` folder, or in a module with `cfg(test)`.
    pub is_test: bool,
}

/// Returns every Rust file of the repository.
pub fn rust() -> Result<Vec<Source>> {
    let mut files = files()?;
    files.retain(|file| file.extension().is_some_and(|e| e == "rs"));
    parse(files.into_iter().map(|file| text(&file).map(|text| (file, text.unwrap_or_default()))))
}

/// Parses Rust files from their paths and texts.
pub fn parse(files: impl IntoIterator<Item = Result<(PathBuf, String)>>) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for file in files {
        let (file, text) = file?;
        let syntax = syn::parse_file(&text).with_context(|| file.display().to_string())?;
        sources.push(Source { file, text, syntax, is_test: false });
    }
    let test_modules: Vec<PathBuf> = sources.iter().flat_map(test_modules).collect();
    for source in &mut sources {
        let module = source.file.with_extension("");
        let in_tests = source.file.components().any(|folder| folder.as_os_str() == "tests");
        source.is_test = in_tests || test_modules.iter().any(|test| module.starts_with(test));
    }
    Ok(sources)
}

/// Returns the paths, without extension, of the modules that a file declares with `cfg(test)`.
fn test_modules(source: &Source) -> Vec<PathBuf> {
    let stem = source.file.with_extension("");
    let folder = match stem.file_name().and_then(|name| name.to_str()) {
        Some("lib" | "main" | "mod") => stem.parent().map(Path::to_owned).unwrap_or_default(),
        _ => stem,
    };
    let declared = source.syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && only_for_tests(&module.attrs) => Some(&module.ident),
        _ => None,
    });
    declared.map(|name| folder.join(name.to_string())).collect()
}

fn only_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        meta => meta.path().is_ident("test"),
    })
}

/// The elements of a file's code that rules check, without test code.
#[derive(Default)]
pub struct Code {
    /// Every path; a `use` tree is split, so that `std::{env, fs}` gives two paths.
    pub paths: Vec<(String, usize)>,
    /// The name of every called macro.
    pub macros: Vec<(String, usize)>,
    /// Every string literal, except those in attributes and doc comments.
    pub strings: Vec<(String, usize)>,
}

/// Extracts the elements of a file, without its test code.
pub fn code(source: &Source) -> Code {
    let mut code = Code::default();
    if !source.is_test {
        code.visit_file(&source.syntax);
    }
    code
}

impl Code {
    fn use_tree(&mut self, prefix: &str, tree: &syn::UseTree) {
        let (name, rest) = match tree {
            syn::UseTree::Path(path) => (&path.ident, Some(&path.tree)),
            syn::UseTree::Name(name) => (&name.ident, None),
            syn::UseTree::Rename(rename) => (&rename.ident, None),
            syn::UseTree::Glob(glob) => return self.paths.push((prefix.to_owned(), line(glob.star_token.spans[0]))),
            syn::UseTree::Group(group) => return group.items.iter().for_each(|tree| self.use_tree(prefix, tree)),
        };
        let path = if prefix.is_empty() { name.to_string() } else { format!("{prefix}::{name}") };
        match rest {
            Some(rest) => self.use_tree(&path, rest),
            None => self.paths.push((path, line(name.span()))),
        }
    }
}

impl<'ast> Visit<'ast> for Code {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !only_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree("", &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let at = path.segments.first().map_or(0, |segment| line(segment.ident.span()));
        self.paths.push((names.join("::"), at));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        if let Some(name) = called.path.segments.last() {
            self.macros.push((name.ident.to_string(), line(name.ident.span())));
        }
        // The arguments of format!, vec! and similar macros are expressions.
        let list = syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated;
        if let Ok(arguments) = called.parse_body_with(list) {
            arguments.iter().for_each(|argument| self.visit_expr(argument));
        }
    }

    fn visit_lit_str(&mut self, text: &'ast syn::LitStr) {
        self.strings.push((text.value(), line(text.span())));
    }
}

fn line(span: Span) -> usize {
    span.start().line
}
