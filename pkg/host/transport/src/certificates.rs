//! Certificate chains of strangers: bounded before they are read, and judged at a bounded cost. Both
//! sides use it: `serving` for the certificates of clients, `transport` for those of servers.
//!
//! | file | holds |
//! |---|---|
//! | `chain.rs` | what a chain costs at most: its bounds, the one path through it, its signatures |
//! | `authorities.rs` | [`Authorities`]: certificates that are trusted, and what they vouch for |
//! | `judgement.rs` | [`Terms`]: what a chain is judged by; [`Refused`]: why it is not good |
//! | `anchors.rs` | which of them may sign others, and within which limits |
//! | `relaxed.rs`, `der.rs` | a certificate in a form that webpki reads |

mod authorities;
mod chain;
mod relaxed;

pub use authorities::{Authorities, Good, Validity, validity};
pub use chain::{AuthorityFault, MOST_BYTES, MOST_CERTIFICATES, Purpose, Refused, Terms, bounded};
pub use relaxed::readable;

#[cfg(test)]
mod tests;
