//! A sample controller of two custom kinds and one kind learnt at run time, for tests: it stands on
//! everything that a controller of custom resources stands on, as a real one would.
//!
//! A *Shipment* has items and names a carrier, an object of any kind. The controller packs it into
//! a *Parcel*, loads the parcel onto the carrier, and says in the shipment's status which items are
//! packed. A deleted shipment is unloaded first.
//!
//! | file | holds |
//! |---|---|
//! | `kinds.rs` | the kinds and their typed views |
//! | `crds.rs` | their CRDs |

pub mod crds;
mod kinds;

pub use kinds::{
    Carrier, Item, PARCELS, Parcel, ParcelSpec, ParcelStatus, Phase, SHIPMENTS, Shipment,
    ShipmentSpec, ShipmentStatus, VANS, WithSpec,
};
