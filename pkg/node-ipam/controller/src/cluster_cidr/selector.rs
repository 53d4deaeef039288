//! [`Selector`]: which Nodes a ClusterCIDR is for, and how closely it fits them.

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement};
use kube_api::{LabelTest, NodeMarks};
use thiserror::Error;

/// The only field that a Node can be selected by.
const NAME: &str = "metadata.name";

/// How the terms of a selector combine. Upstream wants all of them and looks fields up as labels
/// (kubernetes#116419); elsewhere in Kubernetes one is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Terms {
    /// One is enough, as everywhere in Kubernetes.
    #[default]
    Or,
    /// All of them are needed, and fields are looked up as labels, as
    /// sigs.k8s.io/node-ipam-controller does.
    And,
}

/// A node selector that was found to be in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    /// Under [`Terms::And`] one with all requirements.
    terms: Vec<Vec<Requirement>>,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    /// `None` for the Node's name.
    label: Option<Box<str>>,
    test: LabelTest,
}

/// A selector that the API's rules do not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum SelectorError {
    /// The selector has no terms and would select nothing.
    #[error("nodeSelector has no terms; leave nodeSelector out to select every Node")]
    NoTerms,
    /// The operator is unknown.
    #[error(
        "nodeSelector: {key:?} has the operator {operator:?}; use In, NotIn, Exists, DoesNotExist, \
         Gt or Lt"
    )]
    Operator {
        /// Part of the requirement.
        key: String,
        /// The operator in the spec.
        operator: String,
    },
    /// The number of values does not fit the operator.
    #[error("nodeSelector: {operator} of {key:?} needs {takes}, but has {given}")]
    Values {
        /// Part of the requirement.
        key: String,
        /// Part of the requirement.
        operator: String,
        /// The number of values that the operator takes.
        takes: &'static str,
        /// How many there are.
        given: usize,
    },
    /// A field that Nodes are not selected by, or in a way they are not.
    #[error(
        "nodeSelector: matchFields takes metadata.name with In or NotIn and one value, not {0}"
    )]
    Field(String),
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub(crate) fn read(selector: &NodeSelector, combined: Terms) -> Result<Self, SelectorError> {
        if selector.node_selector_terms.is_empty() {
            return Err(SelectorError::NoTerms);
        }
        let mut terms = Vec::new();
        let mut texts = Vec::new();
        for term in &selector.node_selector_terms {
            let mut requirements = Vec::new();
            for wanted in term.match_expressions.iter().flatten() {
                let label = Some(wanted.key.as_str().into());
                requirements.push(Requirement { label, test: test(wanted)? });
                texts.push(text(wanted));
            }
            for wanted in term.match_fields.iter().flatten() {
                let label = field(wanted, combined)?;
                requirements.push(Requirement { label, test: test(wanted)? });
                texts.push(text(wanted));
            }
            terms.push(requirements);
        }
        if combined == Terms::And {
            terms = vec![terms.concat()];
        }
        texts.sort_by(|(one, _), (other, _)| one.cmp(other));
        let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
        Ok(Self { terms, text: texts.join(",") })
    }

    /// How many requirements the terms have that this Node fulfils; `None` when there is no such
    /// term.
    pub(crate) fn fits(&self, name: &str, marks: &NodeMarks) -> Option<usize> {
        let fulfilled = |term: &&Vec<Requirement>| {
            // A term that asks for nothing selects nothing.
            !term.is_empty() && term.iter().all(|wanted| wanted.is_met(name, marks))
        };
        let mut fulfilled = self.terms.iter().filter(fulfilled).map(Vec::len).peekable();
        fulfilled.peek()?;
        Some(fulfilled.sum())
    }

    /// All requirements, sorted by key, in the syntax of label selectors.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// The label as which a field is looked up; `None` for the Node's name.
fn field(
    wanted: &NodeSelectorRequirement,
    combined: Terms,
) -> Result<Option<Box<str>>, SelectorError> {
    let takes = ["In", "NotIn"].contains(&&*wanted.operator) && values(wanted).len() == 1;
    if wanted.key != NAME || !takes {
        let (_, text) = text(wanted);
        return Err(SelectorError::Field(format!("{text:?}")));
    }
    Ok((combined == Terms::And).then(|| NAME.into()))
}

impl Requirement {
    fn is_met(&self, name: &str, marks: &NodeMarks) -> bool {
        let value = match &self.label {
            None => Some(name),
            Some(key) => marks.labels.get(key).map(AsRef::as_ref),
        };
        self.test.passes(value)
    }
}

fn values(wanted: &NodeSelectorRequirement) -> &[String] {
    wanted.values.as_deref().unwrap_or_default()
}

/// The test of a requirement.
fn test(wanted: &NodeSelectorRequirement) -> Result<LabelTest, SelectorError> {
    let NodeSelectorRequirement { key, operator, .. } = wanted;
    let values = values(wanted);
    let list = || values.iter().map(|value| value.as_str().into()).collect();
    let refused = |takes| {
        let (key, operator, given) = (key.clone(), operator.clone(), values.len());
        SelectorError::Values { key, operator, takes, given }
    };
    let number = || match values {
        [one] => one.parse().map_err(|_| refused("one whole number")),
        _ => Err(refused("one whole number")),
    };
    match operator.as_str() {
        "In" | "NotIn" if values.is_empty() => Err(refused("values")),
        "In" => Ok(LabelTest::In(list())),
        "NotIn" => Ok(LabelTest::NotIn(list())),
        "Exists" | "DoesNotExist" if !values.is_empty() => Err(refused("no values")),
        "Exists" => Ok(LabelTest::Exists),
        "DoesNotExist" => Ok(LabelTest::DoesNotExist),
        "Gt" => Ok(LabelTest::Greater(number()?)),
        "Lt" => Ok(LabelTest::Less(number()?)),
        _ => Err(SelectorError::Operator { key: key.clone(), operator: operator.clone() }),
    }
}

/// The requirement's key and the whole of it, as apimachinery's label selectors are written.
fn text(wanted: &NodeSelectorRequirement) -> (String, String) {
    let NodeSelectorRequirement { key, operator, .. } = wanted;
    let mut sorted = values(wanted).to_vec();
    sorted.sort_unstable();
    let values = sorted.join(",");
    let text = match operator.as_str() {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "Exists" => key.clone(),
        "DoesNotExist" => format!("!{key}"),
        "Gt" => format!("{key}>{values}"),
        "Lt" => format!("{key}<{values}"),
        other => format!("{key} {other} ({values})"),
    };
    (key.clone(), text)
}

#[cfg(test)]
mod tests;
