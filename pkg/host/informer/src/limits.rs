//! How much of an answer is taken. Beyond it the answer is refused before it fills the memory.

/// No object is larger: etcd takes 1.5 MiB, and JSON can be a few times its stored form.
pub(crate) const LONGEST_MESSAGE: usize = 32 << 20;
/// A page of 500 objects of 128 KiB. One that is longer is asked for in parts.
pub(crate) const LONGEST_PAGE: usize = 64 << 20;
/// The text of a refusal.
pub(crate) const LONGEST_REFUSAL: usize = 1 << 20;
