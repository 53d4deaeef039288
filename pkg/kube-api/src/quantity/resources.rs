//! [`Resources`]: a quantity per resource name, such as requests of a container or the capacity of
//! a Node.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::quantity::Quantity;

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

    /// None is there.
    pub fn is_empty(&self) -> bool {
        self.quantities.is_empty()
    }

    /// All that are there, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Quantity)> {
        self.quantities.iter().map(|(name, quantity)| (&**name, *quantity))
    }

    /// Of each resource the larger of the two.
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
