//! [`NetworkChecker`]: asks the network what rules of `validation` want to know: for the webhook
//! that admits objects, and for the command `validate`.
//!
//! All that it dials are addresses that somebody wrote into an object, so it dials none of those
//! that [`DialPolicy`] refuses, sends no credential to a machine, and tells codes and never what a
//! server said (`rule:the-network-is-asked-with-care`).
//!
//! | file | holds |
//! |---|---|
//! | `options.rs` | what is asked at all, and which addresses may be dialled |
//! | `connect.rs` | one TCP connection, within its time |
//! | `ssh.rs` | whether SSH answers |
//! | `member.rs` | whether an API server takes a credential, and is free to be imported |

mod connect;
mod member;
mod options;
mod ssh;

use futures::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
pub use transport::DialPolicy;
use transport::{Asker, Names, Resolver, Way};
use validation::{CheckResult, NetworkChecks, Question};

use crate::StoredObjects;
use member::Members;
pub use options::NetworkOptions;

/// Checks of one request at once.
const OF_A_REQUEST: usize = 16;
/// Checks of all requests at once.
const AT_ONCE: usize = 128;

/// Asks the network. One for a process: it bounds what all requests ask at once.
pub struct NetworkChecker {
    options: NetworkOptions,
    resolver: Resolver,
    members: Members,
    turns: Semaphore,
}

impl NetworkChecker {
    /// Asks nothing yet.
    ///
    /// # Errors
    /// Never, but that the metrics of its connections, which nobody reads, could not be made.
    pub fn new(options: NetworkOptions) -> Result<Self, prometheus::Error> {
        let resolver = Resolver::new(Names::default(), options.policy.clone());
        let members = Members::new(&options)?;
        Ok(Self { options, resolver, members, turns: Semaphore::new(AT_ONCE) })
    }

    /// Answers the questions about `object` that it can until `end`: in parallel, each within the
    /// time of its kind. What has no answer is not known, as when the management API, which
    /// `objects` may ask, cannot be reached.
    pub async fn answers(
        &self,
        questions: &[Question],
        object: &Value,
        objects: &StoredObjects,
        end: Instant,
    ) -> NetworkChecks {
        let asker = &Asker::default();
        let ask = |question| async move {
            let answer = timeout_at(end, self.answer(question, object, objects, asker)).await;
            (question, answer.ok().flatten())
        };
        let asked: Vec<_> = questions.iter().map(ask).collect();
        let answers: Vec<_> = stream::iter(asked).buffer_unordered(OF_A_REQUEST).collect().await;
        let mut known = NetworkChecks::default();
        for (question, answer) in answers {
            let Some(answer) = answer else { continue };
            known.take(question, answer);
        }
        known
    }

    /// Whether this is asked at all.
    pub fn asks(&self, question: &Question) -> bool {
        match question {
            Question::Ssh(_) => self.options.ssh,
            Question::Import(_) => self.options.import,
            Question::Tcp(_) | Question::Credential(_) => true,
        }
    }

    async fn answer(
        &self,
        question: &Question,
        object: &Value,
        objects: &StoredObjects,
        asker: &Asker,
    ) -> Option<CheckResult> {
        if !self.asks(question) {
            return None;
        }
        // Fails only when it is closed, which nobody does.
        let _turn = self.turns.acquire().await;
        let way = Way { resolver: &self.resolver, asker };
        match question {
            Question::Ssh(target) => Some(result(ssh::check(target, way).await)),
            Question::Tcp(target) => {
                let opened = connect::open(target, way, connect::LIMIT).await;
                Some(result(opened.map(drop)))
            }
            Question::Credential(_) => self.members.credential(object, objects).await,
            Question::Import(_) => self.members.import(object, objects).await,
        }
    }
}

/// As a rule reads it.
fn result(found: Result<(), &'static str>) -> CheckResult {
    match found {
        Ok(()) => CheckResult::Passed,
        Err(code) => CheckResult::Failed(code.to_owned()),
    }
}

#[cfg(test)]
mod tests;
