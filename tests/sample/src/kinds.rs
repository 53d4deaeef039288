//! The kinds and their typed views. The views know less than the objects of the tests have.

use std::collections::BTreeMap;

use kube_api::Resource;
use objects::Schema;
use serde::{Deserialize, Serialize};

/// Shipments.
pub const SHIPMENTS: Resource =
    Resource::namespaced("sample.example.org", "v1", "Shipment", "shipments");
/// Parcels.
pub const PARCELS: Resource = Resource::namespaced("sample.example.org", "v1", "Parcel", "parcels");
/// Carriers of the tests. The controller learns of them at run time.
pub const VANS: Resource = Resource::namespaced("sample.example.org", "v1", "Van", "vans");

/// A custom object without metadata and status.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WithSpec<T> {
    /// The spec.
    pub spec: T,
}

/// The kind of [`SHIPMENTS`].
#[derive(Debug)]
pub enum Shipment {}

impl Schema for Shipment {
    type Body = WithSpec<ShipmentSpec>;
    type Status = ShipmentStatus;
}

/// A shipment: its goods and its carrier.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShipmentSpec {
    /// Users add to them.
    #[serde(default)]
    pub items: Vec<Item>,
    /// Takes the parcel.
    pub carrier: Carrier,
}

/// One thing to pack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Unlike those of the other items.
    pub name: String,
}

/// A reference to an object of any kind in the namespace of who refers to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Carrier {
    /// API group.
    pub group: String,
    /// Kind as in manifests.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// Status of a shipment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ShipmentStatus {
    /// Summary.
    pub phase: Phase,
    /// The names of the packed items.
    pub packed: BTreeMap<String, bool>,
    /// Number of writes of this status, by any client.
    pub writes: u64,
}

/// Summary of a shipment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Something is not done yet.
    #[default]
    Pending,
    /// The carrier or its kind does not exist.
    NoCarrier,
    /// All items are packed and loaded.
    Loaded,
}

/// The kind of [`PARCELS`].
#[derive(Debug)]
pub enum Parcel {}

impl Schema for Parcel {
    type Body = WithSpec<ParcelSpec>;
    type Status = ParcelStatus;
}

/// A parcel as it is made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ParcelSpec {
    /// Name of the shipment in it.
    pub shipment: String,
}

/// Status of a parcel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ParcelStatus {
    /// Set by server-side apply.
    pub sealed: bool,
}
