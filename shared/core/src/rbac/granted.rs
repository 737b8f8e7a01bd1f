//! An index of rules, which finds those that grant a permission without checking each of them.
//!
//! *Guarantees*: the work for rules of untrusted writers is bounded: [`MOST`] steps, then [`InvalidRule::TooMuch`]. One
//! rule can require the product of four lists, each as long as an object permits.

use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;

use super::{InvalidRule, each, texts};

/// Maximum number of steps: each compares a rule with one combination of verb, API group, resource and name.
const MOST: u64 = 1_000_000;

/// The remaining steps.
#[derive(Clone, Debug)]
pub struct Work(Rc<Cell<u64>>);

impl Default for Work {
    fn default() -> Self {
        Self(Rc::new(Cell::new(MOST)))
    }
}

impl Work {
    fn take(&self, steps: usize) -> Result<(), InvalidRule> {
        let left = self.0.get().checked_sub(u64::try_from(steps).unwrap_or(u64::MAX));
        self.0.set(left.unwrap_or_default());
        left.map(|_| ()).ok_or(InvalidRule::TooMuch)
    }

    /// Returns the number of steps taken.
    #[cfg(test)]
    pub(crate) fn done(&self) -> u64 {
        MOST - self.0.get()
    }
}

/// The rules that apply to an account in one place.
#[derive(Debug, Default)]
pub struct Granted<'w> {
    rules: Vec<&'w Value>,
    index: OnceCell<Index<'w>>,
    work: Work,
}

impl<'w> Granted<'w> {
    /// Creates an index of these rules.
    pub fn from_rules(rules: Vec<&'w Value>) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Shares the work budget with others.
    #[must_use]
    pub fn sharing(self, work: &Work) -> Self {
        Self { work: work.clone(), ..self }
    }

    /// Returns whether everything is granted that the rule requires.
    ///
    /// # Errors
    /// The rule is invalid, so that it cannot be granted, or the limit is exceeded.
    pub fn allows(&self, rule: &Value) -> Result<bool, InvalidRule> {
        let asked = Query::from_rule(rule)?;
        // Usually one rule grants the whole.
        if !self.covering(&asked, 1)?.is_empty() {
            return Ok(true);
        }
        let index = self.index()?;
        if asked.is_about_urls() {
            return each(&asked.verbs, |verb| each(&asked.urls, |url| index.grants_url(verb, url, &self.work)));
        }
        each(&asked.verbs, |verb| {
            each(&asked.groups, |group| {
                each(&asked.resources, |resource| {
                    each(&asked.names, |name| index.grants([verb, group, resource, name], &self.work))
                })
            })
        })
    }

    /// Returns the indexes of the rules that each grant everything that a rule requires.
    ///
    /// # Errors
    /// As [`Granted::allows`].
    pub fn granting(&self, rule: &Value) -> Result<Vec<usize>, InvalidRule> {
        self.covering(&Query::from_rule(rule)?, usize::MAX)
    }

    /// Returns at most that many of the rules that each grant everything.
    fn covering(&self, asked: &Query<'_>, most: usize) -> Result<Vec<usize>, InvalidRule> {
        let index = self.index()?;
        let mut covering = Vec::new();
        for place in index.near(asked) {
            let rule = &index.rules[place];
            let urls = if asked.is_about_urls() { asked.urls.len().saturating_mul(rule.urls.len()) } else { 0 };
            self.work.take(1 + asked.size().saturating_add(urls))?;
            if rule.covers(asked) {
                covering.push(place);
                if covering.len() == most {
                    break;
                }
            }
        }
        Ok(covering)
    }

    fn index(&self) -> Result<&Index<'w>, InvalidRule> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = Index::from_rules(&self.rules, &self.work)?;
        Ok(self.index.get_or_init(|| index))
    }
}

/// The contents of a rule, without duplicates.
#[derive(Debug)]
struct Query<'w> {
    verbs: BTreeSet<&'w str>,
    groups: BTreeSet<&'w str>,
    resources: BTreeSet<&'w str>,
    names: BTreeSet<&'w str>,
    urls: BTreeSet<&'w str>,
}

impl<'w> Query<'w> {
    /// # Errors
    /// The rule is invalid.
    fn from_rule(rule: &'w Value) -> Result<Self, InvalidRule> {
        let asked = Self::read(rule);
        if asked.verbs.is_empty() {
            return Err(InvalidRule::NoVerb);
        }
        let asks_for_resources = ![&asked.groups, &asked.resources, &asked.names].iter().all(|list| list.is_empty());
        if asks_for_resources && !asked.urls.is_empty() {
            return Err(InvalidRule::ResourcesAndUrls);
        }
        Ok(asked)
    }

    fn read(rule: &'w Value) -> Self {
        let of = |field| texts(rule, field).into_iter().collect();
        Self {
            verbs: of("verbs"),
            groups: of("apiGroups"),
            resources: of("resources"),
            names: of("resourceNames"),
            urls: of("nonResourceURLs"),
        }
    }

    fn is_about_urls(&self) -> bool {
        self.urls.iter().any(|url| !url.is_empty())
    }

