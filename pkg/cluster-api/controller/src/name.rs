//! The name of the controller group.

/// In `--controllers`, as the group of the flags, and in the log.
pub(crate) const NAME: &str = "cluster-api-infrastructure-controller";
