//! [`Action`]: all that can happen in a [`World`](super::world::World).

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    /// A Node of this name is created.
    Join(usize),
    /// A Node is to go, and a finalizer holds it.
    Delete(usize),
    /// It goes.
    Remove(usize),
    /// Another allocator gives it the block of this number.
    SetByOther(usize, usize),
    /// A ClusterCIDR drains, and the process is told at once.
    Drain(usize),
    /// The process gets the next event.
    Watch,
    /// A worker takes the key of a Node.
    Work(usize),
    /// Its PATCH leaves.
    Send(usize),
    /// The store answers its read.
    Read(usize),
    /// The answer to the read arrives.
    TakeRead(usize),
    /// A PATCH arrives in time and is written.
    Apply(usize),
    /// A PATCH arrives in time and waits for the disk.
    Accept(usize),
    /// The server refuses a PATCH by 429.
    Refuse(usize),
    /// A PATCH never arrives; nothing is answered.
    Drop(usize),
    /// The process gets the answer to a PATCH.
    Answer(usize),
    /// It does not.
    Lose(usize),
    /// Nothing happens until the next deadline.
    Wait,
    Crash,
    /// The next process lists all Nodes.
    Start,
    /// The term of the process ends while it is stopped behind its last look at the fence.
    Depose,
    /// It goes on, and a PATCH that it was about to send leaves.
    SendLate(usize),
    /// etcd is restored from a snapshot that lacks the last change, and all connections break.
    Restore,
    /// The process lists all Nodes and ends its doubt of the history.
    Relist,
}

impl Action {
    /// Whether nothing but time is needed for it, in the order of a store without faults.
    pub(super) fn is_fair(self) -> bool {
        matches!(
            self,
            Self::Start
                | Self::Relist
                | Self::Watch
                | Self::Apply(_)
                | Self::Answer(_)
                | Self::Read(_)
                | Self::TakeRead(_)
                | Self::Send(_)
        )
    }

    /// Its kind, by which tests name it.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Join(_) => "join",
            Self::Delete(_) => "delete",
            Self::Remove(_) => "remove",
            Self::SetByOther(..) => "set by another allocator",
            Self::Drain(_) => "drain",
            Self::Watch => "watch",
            Self::Work(_) => "work",
            Self::Send(_) => "send",
            Self::Read(_) => "read",
            Self::TakeRead(_) => "take read",
            Self::Apply(_) => "apply",
            Self::Accept(_) => "accept",
            Self::Refuse(_) => "refuse",
            Self::Drop(_) => "drop",
            Self::Answer(_) => "answer",
            Self::Lose(_) => "lose",
            Self::Wait => "wait",
            Self::Crash => "crash",
            Self::Start => "start",
            Self::Depose => "depose",
            Self::SendLate(_) => "send late",
            Self::Restore => "restore",
            Self::Relist => "list again",
        }
    }
}
