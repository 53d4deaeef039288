//! The network, as the machine at which the command runs reaches it.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use tokio::time::Instant;
use validation::{NetworkChecks, Question};

use crate::network::{DialPolicy, NetworkChecker, NetworkOptions};
use crate::{Asker, StoredObjects};

/// For all questions about one object.
const LIMIT: Duration = Duration::from_secs(20);

/// Asks for one object after the other.
pub(super) struct Network {
    checker: NetworkChecker,
    /// Every object that is named, with the credentials among them.
    objects: StoredObjects,
}

impl Network {
    /// Every address may be dialled that the controller dials without further flags.
    pub(super) fn new(objects: Vec<Value>) -> anyhow::Result<Self> {
        let policy = DialPolicy::default();
        let options = NetworkOptions {
            ssh: true,
            import: true,
            policy,
            insecure_without_ca: false,
            secret_namespace: None,
        };
        let checker = NetworkChecker::new(options).context("cannot ask the network")?;
        Ok(Self { checker, objects: StoredObjects::new(objects, None) })
    }

    /// The answers that there are.
    pub(super) async fn ask(&self, questions: &[Question], object: &Value) -> NetworkChecks {
        let end = Instant::now() + LIMIT;
        self.checker.answers(Asker::Command, questions, object, &self.objects, end).await.known
    }
}
