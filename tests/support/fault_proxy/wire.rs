//! How objects travel: what clients ask for and what the server offers differ from cluster to
//! cluster, and every way has faults of its own.

use http::{HeaderValue, header};

use super::canned::Canned;
use super::matching::Request;

/// The encoding and the kind of lists by which the product reads what it watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Protobuf where the client asks for it, lists as the beginning of a watch.
    ProtobufStreamed,
    /// Protobuf where the client asks for it; the server refuses to stream lists.
    ProtobufPages,
    /// JSON whatever the client would rather have; the server refuses to stream lists.
    JsonPages,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ProtobufStreamed, Self::ProtobufPages, Self::JsonPages];

    /// The encoding for the running test, chosen by its name, so that a suite uses all encodings
    /// and a test always the same. Tests on the main thread share one.
    pub fn of_this_test() -> Self {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or_default().bytes();
        // FNV-1a: the standard library's hash may change from release to release.
        let hash = name
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Self::ALL[hash as usize % Self::ALL.len()]
    }

    /// The request as the server gets it: without a wish that is not granted.
    pub(super) fn granted(self, mut request: Request) -> Request {
        if self == Self::JsonPages && request.wants_protobuf() {
            let json = HeaderValue::from_static("application/json");
            request.headers.insert(header::ACCEPT, json);
        }
        request
    }

    /// The answer of a server without streaming lists to a request for one.
    pub(super) fn refusal(self, request: &Request) -> Option<Canned> {
        const MESSAGE: &str = "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: \
             sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        let refused = self != Self::ProtobufStreamed && request.is_watch_list();
        refused.then(|| Canned::status(422).because("Invalid", MESSAGE))
    }
}
