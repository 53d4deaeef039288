//! Who a client is to the API server: the token of a service account, and the user agent.

pub(crate) mod account;
pub(crate) mod bearer;
mod token;
mod token_request;
pub(crate) mod user_agent;

pub use token::TokenError;
