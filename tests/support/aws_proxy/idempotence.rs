//! Client tokens: AWS answers a repeated create with the resource of the first one, and refuses a
//! token with other parameters. moto creates again.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use parking_lot::Mutex;

use super::answer;
use super::call::Call;

/// What was answered to creates with a token.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<(String, String), First>>);

struct First {
    parameters: BTreeMap<String, String>,
    answer: String,
}

impl Tokens {
    /// The answer to a create whose token is known.
    pub(super) fn answer(&self, call: &Call) -> Option<Response<Full<Bytes>>> {
        let tokens = self.0.lock();
        let first = tokens.get(&key(call)?)?;
        Some(if first.parameters == call.parameters {
            Response::new(Full::new(Bytes::from(first.answer.clone())))
        } else {
            answer::refusal(call, "IdempotentParameterMismatch", 400)
        })
    }

    /// Keeps the answer to a create that was carried out.
    pub(super) fn note(&self, call: &Call, answer: &str) {
        if let Some(key) = key(call) {
            let first = First { parameters: call.parameters.clone(), answer: answer.to_owned() };
            self.0.lock().insert(key, first);
        }
    }

    pub(super) fn forget(&self) {
        self.0.lock().clear();
    }
}

fn key(call: &Call) -> Option<(String, String)> {
    let token = call.parameters.get("ClientToken")?;
    Some((call.action.clone(), token.clone()))
}
