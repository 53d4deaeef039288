//! Keeps the webhook registered at the API server: an authority that all replicas share, a serving
//! certificate of each, the bundle by which the API server checks them, and the failure policy. The
//! listener is of `serving`.
//!
//! | file | holds |
//! |---|---|
//! | `authority.rs` | one authority: made, read, signs. No I/O |
//! | `authorities.rs` | [`Authorities`](authorities::Authorities): the one in use, the one to come and the one that was. No I/O |
//! | `secret_form.rs` | those as the data of a Secret. No I/O |
//! | `registration.rs` | the fields of a registration. No I/O |
//! | `keeper.rs` | [`Keeper`]: reads and writes both, and renews the certificate |

mod authorities;
mod authority;
mod keeper;
mod registration;
mod secret_form;

pub(crate) use authorities::Lives;
pub use authority::{Authority, AuthorityError, Leaf};
pub(crate) use keeper::{Keeper, Round, Wanted};
pub(crate) use registration::FailurePolicy;
