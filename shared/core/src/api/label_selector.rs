//! A label selector as Kubernetes evaluates it: `matchLabels` and `matchExpressions`, which are ANDed.

use serde_json::Value;

use super::{labels, object};

/// A label selector.
#[derive(Debug, PartialEq)]
pub(crate) struct LabelSelector<'a> {
    requirements: Vec<Requirement<'a>>,
}

#[derive(Debug, PartialEq)]
struct Requirement<'a> {
    key: &'a str,
    operator: Operator<'a>,
}

#[derive(Debug, PartialEq)]
enum Operator<'a> {
    In(Vec<&'a str>),
    NotIn(Vec<&'a str>),
    Exists,
    DoesNotExist,
}

impl<'a> LabelSelector<'a> {
    /// Reads a selector; `null` is an empty one.
    pub(crate) fn read(json: &'a Value) -> Result<Self, String> {
        let given = object::at(json, &["matchLabels"]).as_object();
        if let Some((key, _)) = given.into_iter().flatten().find(|(_, value)| !value.is_string()) {
            return Err(format!("selector: the value of {key:?} is not a string"));
        }
        let labels = object::entries(json, &["matchLabels"])
            .map(|(key, value)| Requirement::new(key, Operator::In(vec![value])));
        let expressions = object::list(json, &["matchExpressions"]).iter().map(Requirement::read);
        Ok(Self { requirements: labels.chain(expressions).collect::<Result<_, String>>()? })
    }

    /// Returns whether it has no requirements.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns whether the labels of the object match.
    pub(crate) fn selects(&self, object: &Value) -> bool {
        self.requirements.iter().all(|Requirement { key, operator }| {
            let label = object::label(object, key);
            match operator {
                Operator::In(values) => label.is_some_and(|l| values.contains(&l)),
                Operator::NotIn(values) => label.is_none_or(|l| !values.contains(&l)),
                Operator::Exists => label.is_some(),
                Operator::DoesNotExist => label.is_none(),
            }
        })
    }
}

impl<'a> Requirement<'a> {
    fn read(json: &'a Value) -> Result<Self, String> {
        let key = object::text(json, &["key"]);
        let values: Vec<&str> = object::list(json, &["values"]).iter().filter_map(Value::as_str).collect();
        let operator = match (object::text(json, &["operator"]), values.is_empty()) {
            ("In", false) => Operator::In(values),
            ("NotIn", false) => Operator::NotIn(values),
            ("Exists", true) => Operator::Exists,
            ("DoesNotExist", true) => Operator::DoesNotExist,
            (operator @ ("In" | "NotIn"), true) => return Err(format!("selector: {key:?} {operator} needs values")),
            (operator @ ("Exists" | "DoesNotExist"), false) => {
                return Err(format!("selector: {key:?} {operator} takes no values"));
            }
            (operator, _) => return Err(format!("selector: {operator:?} is not a label selector operator")),
        };
        Self::new(key, operator)
    }

    /// Accepts only valid label keys and values, like Kubernetes: otherwise "does not exist" would match everything.
    fn new(key: &'a str, operator: Operator<'a>) -> Result<Self, String> {
        if let Some(problem) = labels::key_problem(key) {
            return Err(format!("selector: {key:?} is not the key of a label: {problem}"));
        }
        if let Operator::In(values) | Operator::NotIn(values) = &operator
            && let Some((value, problem)) = values.iter().find_map(|v| Some((v, labels::value_problem(v)?)))
        {
            return Err(format!("selector: {value:?} is not the value of a label: {problem}"));
        }
        Ok(Self { key, operator })
    }
}
