//! Who may ask for a page.

use http::{Method, StatusCode};

use crate::peer::{Peer, PeerCertificate};
use crate::reply::{self, Reply};

/// The access rule of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone who does not show bad credentials.
    Anyone,
    /// Those with a right to the path. Delegated authorization is not built, so these are the
    /// peers on loopback (rule:loopback-until-delegated).
    Authorized,
    /// Peers with a certificate of the listener's client CA.
    TrustedCertificate,
}

impl Access {
    /// The refusal for this peer; `None` when it may ask.
    pub(crate) fn refusal(self, peer: &Peer, method: &Method, path: &str) -> Option<Reply> {
        match (self, &peer.certificate) {
            // Whoever shows credentials is judged by them (rule:bad-credentials-are-refused).
            (_, PeerCertificate::Untrusted)
            | (Self::TrustedCertificate, PeerCertificate::Absent) => Some(unauthorized()),
            (Self::Authorized, _) if !peer.address.is_loopback() => Some(forbidden(method, path)),
            _ => None,
        }
    }
}

fn unauthorized() -> Reply {
    reply::failure(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
}

fn forbidden(method: &Method, path: &str) -> Reply {
    let verb = method.as_str().to_lowercase();
    let message = format!(
        "forbidden: User \"system:anonymous\" cannot {verb} path \"{path}\": delegated \
         authorization is not built yet, so this path answers to loopback peers only"
    );
    reply::failure(StatusCode::FORBIDDEN, "Forbidden", &message)
}
