//! [`Protocol`]: which HTTP is spoken.

/// Which HTTP a pool of connections speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2 where the server offers it: all requests share one connection.
    Negotiated,
    /// HTTP/1.1, where a request that fails or is given up takes its connection with it, so that
    /// the next one starts on a fresh one. That is what the lease needs.
    Http1,
    /// HTTP/1.1 with small buffers and one connection that stays open, for one small request at a
    /// time: what a prober of thousands of servers needs (`rule:slim-connections-fit-48-kib`).
    Slim,
}
