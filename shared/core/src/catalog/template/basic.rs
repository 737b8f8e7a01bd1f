//! `olm.template.basic`: every blob is copied, except that bundles that are only an image are read from it.

use serde_json::{Map, Value};

use super::{Images, list_of, text_of};

pub(super) fn render(template: &Map<String, Value>, images: &mut Images<'_>) -> Result<Vec<Value>, String> {
    let mut blobs = Vec::new();
    for entry in list_of(template, "entries")? {
        if text_of(entry, "schema") != "olm.bundle" {
            blobs.push(entry.clone());
            continue;
        }
        let is_known = |key: &String| ["schema", "image", "name"].iter().any(|known| key.eq_ignore_ascii_case(known));
        if !entry.as_object().is_some_and(|fields| fields.keys().all(is_known)) {
            return Err("unexpected fields present in basic template bundle".to_owned());
        }
        blobs.extend(images(text_of(entry, "image"))?);
    }
    Ok(blobs)
}
