//! Types of Clusters that rules are about.

/// Upstream's installer makes them on machines.
pub(super) const BAREMETAL: &str = "Baremetal";
/// They exist already.
pub(super) const IMPORTED: &str = "Imported";
