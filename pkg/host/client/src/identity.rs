//! Identities of clients: the process's own credentials and how they are followed, and the
//! tokens of service accounts.

pub(crate) mod authorize;
pub(crate) mod credentials;
pub(crate) mod metrics;
mod plugin;
pub(crate) mod snapshot;
mod token_request;

pub use plugin::PluginError;
pub use token_request::TokenError;
