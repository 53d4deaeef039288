//! [`Limits`]: what the flags say to the engine.

/// What the flags say to the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Probes under way at once; 0 has it computed.
    pub concurrent_probes: usize,
    /// Status writes per second.
    pub write_rate: f64,
    /// Status writes at once after a quiet time.
    pub write_burst: u32,
    /// Nothing is written: neither status nor event.
    pub audit: bool,
    /// Replicas that share the clusters; 1 has the leader do everything.
    pub shards: usize,
    /// Namespace of their leases; those of one namespace belong together.
    pub shards_namespace: String,
}
