//! Evidence of a second allocator, without I/O: the [`Suspect`] that watch and workers signal,
//! what follows from it ([`OnSecondAllocator`]), and the [`Hold`] on all allocations. [`KNOWN`]: the
//! programs that are known to assign pod CIDRs, by the field managers as which they write Nodes.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_api::Node;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{PRODUCT as OURS, Surveyed};

/// How long nothing is given out after a second allocator was found.
const PAUSE: Duration = Duration::from_secs(30);
/// Two Nodes of an unknown program within this time are no accident.
const UNKNOWN_WITHIN: Duration = Duration::from_secs(600);
/// Longer than any process runs.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Value of `--on-second-allocator`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnSecondAllocator {
    /// Report it only.
    Warn,
    /// Give out nothing for 30 seconds, each time.
    #[default]
    Pause,
    /// Give out nothing until this process ends.
    Stop,
}

impl OnSecondAllocator {
    /// The values of the flag.
    pub(crate) const NAMES: [(&str, Self); 3] =
        [("warn", Self::Warn), ("pause", Self::Pause), ("stop", Self::Stop)];

    /// How long nothing is given out, also in words.
    pub(super) fn hold(self) -> Option<(Duration, &'static str)> {
        match self {
            Self::Warn => None,
            Self::Pause => Some((PAUSE, "for 30 seconds")),
            Self::Stop => Some((FOR_EVER, "until it is restarted")),
        }
    }
}

/// Until when no pod CIDR is given out. Clones share the state, and it outlives a run of
/// the controller: after a restart in the same process the hold still applies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hold(Arc<Mutex<Option<Instant>>>);

impl Hold {
    /// Holds until that moment, in place of what was set before.
    pub(crate) fn set(&self, until: Instant) {
        *self.0.lock() = Some(until);
    }

    /// For how long from now on nothing is given out.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let left = (*self.0.lock())?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

/// Evidence that the pod CIDRs of a Node were set after the start of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The Node was seen without pod CIDRs.
    SawEmpty,
    /// The Node was first seen after the first list was complete.
    SeenLate,
}

/// A Node whose pod CIDRs no PATCH of this process can have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// Name of the Node.
    pub(crate) name: Arc<str>,
    /// UID of the Node.
    pub(crate) uid: Arc<str>,
    /// Why a second allocator is likely.
    pub(crate) evidence: Evidence,
}

impl Suspect {
    /// A suspect from the copy in the cache.
    pub(crate) fn new(node: &Node, evidence: Evidence) -> Self {
        Self { name: Arc::clone(&node.name), uid: Arc::clone(&node.uid), evidence }
    }

    /// The field manager of another program that gave the Node its pod CIDRs after `begun`, by the API
    /// server's clock; `None` if a read of the Node does not say so. The time of a managed field is no
    /// evidence: it moves with every field of the same manager, such as a taint.
    pub(crate) fn confirmed_by<'a>(&self, read: &'a Surveyed, begun: Timestamp) -> Option<&'a str> {
        let is_after = match self.evidence {
            Evidence::SawEmpty => true,
            Evidence::SeenLate => read.created.is_some_and(|created| created >= begun),
        };
        if is_after && *read.uid == *self.uid { other_setter(read) } else { None }
    }
}

/// The last Node that a program wrote which is not known to assign pod CIDRs. People write Nodes, too:
/// one Node is no allocator, two within [`UNKNOWN_WITHIN`] are.
#[derive(Debug, Default)]
pub(super) struct LastUnknown(Mutex<Option<(Instant, Arc<str>)>>);

impl LastUnknown {
    /// Notes the Node with this UID; true when it is the second one.
    pub(super) fn is_second(&self, uid: &Arc<str>, now: Instant) -> bool {
        let before = self.0.lock().replace((now, Arc::clone(uid)));
        before.is_some_and(|(at, other)| {
            other != *uid && now.saturating_duration_since(at) < UNKNOWN_WITHIN
        })
    }
}

/// Label of the managers that are not in [`KNOWN`].
pub(crate) const OTHER: &str = "other";

/// A program that assigns pod CIDRs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KnownAllocator {
    /// The value of the label `manager` of the metric.
    pub(crate) label: &'static str,
    /// Field managers as which it writes; one that begins with `*` is the end of a name.
    managers: &'static [&'static str],
    /// How an operator stops it, for the message.
    pub(super) remedy: &'static str,
}

/// All known allocators. Cilium's operator is not in the list, because it writes only CiliumNodes.
pub(crate) static KNOWN: [KnownAllocator; 6] = [
    KnownAllocator {
        label: "kube-controller-manager",
        managers: &["kube-controller-manager"],
        remedy: "disable its node-ipam-controller with \
            --controllers=*,bootstrapsigner,tokencleaner,-node-ipam-controller",
    },
    KnownAllocator {
        label: "cloud-controller-manager",
        managers: &["*cloud-controller-manager"],
        remedy: "set its flag --allocate-node-cidrs=false",
    },
    KnownAllocator {
        label: "node-ipam-controller",
        // The second name is what its binary is called in images built by kubebuilder.
        managers: &["node-ipam-controller", "manager"],
        remedy: "remove sigs.k8s.io/node-ipam-controller from the cluster",
    },
    KnownAllocator {
        label: "aws-ipam-controller",
        managers: &["aws-ipam-controller"],
        remedy: "remove Gardener's aws-ipam-controller from the cluster",
    },
    KnownAllocator {
        label: "kops-controller",
        managers: &["kops-controller"],
        remedy: "disable the IPAM of kops-controller",
    },
    KnownAllocator {
        label: "antrea-controller",
        managers: &["antrea-controller"],
        remedy: "set nodeIPAM.enableNodeIPAM to false in the ConfigMap antrea-config",
    },
];

impl KnownAllocator {
    /// The program that writes as this field manager.
    pub(crate) fn of(manager: &str) -> Option<&'static Self> {
        let writes_as = |name: &&str| match name.strip_prefix('*') {
            Some(end) => manager.ends_with(end),
            None => manager == *name,
        };
        KNOWN.iter().find(|known| known.managers.iter().any(writes_as))
    }
}

/// The field manager other than this program that set the pod CIDRs of the Node; the newest if there
/// are several. `None` where this program set them: one of its replicas may have led before.
fn other_setter(node: &Surveyed) -> Option<&str> {
    if node.setters.iter().any(|(_, manager)| manager == OURS) {
        return None;
    }
    let newest = node.setters.iter().max_by_key(|(at, manager)| {
        // A name that says more counts first.
        (KnownAllocator::of(manager).is_some(), *at)
    });
    newest.map(|(_, manager)| manager.as_str())
}

/// Whether the answer to a PATCH, which is the Node or its metadata, says that another program had set
/// the same CIDRs before: then the PATCH has changed nothing.
pub(crate) fn was_set_before(answer: &[u8]) -> bool {
    const MANAGER: &str = "\"manager\":\"";
    let Ok(text) = str::from_utf8(answer) else { return false };
    let Some(fields) = text.find("f:podCIDR") else { return false };
    // The API server writes a manager before its fields. Where it is ours, nothing need be decoded.
    let manager = text[..fields].rfind(MANAGER).map(|at| &text[at + MANAGER.len()..]);
    let is_ours =
        manager.is_some_and(|it| it.strip_prefix(OURS).is_some_and(|it| it.starts_with('"')));
    !is_ours
        && serde_json::from_slice(answer).is_ok_and(|node: Surveyed| other_setter(&node).is_some())
}

#[cfg(test)]
mod tests;
