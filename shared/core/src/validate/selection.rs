//! What to check: validators, suites and rules by name.

use std::collections::BTreeSet;

use super::rule::{Validator, rule};

/// The selected validators and rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    validators: BTreeSet<Validator>,
    codes: BTreeSet<&'static str>,
}

impl Default for Selection {
    /// What operator-sdk always checks, what OLM rejects, and compatibility with the previous version if there is one.
    fn default() -> Self {
        Self {
            validators: BTreeSet::from([Validator::Default, Validator::Olm, Validator::Previous]),
            codes: BTreeSet::new(),
        }
    }
}

impl From<BTreeSet<Validator>> for Selection {
    fn from(validators: BTreeSet<Validator>) -> Self {
        Self { validators, codes: BTreeSet::new() }
    }
}

impl Selection {
    /// Returns an empty selection.
    pub fn nothing() -> Self {
        Self::from(BTreeSet::new())
    }

    /// Returns everything.
    pub fn everything() -> Self {
        Self::from(BTreeSet::from(Validator::ALL))
    }

    /// Adds what a term names: a validator, a suite (`operatorframework`, `all`), or the code or name of a rule. `name=` and `suite=`
    /// may precede it, as in operator-sdk.
    ///
    /// # Errors
    /// Returns a message if nothing has this name.
    pub fn add(&mut self, term: &str) -> Result<(), String> {
        let (name, suite) = match term.split_once('=') {
            Some(("name", name)) => (Some(name), None),
            Some(("suite", suite)) => (None, Some(suite)),
            _ => (Some(term), Some(term)),
        };
        let of_suite: &[Validator] = match suite {
            Some("operatorframework") => &Validator::OPERATOR_FRAMEWORK,
            Some("all") => &Validator::ALL,
            _ => &[],
        };
        self.validators.extend(of_suite);
        let named = name.and_then(|name| Validator::ALL.into_iter().find(|validator| validator.name() == name));
        self.validators.extend(named);
        let rule = rule(term);
        self.codes.extend(rule.map(|rule| rule.code));
        if of_suite.is_empty() && named.is_none() && rule.is_none() {
            let names: Vec<&str> = Validator::ALL.into_iter().map(Validator::name).collect();
            return Err(format!(
                "no validator, suite or rule is named {term:?}; the validators are {}",
                names.join(", ")
            ));
        }
        Ok(())
    }

    /// Returns whether it contains all rules of a validator.
    pub fn contains(&self, validator: Validator) -> bool {
        self.validators.contains(&validator)
    }

    /// Returns whether a validator has to run.
    pub(super) fn runs(&self, validator: Validator) -> bool {
        let has_rule = |code: &&str| rule(code).is_some_and(|rule| rule.validators.contains(&validator));
        self.validators.contains(&validator) || self.codes.iter().any(has_rule)
    }

    /// Returns whether findings with that code are reported. Findings of the synthesis of plain manifests belong to the default
    /// validator.
    pub fn reports(&self, code: &str) -> bool {
        let of = rule(code).map_or(&[Validator::Default][..], |rule| rule.validators);
        self.codes.contains(code) || of.iter().any(|validator| self.validators.contains(validator))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(terms: &[&str]) -> Selection {
        let mut selection = Selection::nothing();
        for term in terms {
            selection.add(term).unwrap();
        }
        selection
    }

    #[test]
    fn terms_name_validators_suites_and_rules() {
        assert_eq!(selected(&["name=good-practices"]), selected(&["good-practices"]));
        assert_eq!(selected(&["suite=operatorframework"]), selected(&["operatorframework"]));
        assert_eq!(selected(&["all"]), Selection::everything());
        let one = selected(&["no-icon"]);
        assert!(one.runs(Validator::OperatorHubV2) && !one.runs(Validator::Default));
        assert!(one.reports("BV316") && !one.reports("BV315") && !one.reports("BV001"));
        assert!(Selection::default().reports("unsupported-kind"), "a finding of the synthesis");
        for wrong in ["tea", "suite=good-practices", "name=operatorframework", "name=BV001"] {
            assert!(Selection::nothing().add(wrong).is_err(), "{wrong}");
        }
    }
}
