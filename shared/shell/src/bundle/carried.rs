//! What the directory of a bundle states beside its manifests and olm.yaml: package, channels, dependencies and properties.
//!
//! As opm does, this reads each from the first file of `metadata/` that has it, regardless of the file's name.

use std::collections::BTreeMap;

use olm_core::bundle::File;
use serde_json::{Map, Value, json};

use crate::cli::CliError;
use crate::cli::data::yaml;
use crate::image::{BUNDLE_LABEL, CHANNELS_LABEL, DEFAULT_CHANNEL_LABEL};

/// What the annotations of a bundle begin with.
const PREFIX: &str = "operators.operatorframework.io.";
/// What the annotations begin with that name the bundle's directories of tests, which are not carried.
const TESTS: &str = "operators.operatorframework.io.test.";

/// The metadata of a bundle that is written again.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// The annotations of `metadata/annotations.yaml`, without those of tests.
    pub(super) annotations: BTreeMap<String, String>,
    /// The texts of `metadata/dependencies.yaml` and `metadata/properties.yaml`, by these paths.
    pub(super) files: BTreeMap<String, String>,
    /// What is not carried.
    pub(super) warnings: Vec<String>,
}

impl Carried {
    /// Reads the files of `metadata/`, in the order of their names.
    ///
    /// # Errors
    /// A file is not YAML, or the annotations are not texts.
    pub(super) fn read(files: &[File]) -> Result<Self, CliError> {
        let mut carried = Self::default();
        for file in files {
            let content = olm_core::yaml::first(&file.bytes)
                .map_err(|e| CliError::input(e.message).at(format_args!("{}:{}", file.path, e.line)))?;
            let Value::Object(fields) = content else { continue };
            carried.add_annotations(&fields, file)?;
            for field in ["dependencies", "properties"] {
                carried.add_list(field, &fields, file)?;
            }
        }
        Ok(carried)
    }

    fn add_annotations(&mut self, fields: &Map<String, Value>, file: &File) -> Result<(), CliError> {
        let Some(Value::Object(annotations)) = fields.get("annotations") else { return Ok(()) };
        // Other directories are named metadata, too.
        if !self.annotations.is_empty() || !annotations.keys().any(|key| key.starts_with(PREFIX)) {
            return Ok(());
        }
        for (key, value) in annotations {
            let Some(text) = value.as_str() else {
                let error = CliError::input(format!("the annotation {key} is not a string")).at(&file.path);
                return Err(error.hint("write its value in quotes"));
            };
            if key.starts_with(TESTS) {
                self.warnings.push(format!("{}: {key} is left out: tests are not copied", file.path));
            } else {
                self.annotations.insert(key.clone(), text.to_owned());
            }
        }
        Ok(())
    }

    fn add_list(&mut self, field: &str, fields: &Map<String, Value>, file: &File) -> Result<(), CliError> {
        let path = format!("metadata/{field}.yaml");
        let Some(list @ Value::Array(items)) = fields.get(field) else { return Ok(()) };
        if items.is_empty() || self.files.contains_key(&path) {
            return Ok(());
        }
        // Comments stay if the file has nothing else.
        let text = if fields.len() == 1 {
            String::from_utf8_lossy(&file.bytes).into_owned()
        } else {
            yaml(&json!({ field: list }))?
        };
        self.files.insert(path, text);
        Ok(())
    }

    /// Returns the package; `None` if the bundle states none.
    pub(super) fn package(&self) -> Option<&str> {
        self.annotation(BUNDLE_LABEL)
    }

    /// Returns the channels, as they are in the annotation.
    pub(super) fn channels(&self) -> Option<&str> {
        self.annotation(CHANNELS_LABEL)
    }

    /// Returns the default channel.
    pub(super) fn default_channel(&self) -> Option<&str> {
        self.annotation(DEFAULT_CHANNEL_LABEL)
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str).filter(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_from_the_first_file_that_has_it() {
        let file = |name: &str, text: &str| File::new(format!("rose/metadata/{name}"), text.as_bytes());
        let dependencies = "# what roses need\ndependencies:\n- {type: olm.package, value: {packageName: soil}}\n";
        let annotations = "annotations:
  operators.operatorframework.io.bundle.package.v1: rose
  operators.operatorframework.io.test.config.v1: tests/scorecard/
  com.example.owner: gardeners
properties:
- {type: olm.maxOpenShiftVersion, value: '4.9'}
";
        let carried = Carried::read(&[
            file("a.yaml", dependencies),
            file("annotations.yaml", annotations),
            file("other.yaml", "dependencies: [{type: olm.gvk}]\nannotations: {a: b}\n"),
        ])
        .unwrap();
        assert_eq!(carried.package(), Some("rose"));
        assert_eq!(carried.annotations["com.example.owner"], "gardeners");
        assert_eq!(carried.files["metadata/dependencies.yaml"], dependencies);
        let properties = "properties:\n- type: olm.maxOpenShiftVersion\n  value: '4.9'\n";
        assert_eq!(carried.files["metadata/properties.yaml"], properties);
        assert_eq!((carried.annotations.len(), carried.warnings.len()), (2, 1), "{:?}", carried.warnings);
        let broken = Carried::read(&[file("annotations.yaml", "annotations: {operators.operatorframework.io.x: 1}")]);
        assert!(broken.unwrap_err().message.contains("is not a string"));
    }
}