    fn size(&self) -> usize {
        let Self { verbs, groups, resources, names, urls } = self;
        [verbs, groups, resources, names, urls].iter().map(|list| list.len()).sum()
    }

    /// Returns whether it, as a granted rule, grants everything of another one.
    fn covers(&self, other: &Self) -> bool {
        let has_all = |own: &BTreeSet<&str>, asked: &BTreeSet<&str>| {
            own.contains("*") || if asked.is_empty() { own.contains("") } else { asked.is_subset(own) }
        };
        has_all(&self.verbs, &other.verbs)
            && if other.is_about_urls() {
                other.urls.iter().all(|url| self.has_url(url))
            } else {
                has_all(&self.groups, &other.groups)
                    && has_all(&self.resources, &other.resources)
                    && (self.names.is_empty()
                        || if other.names.is_empty() {
                            self.names.contains("")
                        } else {
                            other.names.is_subset(&self.names)
                        })
            }
    }

    fn has_url(&self, url: &str) -> bool {
        let begins = |granted: &&str| granted.ends_with('*') && url.starts_with(granted.trim_end_matches('*'));
        self.urls.contains(url) || self.urls.iter().any(begins)
    }
}

/// Indexes of rules by an item of one of their lists.
type Places<'w> = BTreeMap<&'w str, Vec<usize>>;

/// Rules by their contents.
#[derive(Debug, Default)]
struct Index<'w> {
    rules: Vec<Query<'w>>,
    /// By verb, API group and resource: rules for objects of all names.
    unnamed: [Places<'w>; 3],
    /// By verb, API group, resource and name: the other rules.
    named: [Places<'w>; 4],
    /// By URL.
    urls: Places<'w>,
    /// Rules with URLs that end with a star.
    stars: Vec<usize>,
}

impl<'w> Index<'w> {
    fn from_rules(rules: &[&'w Value], work: &Work) -> Result<Self, InvalidRule> {
        let mut index = Self::default();
        for (place, rule) in rules.iter().enumerate() {
            let rule = Query::read(rule);
            work.take(rule.size())?;
            let lists = [&rule.verbs, &rule.groups, &rule.resources, &rule.names];
            let places = if rule.names.is_empty() { index.unnamed.as_mut_slice() } else { &mut index.named };
            for (places, list) in places.iter_mut().zip(lists) {
                for item in list {
                    places.entry(item).or_default().push(place);
                }
            }
            for url in &rule.urls {
                index.urls.entry(url).or_default().push(place);
            }
            if rule.urls.iter().any(|url| url.ends_with('*')) {
                index.stars.push(place);
            }
            index.rules.push(rule);
        }
        Ok(index)
    }

    /// Returns the rules that may apply to a combination: of the lists that they must be in, those of the shortest.
    fn candidates(&self, names: [&str; 4]) -> impl Iterator<Item = usize> + '_ {
        let near = [self.unnamed.as_slice(), &self.named].map(|lists| {
            let lists = lists.iter().zip(names).enumerate().map(|(list, (places, item))| {
                let of = |item: &str| places.get(item).map_or(&[][..], Vec::as_slice);
                // A star among names is a literal name.
                let all = if list < 3 && item != "*" { of("*") } else { &[] };
                [all, of(item)]
            });
            lists.min_by_key(|[all, own]| all.len() + own.len()).unwrap_or_default()
        });
        near.into_iter().flatten().flatten().copied()
    }

    fn grants(&self, names: [&str; 4], work: &Work) -> Result<bool, InvalidRule> {
        let [verb, group, resource, name] = names;
        let has = |list: &BTreeSet<&str>, item: &str| list.contains("*") || list.contains(item);
        work.take(1)?;
        for place in self.candidates(names) {
            work.take(1)?;
            let rule = &self.rules[place];
            let is_named = rule.names.is_empty() || rule.names.contains(name);
            if is_named && has(&rule.verbs, verb) && has(&rule.groups, group) && has(&rule.resources, resource) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the rules that may grant everything.
    fn near(&self, asked: &Query<'_>) -> Vec<usize> {
        fn first<'a>(list: &BTreeSet<&'a str>) -> &'a str {
            list.first().copied().unwrap_or_default()
        }
        if asked.is_about_urls() {
            let own = self.urls.get(first(&asked.urls)).map_or(&[][..], Vec::as_slice);
            return own.iter().chain(&self.stars).copied().collect();
        }
        let [verb, group] = [&asked.verbs, &asked.groups].map(first);
        self.candidates([verb, group, first(&asked.resources), first(&asked.names)]).collect()
    }

    fn grants_url(&self, verb: &str, url: &str, work: &Work) -> Result<bool, InvalidRule> {
        let own = self.urls.get(url).map_or(&[][..], Vec::as_slice);
        work.take(1 + own.len())?;
        for place in own.iter().chain(&self.stars) {
            let rule = &self.rules[*place];
            work.take(rule.urls.len())?;
            if (rule.verbs.contains("*") || rule.verbs.contains(verb)) && rule.has_url(url) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
