//! The PATCH of a Node's pod CIDRs: its body, what its answers mean, and
//! [`OpenPatches`], what may yet become of it (`rule:unknown-outcome-ends`).

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use cidr::IpNet;
use http::StatusCode;
use kube_api::Status;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

/// The body of the strategic merge patch (`rule:patch-names-the-uid`).
pub(crate) fn body(uid: &str, cidrs: &[IpNet]) -> Bytes {
    // Nothing in the text of a CIDR needs escaping.
    let texts: Vec<String> =
        cidrs.iter().map(|net| format!("\"{}\"", cidr::canonical(net))).collect();
    let (uid, first) = (Value::from(uid), texts.first().map_or("null", String::as_str));
    let all = texts.join(",");
    Bytes::from(format!(
        r#"{{"metadata":{{"uid":{uid}}},"spec":{{"podCIDR":{first},"podCIDRs":[{all}]}}}}"#
    ))
}

/// The classes that an HTTP answer can fall into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// 2xx with the Node: written.
    Done,
    /// 404: no Node of that name, to be confirmed by a read.
    Missing,
    /// The Node of that name has another UID, or the write raced: read again.
    Replaced,
    /// Somebody else set the CIDRs first; they cannot be changed.
    Taken,
    /// Refused, and a retry soon is useless; the message is for the event.
    Rejected {
        /// The message of the server.
        message: String,
        /// The least pause before the next attempt.
        pause: Duration,
    },
    /// 429: not written.
    Throttled {
        /// What `Retry-After` said, for which the client stops by itself.
        retry_after: Option<Duration>,
    },
    /// May have been written: only a consistent read can tell.
    Ambiguous {
        /// The message of the server, for the log.
        message: String,
    },
}

impl Class {
    /// The label of `node_ipam_patch_results_total`.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Missing => "missing",
            Self::Replaced => "replaced",
            Self::Taken => "taken",
            Self::Rejected { .. } => "rejected",
            Self::Throttled { .. } => "throttled",
            Self::Ambiguous { .. } => "ambiguous",
        }
    }
}

/// Missing rights do not come back within milliseconds.
const FORBIDDEN_PAUSE: Duration = Duration::from_secs(5);

/// Classifies the answer to a PATCH of the Node `uid`.
pub(crate) fn classify(
    status: StatusCode,
    retry_after: Option<Duration>,
    body: &[u8],
    uid: &str,
) -> Class {
    if status.is_success() && is_node(body, uid) {
        return Class::Done;
    }
    if status.is_success() {
        // Whatever answers so is not the API server, and may not have asked it.
        let message = format!("the server answered {status} without the Node");
        return Class::Ambiguous { message };
    }
    // A proxy may answer something that is not a Status; the code alone then decides.
    let answer = Status::read(body).unwrap_or_default();
    let message = if answer.message.is_empty() {
        format!("the server answered {status}")
    } else {
        answer.message.clone()
    };
    match status {
        StatusCode::NOT_FOUND => Class::Missing,
        StatusCode::CONFLICT => Class::Replaced,
        StatusCode::TOO_MANY_REQUESTS => Class::Throttled { retry_after },
        StatusCode::UNPROCESSABLE_ENTITY if has_cause(&answer, "metadata.uid") => Class::Replaced,
        StatusCode::UNPROCESSABLE_ENTITY if is_about_pod_cidrs(&answer) => Class::Taken,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            Class::Rejected { message, pause: FORBIDDEN_PAUSE }
        }
        // The server gave up waiting, not the write.
        StatusCode::REQUEST_TIMEOUT => Class::Ambiguous { message },
        status if status.is_client_error() => Class::Rejected { message, pause: Duration::ZERO },
        _ => Class::Ambiguous { message },
    }
}

/// The part of an answer that identifies the Node.
#[derive(Deserialize)]
struct Answered<'a> {
    #[serde(borrow)]
    metadata: AnsweredMetadata<'a>,
}

#[derive(Deserialize)]
struct AnsweredMetadata<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
}

fn is_node(body: &[u8], uid: &str) -> bool {
    serde_json::from_slice::<Answered<'_>>(body).is_ok_and(|node| node.metadata.uid == uid)
}

fn has_cause(answer: &Status, field: &str) -> bool {
    answer.details.causes.iter().any(|cause| cause.field == field)
}

/// The two refusals that a Node with CIDRs gives: they are immutable, and a merged list is too
/// long.
fn is_about_pod_cidrs(answer: &Status) -> bool {
    let refused = |text: &str| {
        text.contains("may not change podCIDR") || text.contains("no more than one CIDR")
    };
    refused(&answer.message) || answer.details.causes.iter().any(|cause| refused(&cause.message))
}

/// Between the first two of the reads that settle an outcome: a store that stood still carries out
/// what it held together with the first read that it answers, and has begun with it by then.
const AFTERMATH: Duration = Duration::from_secs(1);
/// How many reads settle it. The first may come to the store together with the PATCH, and the
/// second while the PATCH is on its way to the disk: it is then answered by what was committed
/// before.
const READS: u8 = 3;

/// PATCHes whose outcome is not known, the one in flight included. Every moment in here is the one
/// from which on the server can no longer apply the PATCH.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenPatches {
    in_flight: Option<Instant>,
    unknown: Option<Instant>,
    /// How many of the [`READS`] have shown the Node without CIDRs.
    empty_reads: u8,
}

impl OpenPatches {
    /// A PATCH leaves that the server can apply until then.
    pub(crate) fn sent(&mut self, until: Instant) {
        // Nothing was said of the one before it.
        *self = Self { in_flight: Some(until), unknown: self.until(), empty_reads: 0 };
    }

