//! The plan of a scene, and its contender.

use std::path::PathBuf;
use std::time::Duration;

use crate::allocator::Allocator;

/// The program under test.
#[derive(Debug, Clone)]
pub enum Contender {
    /// The binary of this checkout.
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
    /// Source of the product's pod CIDRs; the peer has only one allocator.
    pub allocator: Allocator,
    /// How long the faults last.
    pub length: Duration,
    /// Directory for the log of every process.
    pub logs: Option<PathBuf>,
}
