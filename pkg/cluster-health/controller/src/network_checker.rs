//! [`NetworkChecker`]: asks the network what rules of `validation` want to know: for the webhook
//! that admits objects, and for the command `validate`.
//!
//! All addresses that it dials come from objects of users, so it dials none of those
//! that [`DialPolicy`] refuses, sends no credential to a machine, and returns codes, never the text of
//! a server (`rule:the-network-is-asked-with-care`).

use connect::{Answer, Members, result};
use futures::{StreamExt as _, stream};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use transport::{Names, Resolver, Way};
use validation::{NetworkChecks, Question};

use crate::credential_policy::may_ask;
use crate::{Asker, StoredObjects};

pub(crate) use connect::NetworkOptions;
pub(crate) use transport::DialPolicy;

mod connect;

/// Checks of one request at once.
const OF_A_REQUEST: usize = 16;
/// Checks of all requests at once.
const AT_ONCE: usize = 128;

/// The answers to the questions about one object.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// The answers.
    pub known: NetworkChecks,
    /// Why there are no others.
    pub not_checked: Vec<(Question, String)>,
    /// Other requests had all turns until the time of this one was over.
    pub is_busy: bool,
}

/// Asks the network. One for a process: it bounds what all requests ask at once.
pub(crate) struct NetworkChecker {
    options: NetworkOptions,
    resolver: Resolver,
    members: Members,
    turns: Semaphore,
}

impl NetworkChecker {
    /// Asks nothing yet.
    ///
    /// # Errors
    /// The metrics of its connections cannot be created, which does not happen.
    pub(crate) fn new(options: NetworkOptions) -> Result<Self, prometheus::Error> {
        let resolver = Resolver::new(Names::default(), options.policy.clone());
        let members = Members::new(&options)?;
        Ok(Self { options, resolver, members, turns: Semaphore::new(AT_ONCE) })
    }

    /// Answers the questions about `object` that it can for `asker` until `end`: in parallel, each
    /// within the time of its kind. What has no answer is not known, as when the management API,
    /// which `objects` may ask, cannot be reached.
    pub(crate) async fn answers(
        &self,
        asker: Asker,
        questions: &[Question],
        object: &Value,
        objects: &StoredObjects,
        end: Instant,
    ) -> Answers {
        let dials = &transport::Asker::default();
        let ask = |question| async move {
            let answer = self.answer((asker, dials), question, object, objects, end).await;
            (question, answer)
        };
        let asked: Vec<_> = questions.iter().map(ask).collect();
        let answered: Vec<_> = stream::iter(asked).buffer_unordered(OF_A_REQUEST).collect().await;
        let mut answers = Answers::default();
        for (question, answer) in answered {
            match answer {
                Answer::Known(result) => answers.known.take(question, result),
                Answer::NotChecked(why) => answers.not_checked.push((question.clone(), why)),
                Answer::Busy => answers.is_busy = true,
            }
        }
        answers
    }

    /// Whether this is asked at all.
    pub(crate) fn asks(&self, question: &Question) -> bool {
        match question {
            Question::Ssh(_) => self.options.ssh,
            Question::Import(_) => self.options.import,
            Question::Tcp(_) | Question::Credential(_) => true,
        }
    }

    async fn answer(
        &self,
        (asker, dials): (Asker, &transport::Asker),
        question: &Question,
        object: &Value,
        objects: &StoredObjects,
        end: Instant,
    ) -> Answer {
        if let Err(refusal) = may_ask(asker) {
            return Answer::NotChecked(refusal.to_string());
        }
        if !self.asks(question) {
            return Answer::NotChecked("the check is disabled".to_owned());
        }
        // Fails only when it is closed, and it never is.
        let Ok(_turn) = timeout_at(end, self.turns.acquire()).await else { return Answer::Busy };
        let way = Way { resolver: &self.resolver, asker: dials };
        let answer = async {
            match question {
                Question::Ssh(target) => result(connect::check_ssh(target, way).await),
                Question::Tcp(target) => {
                    let opened = connect::open(target, way, connect::LIMIT).await;
                    result(opened.map(drop))
                }
                Question::Credential(_) => self.members.credential(asker, object, objects).await,
                Question::Import(_) => self.members.import(asker, object, objects).await,
            }
        };
        let late = |_| Answer::NotChecked("no answer in time".to_owned());
        timeout_at(end, answer).await.unwrap_or_else(late)
    }
}

#[cfg(test)]
mod tests;
