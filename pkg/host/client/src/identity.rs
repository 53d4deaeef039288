//! Who a client is to the API server: the process's own credentials and how they are followed, the
//! tokens of service accounts, and the user agent.

pub(crate) mod account;
pub(crate) mod authorize;
pub(crate) mod certificate_metrics;
pub(crate) mod credentials;
mod plugin;
pub(crate) mod plugin_metrics;
mod plugin_runs;
pub(crate) mod snapshot;
mod token;
mod token_request;
pub(crate) mod user_agent;

pub use plugin::PluginError;
pub use token::TokenError;
