//! Keeps a webhook in order with the API server that asks it: an authority that all replicas share,
//! a serving certificate of each, the bundle by which the API server checks them, and the failure
//! policy. Used by the controllers that bring a webhook; the listener is of `serving`. The rules
//! stand in `RULES.md`.
//!
//! | file | holds |
//! |---|---|
//! | `authority.rs` | one authority: made, read, signs. No I/O |
//! | `authorities.rs` | [`Authorities`]: the one in use, the one to come and the one that was. No I/O |
//! | `secret_form.rs` | those as the data of a Secret. No I/O |
//! | `registration.rs` | what a ValidatingWebhookConfiguration says, and what it should. No I/O |
//! | `keeper.rs` | [`Keeper`]: reads and writes both, and renews the certificate |

mod authorities;
mod authority;
mod keeper;
mod registration;
mod secret_form;

pub use authorities::{Authorities, Lives};
pub use authority::{Authority, AuthorityError, Leaf};
pub use keeper::{KeepError, Keeper, Round, Wanted};
pub use registration::{FailurePolicy, Registration};
