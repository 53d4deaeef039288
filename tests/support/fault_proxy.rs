//! A proxy between the product and the real API server that makes the faults of real life happen
//! exactly when a test wants them, and that records every request.
//!
//! It ends TLS with a certificate of the same CA (HTTP/1.1 and HTTP/2) and speaks to the server as
//! the user it was started for, since a client certificate cannot be passed on. A request that
//! carries a bearer token keeps it and travels without the certificate.
//!
//! ```no_run
//! # async fn story(cluster: &tests::ControlPlane) {
//! use tests::{Cut, Fault, FaultProxy, Match};
//!
//! let proxy = FaultProxy::start(cluster, "system:kube-controller-manager", &[]).await;
//! let lost = proxy.on(Match::node_patches()).times(1).then(Fault::LoseAnswer(Cut::Stream));
//! // … start the product with proxy.kubeconfig() …
//! lost.hit(1).await;
//! # }
//! ```
//!
//! | module | part |
//! |---|---|
//! | `matching` | which requests a rule is about |
//! | `rules` | what happens to them, how often; [`Hold`] |
//! | `exchange` | the life of one request |
//! | `streams` | watches: passed through unbuffered, ended or stalled on demand |
//! | `past` | answers from an earlier state |
//! | `listener`, `freeze`, `upstream` | the connections on both sides |
//! | `state` | what the connections share |
//! | `wire` | JSON or protobuf, pages or streams: what of the client's wishes is granted |
//! | `encoding`, `protobuf` | both forms of what is made up or looked into |
//! | `recorder` | what was asked and what became of it |

mod canned;
mod encoding;
mod exchange;
mod freeze;
mod listener;
mod matching;
mod past;
mod protobuf;
mod recorder;
mod rules;
mod state;
mod streams;
mod upstream;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::{CancellationToken, DropGuard};

pub use canned::Canned;
pub use matching::{Match, Request};
pub use past::Past;
pub use recorder::{NodePatch, Outcome, Recorded};
pub use rules::{Cut, Fault, Hold, On, Rule};
pub use streams::Watches;
pub use wire::Wire;

use crate::ControlPlane;
use state::State;
use upstream::Upstream;

/// A running proxy for one user. It ends on drop, with all its connections. Bound to the runtime
/// it was started on.
pub struct FaultProxy {
    state: Arc<State>,
    url: String,
    kubeconfig: PathBuf,
    _stop: DropGuard,
}

impl FaultProxy {
    /// Starts a proxy in front of `plane` that authenticates as this user.
    pub async fn start(plane: &ControlPlane, user: &str, groups: &[&str]) -> Self {
        Self::start_with(Wire::ProtobufStreamed, plane, user, groups).await
    }

    /// Like [`Self::start`], with this encoding of objects.
    pub async fn start_with(wire: Wire, plane: &ControlPlane, user: &str, groups: &[&str]) -> Self {
        crate::control_plane::install_crypto_provider();
        let identity = plane.ca().client(user, groups).expect("a certificate can be made");
        let upstream = Upstream::new(plane.url(), plane.ca(), &identity);
        let state = Arc::new(State::new(upstream.expect("TLS can be set up"), wire));
        let stop = CancellationToken::new();
        let certificate = plane.ca().server().expect("a certificate can be made");
        let port = listener::start(Arc::clone(&state), certificate, stop.clone()).await;
        let port = port.expect("a loopback port can be bound");
        let url = format!("https://127.0.0.1:{port}");
        let kubeconfig = plane.dir().join(format!("proxy-{port}.kubeconfig"));
        plane
            .write_kubeconfig_to(&url, &kubeconfig, user, groups)
            .expect("a kubeconfig can be written");
        Self { state, url, kubeconfig, _stop: stop.drop_guard() }
    }

    /// A kubeconfig that leads through this proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Begins a rule about these requests. Of several rules about one request the one made first
    /// acts, until it is used up.
    pub fn on(&self, requests: Match) -> On<'_> {
        On::new(&self.state.rules, requests)
    }

    /// Everything asked so far, in order of arrival.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state.recorder.all()
    }

    /// The requests so far that `wanted` is about.
    pub fn requests_like(&self, wanted: &Match) -> Vec<Recorded> {
        self.state.recorder.each(|seen| wanted.fits(&seen.request).then(|| seen.clone()))
    }

    /// Every PATCH of a Node that carried pod CIDRs, in order of arrival.
    pub fn node_patches(&self) -> Vec<NodePatch> {
        self.state.recorder.each(NodePatch::read)
    }

    /// Whether the API server took its time over a request of leader election: on a machine that is
    /// too busy for it a lease is lost by rights.
    pub fn lease_was_late(&self) -> bool {
        const LATE: Duration = Duration::from_millis(1_500);
        let late =
            |seen: &Recorded| seen.settled.is_none_or(|settled| settled - seen.arrived > LATE);
        self.requests_like(&Match::leases()).iter().any(late)
    }

    /// From now on nothing is read and nothing answered, on any connection, pings included; the
    /// kernel still takes bytes and connections: a server whose machine hangs. What has reached
    /// the API server before takes effect.
    pub fn freeze(&self) {
        self.state.freezer.set(true);
    }

    /// Ends [`Self::freeze`]: what piled up is read and answered.
    pub fn thaw(&self) {
        self.state.freezer.set(false);
    }

    /// The watches open now whose path starts with `path`, to be ended or stalled.
    pub fn watches(&self, path: &str) -> Watches {
        self.state.streams.open(path)
    }

    /// Ends all open watches as the server does when their time is up.
    pub fn close_watches(&self) {
        self.watches("").close();
    }

    /// The list at `path` (`/api/v1/nodes`) as it is now, to be given as an answer later:
    /// [`Fault::Past`].
    pub async fn snapshot(&self, path: &str) -> Past {
        Past::take(&self.state.upstream, path).await.expect("the list can be read")
    }
}
