//! A sample controller of two custom kinds and one kind learnt at run time, for tests: it stands on
//! everything that a controller of custom resources stands on, as a real one would.
//!
//! A *Shipment* has items and names a carrier, an object of any kind. The controller packs it into
//! a *Parcel*, loads the parcel onto the carrier, and says in the shipment's status which items are
//! packed. A deleted shipment is unloaded first.
//!
//! | file | holds |
//! |---|---|
//! | `controller.rs` | [`Sample`], which a command hosts together with the product's own controllers |
//! | `shipments.rs`, `parcels.rs` | one pass over one object |
//! | `carriers.rs` | the kinds that are learnt at run time |
//! | `kinds.rs`, `crds.rs` | the kinds with their typed views, and their CRDs |
//! | `metrics.rs` | what the tests read |

mod carriers;
mod controller;
pub mod crds;
mod kinds;
mod metrics;
mod parcels;
mod shipments;

use std::time::Duration;

use workqueue::{Backoff, Jitter};

pub use controller::Sample;
pub use kinds::{
    Carrier, Item, PARCELS, Parcel, ParcelSpec, ParcelStatus, Phase, SHIPMENTS, Shipment,
    ShipmentSpec, ShipmentStatus, VANS, WithSpec,
};

/// Canonical name of the controller; also its service account and field manager.
pub const NAME: &str = "sample-controller";
/// Path of the page that lists the kinds of carriers.
pub const PAGE: &str = "/debug/controllers/sample-controller";
/// An item over which the controller panics whenever it hears of its shipment.
pub const BOMB: &str = "bomb";
/// Holds a shipment until it is unloaded.
pub const FINALIZER: &str = "sample.example.org/unload";
/// Label of the parcels that the controller made.
const MADE_BY: &str = "sample.example.org/made-by";

/// Backoff of one object, without a limit of attempts.
const BACKOFF: Backoff =
    Backoff::doubling(Duration::from_millis(20), Duration::from_secs(5), Jitter::Around(0.5));
