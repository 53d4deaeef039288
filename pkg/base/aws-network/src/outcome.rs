//! [`Outcome`]: what the executor knows of a write.

use std::net::Ipv4Addr;

/// What AWS answered to a create. Each call fills what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The id (or ARN, or name) of what was created, of an association too.
    pub id: String,
    /// The address that was allocated.
    pub address: Option<Ipv4Addr>,
    /// The DNS name of a load balancer.
    pub dns_name: Option<String>,
}

/// What is known of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out.
    Done(Answer),
    /// AWS answered with this error code, through all wrapping; nothing was done.
    Refused(String),
    /// It never left: the fence was closed, or its intent had grown too old.
    NotSent,
    /// No answer, or none that can be read: it may have been carried out.
    Unknown,
}
