//! [`Action`]: all that can happen to a [`World`](super::world::World).

use crate::{Beat, Code, Finding, ProbePath};

/// Result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Found {
    Ok,
    /// The cluster answers 500.
    Failing,
    /// The cluster does not answer.
    Silent,
    /// The object names a Secret that does not exist.
    Malformed,
    /// This process has no file descriptor left.
    Void,
    /// The cluster answers ok and does not pass a check.
    Check,
}

impl Found {
    pub(super) fn finding(self) -> Finding {
        let code = match self {
            Self::Ok => return Finding::ok(ProbePath::Readyz),
            Self::Failing => Code::Http(500),
            Self::Silent => Code::Timeout,
            Self::Malformed => Code::SecretMissing,
            Self::Void => Code::OwnLimit,
            Self::Check => Code::Check,
        };
        Finding::failed(code, ProbePath::Readyz)
    }
}

/// What the Lease of the cluster says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Lease {
    Absent,
    Silent,
    Well,
    Unwell,
}

impl Lease {
    pub(super) fn beat(self) -> Beat {
        match self {
            Self::Absent => Beat::Absent,
            Self::Silent => Beat::Silent,
            Self::Well => Beat::Well,
            Self::Unwell => Beat::Unwell,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Action {
    /// A second passes; when nothing can happen before the next deadline, all of the time until then.
    Wait,
    Begin,
    End(Found, Lease),
    /// The task hangs, and another one takes its place.
    Cancel,
    Sweep,
    Trigger,
    /// The credential changes while a probe is under way.
    Discard,
    /// The address changes.
    Retarget,
    Pause,
    Resume,
    /// The other policy holds.
    Edit,
    /// The object gets what is published.
    Write,
    /// Another process takes the member in from its object.
    Restart,
    /// The guard lets all members be published that wait.
    Release,
    /// The guard lets those be published whose probes crossed the threshold earlier.
    ReleaseOlder,
    /// The guard finds that the failures were ours.
    Forgive,
    /// The guard has members published as unknown that wait.
    Partition,
}

impl Action {
    /// Its kind, by which tests name it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Begin => "begin",
            Self::End(Found::Ok, _) => "ok",
            Self::End(Found::Failing, _) => "failing",
            Self::End(Found::Silent, _) => "silent",
            Self::End(Found::Malformed, _) => "malformed",
            Self::End(Found::Void, _) => "void",
            Self::End(Found::Check, _) => "check",
            Self::Cancel => "cancel",
            Self::Sweep => "sweep",
            Self::Trigger => "trigger",
            Self::Discard => "discard",
            Self::Retarget => "retarget",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Edit => "edit",
            Self::Write => "write",
            Self::Restart => "restart",
            Self::Release => "release",
            Self::ReleaseOlder => "release older",
            Self::Forgive => "forgive",
            Self::Partition => "partition",
        }
    }
}