    /// Records that the outcome of the last PATCH is unknown. `until` is the client's newest limit for
    /// it, which may differ from the limit given to [`Self::sent`].
    pub(crate) fn lost(&mut self, until: Option<Instant>) {
        let lost = until.or(self.in_flight);
        if lost.is_some() {
            self.empty_reads = 0;
        }
        self.unknown = self.unknown.max(lost);
        self.in_flight = None;
    }

    /// The answer to the last PATCH says that it wrote nothing. It says nothing of those before.
    pub(crate) fn refused(&mut self) {
        self.in_flight = None;
    }

    /// A consistent read that was begun and answered at those moments shows the Node without CIDRs.
    pub(crate) fn read_empty(&mut self, begun: Instant, answered: Instant) {
        if self.until().is_none_or(|until| begun < until) {
            return;
        }
        let empty_reads = self.empty_reads + 1;
        let wait = if empty_reads == 1 { AFTERMATH } else { Duration::ZERO };
        *self = if empty_reads == READS {
            Self::default()
        } else {
            Self { in_flight: None, unknown: Some(answered + wait), empty_reads }
        };
    }

    /// The moment after which the next read counts; `None` when nothing is open.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.unknown.max(self.in_flight)
    }

    /// The limit of the PATCH in flight, that of earlier ones, and the number of empty reads.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> (Option<Instant>, Option<Instant>, u8) {
        (self.in_flight, self.unknown, self.empty_reads)
    }

    /// Whether the server may yet apply something.
    pub(crate) fn is_open(&self) -> bool {
        self.until().is_some()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(message: &str, causes: &[(&str, &str)]) -> Vec<u8> {
        let causes: Vec<_> = causes
            .iter()
            .map(|(field, message)| json!({"field": field, "message": message}))
            .collect();
        json!({"kind": "Status", "message": message, "details": {"causes": causes}})
            .to_string()
            .into_bytes()
    }

    fn class(code: u16, body: &[u8]) -> Class {
        classify(StatusCode::from_u16(code).unwrap(), None, body, "u")
    }

    #[test]
    fn the_body_names_the_uid_and_both_fields_in_canonical_text() {
        let cidrs = [cidr::parse("10.0.1.0/24").unwrap(), cidr::parse("FD00:0:0:1::/64").unwrap()];
        let body: Value = serde_json::from_slice(&body("u\"1", &cidrs)).unwrap();
        assert_eq!(
            body,
            json!({"metadata": {"uid": "u\"1"}, "spec": {
                "podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24", "fd00:0:0:1::/64"]}})
        );
    }

    #[test]
    fn every_row_of_the_result_table_has_its_class() {
        let uid = ("metadata.uid", "field is immutable");
        let set =
            ("spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
        let long = ("spec.podCIDRs", "may specify no more than one CIDR for each IP family");
        let rows: &[(u16, Vec<u8>, &str)] = &[
            (200, br#"{"kind":"PartialObjectMetadata","metadata":{"uid":"u"}}"#.to_vec(), "done"),
            (200, br#"{"metadata":{"uid":"\u0075","labels":{}}}"#.to_vec(), "done"),
            (200, br#"{"metadata":{"uid":"another"}}"#.to_vec(), "ambiguous"),
            (200, b"{}".to_vec(), "ambiguous"),
            (200, b"<html>maintenance".to_vec(), "ambiguous"),
            (202, vec![], "ambiguous"),
            (204, vec![], "ambiguous"),
            (404, status("nodes \"n\" not found", &[]), "missing"),
            (409, status("precondition failed", &[]), "replaced"),
            (422, status("invalid", &[uid]), "replaced"),
            (422, status("invalid", &[set, uid]), "replaced"),
            (422, status("invalid", &[set]), "taken"),
            (422, status("invalid", &[long]), "taken"),
            (422, status("Forbidden: may not change podCIDR", &[]), "taken"),
            (422, status("invalid", &[("spec.podCIDRs", "not a valid CIDR")]), "rejected"),
            (400, b"bad".to_vec(), "rejected"),
            (401, vec![], "rejected"),
            (403, vec![], "rejected"),
            (429, vec![], "throttled"),
            (408, vec![], "ambiguous"),
            (500, vec![], "ambiguous"),
            (502, b"<html>".to_vec(), "ambiguous"),
            (503, vec![], "ambiguous"),
            (504, status("timeout", &[]), "ambiguous"),
        ];
        for (code, body, expected) in rows {
            let class = class(*code, body);
            assert_eq!(class.label(), *expected, "{code} {}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn missing_rights_wait_five_seconds_and_others_back_off_from_zero() {
        for (code, pause) in [(401, 5), (403, 5), (400, 0), (422, 0)] {
            let Class::Rejected { pause: got, .. } = class(code, b"{}") else {
                panic!("{code} is not rejected");
            };
            assert_eq!(got, Duration::from_secs(pause), "{code}");
        }
    }

    #[test]
    fn a_429_says_what_the_server_asked_for() {
        for retry_after in [None, Some(Duration::from_secs(7))] {
            let class = classify(StatusCode::TOO_MANY_REQUESTS, retry_after, b"", "u");
            assert_eq!(class, Class::Throttled { retry_after });
        }
    }

    #[test]
    fn arbitrary_bodies_never_panic() {
        for body in [&b"null"[..], b"[]", b"{\"details\":1}", b"\xff\xfe", b""] {
            for code in 100..600 {
                let _class = class(code, body);
            }
        }
    }
}
