//! How questions are read, and what could not be read is told.

use olm_core::api::object::{Gvk, ObjectRef};
use olm_core::api::status::Status;

use super::read::unread;
use super::*;

#[test]
fn a_package_may_have_a_range_or_a_version() {
    let of = |text: &str| package(text).map(|(package, range)| (package, range.map(|range| range.to_string())));
    assert_eq!(of("rose"), Ok(("rose".to_owned(), None)));
    let within = |text: &str, version: &str| {
        let (_, range) = package(text).unwrap();
        range.unwrap().contains(&version::parse_tolerant(version).unwrap())
    };
    assert!(within("rose@>=1.2.0 <2.0.0", "1.9.0") && !within("rose@>=1.2.0 <2.0.0", "2.0.0"));
    assert!(within("rose@1.2.0", "1.2.0") && !within("rose@1.2.0", "1.2.1"));
    assert!(package("rose@newest").unwrap_err().hint.unwrap().contains(">=1.2.0 <2.0.0"));
}

#[test]
fn single_objects_of_a_kind_are_one_matter() {
    let refusal = Status::new(403, "Forbidden", "no");
    let get = |kind: &str, name: &str| {
        let gvk = Gvk::new("", "v1", kind);
        Gap::get(&ObjectRef { gvk, namespace: "garden".to_owned(), name: name.to_owned() }, &refusal)
    };
    let gaps = [get("Secret", "a"), get("Service", "a"), get("Secret", "b"), get("Secret", "c"), get("Secret", "d")];
    let told: Vec<String> = unread(&gaps).into_iter().map(|unread| unread.message).collect();
    assert_eq!(
        told,
        [
            "not allowed to get Secret a, b, c and 1 more in namespace garden",
            "not allowed to get Service a in namespace garden"
        ]
    );
}
