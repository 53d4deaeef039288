//! The network between the process and everything else, which is cut in several ways.

use crate::random::Random;

/// What a cut breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Everything.
    Total,
    /// Everything but the own API server.
    AllButApi,
    /// Names: open connections go on.
    Names,
    /// The interface of this machine.
    Interface,
    /// New connections: open ones go on.
    NewConnections,
    /// Everything, on and off.
    OnAndOff,
}

const CUTS: [Cut; 6] =
    [Cut::Total, Cut::AllButApi, Cut::Names, Cut::Interface, Cut::NewConnections, Cut::OnAndOff];
/// When a packet that got no answer is sent again, in milliseconds after the first.
const SENT_AT: [u64; 2] = [0, 1000];
/// A round trip, in milliseconds.
const TRIP: u64 = 20;

/// Times in milliseconds.
#[derive(Default)]
pub(crate) struct Network {
    cut: Option<Cut>,
    /// When the cut begins and ends, one after the other.
    spans: Vec<(u64, u64)>,
    /// Whether a cut is refused at once, instead of dropping packets.
    refuses: bool,
}

impl Network {
    /// Cuts the network from `from` for `length` milliseconds.
    pub(crate) fn cut(&mut self, from: u64, length: u64, random: &mut Random) -> Cut {
        let (cut, end) = (random.pick(&CUTS), from + length);
        self.cut = Some(cut);
        self.refuses = random.one_in(2);
        self.spans = vec![(from, end)];
        if cut == Cut::OnAndOff {
            let (off, on) = (500 + random.below(9_000), 500 + random.below(9_000));
            let starts = (0..).map(|n| from + n * (off + on)).take_while(|at| *at < end);
            self.spans = starts.map(|at| (at, (at + off).min(end))).collect();
        }
        cut
    }

    fn is_cut(&self, at: u64) -> bool {
        self.spans.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// How long an answer takes, of a request or a new connection that is sent at `at`; or how long it is waited for, at
    /// most for `limit`, without one.
    pub(crate) fn answers(&self, at: u64, limit: u64, is_new: bool) -> Result<u64, u64> {
        let only_new = matches!(self.cut, Some(Cut::Names | Cut::NewConnections));
        if only_new && !is_new {
            return Ok(TRIP);
        }
        if self.refuses && self.is_cut(at) {
            // Two further attempts follow at once.
            return Err(400.min(limit));
        }
        let passes = |sent: &&u64| **sent < limit && !self.is_cut(at + **sent);
        SENT_AT.iter().find(passes).map_or(Err(limit), |sent| Ok(sent + TRIP))
    }

    pub(crate) fn api_answers(&self, at: u64) -> bool {
        !matches!(self.cut, Some(Cut::Total | Cut::Interface | Cut::OnAndOff)) || !self.is_cut(at)
    }

    /// Whether the interface is down.
    pub(crate) fn is_down(&self, at: u64) -> bool {
        self.cut == Some(Cut::Interface) && self.is_cut(at)
    }
}
