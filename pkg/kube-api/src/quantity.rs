//! Kubernetes quantities, exact, and what a Pod requests of its Node.
//!
//! Called by controllers that add up the resources of a cluster: they read slim Pods into
//! [`PodRequests`], Nodes into [`Resources`], add, and show the sums rounded up by
//! [`Quantity::rounded_to_milli`] or [`Quantity::rounded_to_whole`]. No I/O.

mod amount;

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::go::null_is_default;

pub use amount::{ParseError, Quantity};

/// Quantities by the name of their resource, such as `cpu`. One that is not there is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resources {
    quantities: BTreeMap<Box<str>, Quantity>,
}

impl Resources {
    /// How much there is of a resource.
    pub fn get(&self, name: &str) -> Quantity {
        self.quantities.get(name).copied().unwrap_or_default()
    }

    /// Sets how much there is of a resource.
    pub fn set(&mut self, name: &str, quantity: Quantity) {
        self.quantities.insert(name.into(), quantity);
    }

    /// Whether there is no quantity.
    pub fn is_empty(&self) -> bool {
        self.quantities.is_empty()
    }

    /// All that are there, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.quantities.iter().map(|(name, quantity)| (&**name, *quantity))
    }

    /// Raises each resource to the larger of the two quantities.
    pub(crate) fn raise_to(&mut self, other: &Self) {
        for (name, quantity) in &other.quantities {
            let own = self.quantities.entry(name.clone()).or_default();
            *own = (*own).max(*quantity);
        }
    }

    /// Takes over the resources that the other names.
    pub(crate) fn replace_by(&mut self, other: &Self) {
        self.quantities.extend(other.quantities.clone());
    }
}

impl AddAssign<&Resources> for Resources {
    fn add_assign(&mut self, other: &Resources) {
        for (name, quantity) in &other.quantities {
            *self.quantities.entry(name.clone()).or_default() += *quantity;
        }
    }
}

impl<'a> FromIterator<(&'a str, Quantity)> for Resources {
    fn from_iter<I: IntoIterator<Item = (&'a str, Quantity)>>(pairs: I) -> Self {
        let quantities = pairs.into_iter().map(|(name, quantity)| (name.into(), quantity));
        Self { quantities: quantities.collect() }
    }
}

/// The part of a Pod's `spec` that says what it requests and on which Node; the rest is skipped while
/// reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodRequests {
    /// The Node that it is bound to.
    pub node_name: Option<Box<str>>,
    #[serde(deserialize_with = "null_is_default")]
    containers: Vec<Container>,
    #[serde(deserialize_with = "null_is_default")]
    init_containers: Vec<Container>,
    /// Requests of the whole Pod, which replace those of its containers.
    #[serde(deserialize_with = "null_is_default")]
    resources: Requirements,
    /// The overhead of its runtime, on top of its containers.
    #[serde(deserialize_with = "null_is_default")]
    overhead: Resources,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    #[serde(deserialize_with = "null_is_default")]
    resources: Requirements,
    restart_policy: Option<Box<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Requirements {
    #[serde(deserialize_with = "null_is_default")]
    requests: Resources,
}

impl Container {
    /// A sidecar: an init container that keeps running with the containers.
    fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}

impl PodRequests {
    /// The quantity that the scheduler reserves for the Pod.
    pub fn total(&self) -> Resources {
        let mut most = Resources::default();
        let mut sidecars = Resources::default();
        for init in &self.init_containers {
            if init.is_sidecar() {
                sidecars += &init.resources.requests;
            } else {
                let mut step = sidecars.clone();
                step += &init.resources.requests;
                most.raise_to(&step);
            }
        }
        let mut running = sidecars;
        for container in &self.containers {
            running += &container.resources.requests;
        }
        most.raise_to(&running);
        most.replace_by(&self.resources.requests);
        most += &self.overhead;
        most
    }
}

#[cfg(test)]
mod tests;
