//! Repeated creates. AWS answers one with a known client token with the resource of the first one, and refuses a
//! token with other parameters; one of ELB with the same name and settings succeeds as the first did. moto creates
//! again, or refuses.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use parking_lot::Mutex;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use super::answer;
use super::call::Call;
use super::strict::Api;

/// Answers to creates, by their token.
#[derive(Default)]
pub(super) struct Tokens {
    first: Mutex<HashMap<Key, First>>,
    turns: Mutex<HashMap<Key, Arc<Turn<()>>>>,
}

/// The name of a create and its token.
type Key = (String, String);

struct First {
    parameters: BTreeMap<String, String>,
    answer: String,
}

impl Tokens {
    /// Waits for the turn of a create: creates with the same token are carried out one at a time,
    /// so that the next one gets the answer of the first.
    pub(super) async fn turn(&self, call: &Call) -> Option<OwnedMutexGuard<()>> {
        let turn = Arc::clone(self.turns.lock().entry(key(call)?).or_default());
        Some(turn.lock_owned().await)
    }

    /// The answer to a create whose token is known.
    pub(super) fn answer(&self, call: &Call) -> Option<Response<Full<Bytes>>> {
        let tokens = self.first.lock();
        let first = tokens.get(&key(call)?)?;
        if first.parameters == call.parameters {
            Some(Response::new(Full::new(Bytes::from(first.answer.clone()))))
        } else if has_token(call) {
            Some(answer::refusal_by(
                call,
                "IdempotentParameterMismatch",
                400,
                "EC2 API, Ensuring idempotency",
            ))
        } else {
            None
        }
    }

    /// Keeps the answer to a create that was carried out.
    pub(super) fn note(&self, call: &Call, answer: &str) {
        if let Some(key) = key(call) {
            let first = First { parameters: call.parameters.clone(), answer: answer.to_owned() };
            self.first.lock().insert(key, first);
        }
    }

    pub(super) fn forget(&self) {
        self.first.lock().clear();
    }
}

/// Whether a create has a client token: a name is free again when its resource is gone.
pub(super) fn has_token(call: &Call) -> bool {
    call.parameters.contains_key("ClientToken")
}

fn key(call: &Call) -> Option<Key> {
    let is_named = Api::of(call) == Api::ElbV2
        && ["CreateLoadBalancer", "CreateTargetGroup"].contains(&call.action.as_str());
    let name = call.parameters.get("Name").filter(|_| is_named);
    let token = call.parameters.get("ClientToken").or(name)?;
    Some((call.action.clone(), token.clone()))
}
