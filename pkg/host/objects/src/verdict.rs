//! What the server's answers mean. Pure; asked by `calls`.

use client::Answer;
use http::StatusCode;
use kube_api::Status;
use serde_json::Value;

use crate::Why;

/// Longest part of the server's words that is kept.
const MESSAGE: usize = 1024;

/// The JSON of a successful answer to a request about the object `name` of `plural`.
pub(crate) fn of_write(answer: &Answer, plural: &str, name: &str) -> Result<Value, Why> {
    if answer.status.is_success() {
        // Whatever answers so in anything but JSON is not the API server.
        return serde_json::from_slice(&answer.body).map_err(|_| doubtful(answer));
    }
    Err(match refusal(answer, plural, name) {
        // The server gave up waiting for the request, or failed in the middle of it.
        Why::Refused { status, .. } if !is_final(status) => doubtful(answer),
        why => why,
    })
}

/// As [`of_write`] for a read, which has nothing to leave open.
pub(crate) fn of_read(answer: &Answer, plural: &str, name: &str) -> Result<Value, Why> {
    if answer.status == StatusCode::OK
        && let Ok(object) = serde_json::from_slice(&answer.body)
    {
        return Ok(object);
    }
    Err(refusal(answer, plural, name))
}

fn doubtful(answer: &Answer) -> Why {
    Why::Doubtful { status: answer.status, settled_at: answer.settled_at }
}

/// The server has decided, so that nothing happens any more.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT
}

fn refusal(answer: &Answer, plural: &str, name: &str) -> Why {
    let said = Status::read(&answer.body).unwrap_or_default();
    match answer.status {
        StatusCode::NOT_FOUND if said.says_not_found(plural, name) => Why::Gone,
        StatusCode::CONFLICT if said.reason == "AlreadyExists" => Why::Exists,
        StatusCode::CONFLICT => Why::Conflict { attempts: 1 },
        StatusCode::UNPROCESSABLE_ENTITY if names_uid(&said) => Why::Conflict { attempts: 1 },
        StatusCode::TOO_MANY_REQUESTS => Why::Throttled { retry_after: answer.retry_after },
        status => Why::Refused { status, message: message(&said, status) },
    }
}

/// The object of this name is another one than the one that the patch names.
fn names_uid(said: &Status) -> bool {
    said.details.causes.iter().any(|cause| cause.field == "metadata.uid")
}

fn message(said: &Status, status: StatusCode) -> String {
    if said.message.is_empty() {
        return status.canonical_reason().unwrap_or("no reason given").to_owned();
    }
    said.message.chars().take(MESSAGE).collect()
}

#[cfg(test)]
mod tests;
