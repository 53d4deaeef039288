//! Certificate chains of strangers: bounded before they are read, and judged at a bounded cost. Both
//! sides use it: `serving` for the certificates of clients, `transport` for those of servers.
//!
//! | file | holds |
//! |---|---|
//! | `bounds.rs` | what a chain may have, and what its judgement may cost |
//! | `chain.rs` | the bounds of a chain, and the one path through it |
//! | `authorities.rs` | [`Authorities`]: certificates that are trusted, and what they vouch for |
//! | `terms.rs` | [`Terms`]: what a chain is judged by |
//! | `anchors.rs` | which of them may sign others, and within which limits |
//! | `signatures.rs` | signatures checked, as many as a judgement may cost |
//! | `refused.rs` | [`Refused`]: why a chain is not good |
//! | `restated.rs`, `der.rs` | a certificate in a form that webpki reads |
//! | `validity.rs` | [`validity`]: from when to when a certificate is valid |

mod anchors;
mod authorities;
mod bounds;
mod chain;
mod der;
mod refused;
mod restated;
mod signatures;
mod terms;
mod validity;

pub use authorities::{Authorities, Good};
pub use bounds::{MOST_BYTES, MOST_CERTIFICATES};
pub use chain::bounded;
pub use refused::{AuthorityFault, Refused};
pub use restated::readable;
pub use terms::{Purpose, Terms};
pub use validity::{Validity, validity};

#[cfg(test)]
mod tests;
