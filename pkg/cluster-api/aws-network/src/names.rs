//! Names that upstream's AWS provider gives, so that either finds what the other made.

use blake2::digest::consts::U28;
use blake2::{Blake2b, Digest};

/// The longest name that a load balancer may have.
const LOAD_BALANCER_NAME: usize = 32;

const BASE36: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The name of the load balancer of a cluster's API server. Upstream gives a network load balancer
/// of the current dialect the namespace and the cluster, joined by a dash, as `cluster`.
pub fn load_balancer_name(cluster: &str) -> String {
    let plain = format!("{}-apiserver", cluster.replace('.', "-"));
    if plain.len() <= LOAD_BALANCER_NAME { plain } else { format!("{}-k8s", hashed(cluster)) }
}

/// The 28 bytes of BLAKE2b, each as one digit of base 36.
fn hashed(text: &str) -> String {
    let digest = Blake2b::<U28>::digest(text.as_bytes());
    digest.iter().map(|byte| char::from(BASE36[usize::from(*byte) % BASE36.len()])).collect()
}

/// The Name tag of a resource of the cluster.
pub(crate) fn resource_name(cluster: &str, suffix: &str) -> String {
    format!("{cluster}-{suffix}")
}

/// The name of a security group. AWS refuses names that begin with `sg-`.
pub(crate) fn security_group_name(cluster: &str, role: &str) -> String {
    let at = if cluster.starts_with("sg-") { "@" } else { "" };
    format!("{at}{cluster}-{role}")
}

#[cfg(test)]
mod tests;
