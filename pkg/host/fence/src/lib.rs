//! The fence of a leader, or of a replica with a share of its own, and the clock that it is read
//! by.
//!
//! `election` opens and closes a [`Fence`]; whatever writes to something outside this process (the
//! clients of the API server, those of a cloud) asks it before a write leaves. A crate of its own,
//! so that a writer that is no Kubernetes client needs nothing else of us.

mod boot_clock;
mod fence;

pub use boot_clock::BootInstant;
pub use fence::{Fence, Fenced};
