//! Why controllers cannot start, or ended without being asked to.

use std::error::Error;
use std::time::Duration;

use resilience::panics::Panic;
use workqueue::TooManyPanics;

use crate::ClientError;

/// Nothing could be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A mistake of ours: two parts share the name of a metric.
    #[error("cannot register the metrics of the controllers: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The rate or the configuration of a client cannot be used.
    #[error("cannot make a client for the controllers: {0}")]
    Client(#[from] ClientError),
}

/// Why a controller ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A mistake of ours: two parts share the name of a metric.
    #[error("cannot register metrics: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The rate or the configuration of a client cannot be used.
    #[error("cannot make a client: {0}")]
    Client(#[from] ClientError),
    /// The first list did not come.
    #[error("cannot start: the caches were not filled within {0:?}")]
    CachesNotFilled(Duration),
    /// Its state is no longer trusted.
    #[error(transparent)]
    TooManyPanics(#[from] TooManyPanics),
    /// What its informers told it is void.
    #[error("cannot go on with what was learnt: {0}")]
    Void(String),
    /// The controller, or a task of it, panicked.
    #[error("cannot go on: it panicked: {0}")]
    Panicked(Panic),
    /// A reason of the controller's own.
    #[error(transparent)]
    Controller(Box<dyn Error + Send + Sync>),
}

impl Failure {
    /// A reason of the controller's own.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Controller(reason.into())
    }
}
