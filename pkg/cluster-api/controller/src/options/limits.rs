//! Limits that several options have.

/// Objects of one kind that are worked on at once.
pub(super) const CONCURRENCY_MAX: i64 = 1000;
