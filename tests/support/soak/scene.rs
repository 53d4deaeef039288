//! What is played, and by whom.

use std::path::PathBuf;
use std::time::Duration;

use crate::allocator::Allocator;

/// Who is put to the test.
#[derive(Debug, Clone)]
pub enum Contender {
    /// This checkout's binary.
    Product,
    /// A kube-controller-manager at this path.
    Stock(PathBuf),
}

impl Contender {
    /// `product` or `stock`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Product => "product",
            Self::Stock(_) => "stock",
        }
    }
}

/// One scene. The same seed draws the same faults.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Decides all that is drawn.
    pub seed: u64,
    /// Where the product takes pod CIDRs from; the peer has one allocator only.
    pub allocator: Allocator,
    /// How long the faults last.
    pub length: Duration,
    /// Where the log of every process goes.
    pub logs: Option<PathBuf>,
}
