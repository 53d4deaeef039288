//! Writes against a naive API server on which things go wrong.

mod changes;
mod concurrent;
mod others;
