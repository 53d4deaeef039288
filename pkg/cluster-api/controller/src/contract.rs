//! [`Contract`]: the contract of Cluster API that AWSClusters follow. Zones and conditions have the same
//! names in each contract but different forms, and a core takes the newest contract that the CRD is
//! labelled with. So a flag chooses one: its form is published and the CRD has its label only. Pure.

use flags::{Problem, Values};
use manager::CrdLabel;
use serde_json::{Map, Value, json};

use crate::api::Condition;
use crate::flags::INFRA_CONTRACT;

/// Labels of CRDs by which Cluster API's core knows the contract begin so.
const LABEL: &str = "cluster.x-k8s.io";
/// The version of the kind that keeps it.
const VERSION: &str = "v1beta2";

/// A contract between Cluster API's core and what makes infrastructure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Contract {
    /// Cluster API before 1.11, and other controllers that read AWSClusters as upstream writes them.
    V1Beta1,
    /// Cluster API since 1.11.
    #[default]
    V1Beta2,
}

impl Contract {
    pub(crate) const WORDS: [&str; 2] = ["v1beta1", "v1beta2"];

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "v1beta1" => Some(Self::V1Beta1),
            "v1beta2" => Some(Self::V1Beta2),
            _ => None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        let [older, newer] = Self::WORDS;
        match self {
            Self::V1Beta1 => older,
            Self::V1Beta2 => newer,
        }
    }

    pub(crate) fn given(values: &Values) -> Result<Self, Problem> {
        let word = values.get(&INFRA_CONTRACT);
        Self::from_word(&word).ok_or_else(|| {
            let problem = format!("{word:?} is not one of {}", Self::WORDS.join(", "));
            INFRA_CONTRACT.problem(problem)
        })
    }

    /// The label of the CRD by which a core finds the version of the kind that keeps the contract,
    /// and the label of the other contract, which the CRD must not have: a core takes the newest
    /// that it knows.
    pub(crate) fn crd_label(self) -> CrdLabel {
        let other = match self {
            Self::V1Beta1 => Self::V1Beta2,
            Self::V1Beta2 => Self::V1Beta1,
        };
        let key = |contract: Self| format!("{LABEL}/{}", contract.word());
        CrdLabel { key: key(self), value: VERSION, other: key(other) }
    }

    /// Zones, and whether each can have a control plane, in the words of the contract.
    pub(crate) fn failure_domains(self, zones: &[(String, bool)]) -> Value {
        match self {
            Self::V1Beta1 => {
                let zone = |(name, served): &(String, bool)| {
                    (name.clone(), json!({"controlPlane": served}))
                };
                Value::Object(zones.iter().map(zone).collect::<Map<_, _>>())
            }
            Self::V1Beta2 => {
                let zone =
                    |(name, served): &(String, bool)| json!({"name": name, "controlPlane": served});
                Value::Array(zones.iter().map(zone).collect())
            }
        }
    }

    /// Puts a condition into the words of the contract: what does not hold has a severity in one,
    /// and each is about a generation in the other.
    pub(crate) fn shape(self, condition: &mut Condition) {
        match self {
            Self::V1Beta1 => {
                let severity = (condition.status == "False").then(|| severity(&condition.reason));
                condition.severity = severity.map(str::to_owned);
                condition.observed_generation = None;
            }
            Self::V1Beta2 => condition.severity = None,
        }
    }
}

/// How much it matters that something does not hold, by the reason.
fn severity(reason: &str) -> &'static str {
    match reason {
        "Creating"
        | "Deleting"
        | "NotPaused"
        | "NotReady"
        | "Waiting"
        | "WaitForDNSName"
        | "WaitForDNSNameResolve"
        | "WaitingForMachines" => "Info",
        "InvalidConfiguration" => "Error",
        _ => "Warning",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_and_conditions_have_the_form_of_the_contract() {
        let zones = [("a".to_owned(), true), ("b".to_owned(), false)];
        assert_eq!(
            Contract::V1Beta1.failure_domains(&zones),
            json!({"a": {"controlPlane": true}, "b": {"controlPlane": false}})
        );
        assert_eq!(
            Contract::V1Beta2.failure_domains(&zones),
            json!([{"name": "a", "controlPlane": true}, {"name": "b", "controlPlane": false}])
        );
        // (holds, reason, severity)
        for (holds, reason, severity) in [
            (true, "Ready", None),
            (false, "Waiting", Some("Info")),
            (false, "InvalidConfiguration", Some("Error")),
            (false, "QuotaExceeded", Some("Warning")),
        ] {
            let stated = Condition {
                observed_generation: Some(3),
                ..Condition::new("Ready", holds, reason, "")
            };
            let mut older = stated.clone();
            Contract::V1Beta1.shape(&mut older);
            assert_eq!((older.severity.as_deref(), older.observed_generation), (severity, None));
            let mut newer = Condition { observed_generation: Some(3), ..older };
            Contract::V1Beta2.shape(&mut newer);
            assert_eq!(newer, stated, "back again");
        }
    }

    #[test]
    fn a_crd_has_the_label_of_one_contract() {
        for contract in Contract::WORDS.map(|word| Contract::from_word(word).unwrap()) {
            let label = contract.crd_label();
            assert_eq!(label.key, format!("cluster.x-k8s.io/{}", contract.word()));
            assert_eq!(label.value, "v1beta2");
            assert_ne!(label.other, label.key);
        }
        assert_eq!(Contract::from_word("v1alpha4"), None);
    }
}
