//! [`play`]: two processes and the server that has their Lease, event by event.

use std::time::Duration;

use tokio::sync::oneshot;

use super::super::server::{Server, Verb};
use super::process::{Answer, Call, Pause, Process};
use crate::store::StoreError;

/// From a process to the server, and back.
const WAY: Duration = Duration::from_millis(50);
/// Just before the process gives the call up.
const LATE: Duration = Duration::from_millis(1_350);
/// After it has given it up.
const TOO_LATE: Duration = Duration::from_millis(3_500);
/// Longer than a lease.
const PAUSE: Duration = Duration::from_secs(5);
/// When the second process starts.
const SECOND: Duration = Duration::from_millis(300);
/// Everything that follows from the first calls has happened by then.
const END: Duration = Duration::from_secs(24);

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Fate {
    /// Refused with 500.
    Refused,
    /// Applied; the answer never comes.
    AnswerLost,
    /// Never applied and never answered.
    Lost,
    /// Applied late, answered in time.
    Late,
    /// Applied when the process has given it up.
    TooLate,
}

impl Fate {
    pub(super) const OF_WRITES: [Self; 5] =
        [Self::Refused, Self::AnswerLost, Self::Lost, Self::Late, Self::TooLate];
    pub(super) const OF_READS: [Self; 3] = [Self::Refused, Self::Lost, Self::Late];
}

/// What deviates from a run in which all goes well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Choice {
    Call(Fate),
    /// The process that made the call stands still from then on.
    Pause(Pause),
    /// It is ordered to give the lease back.
    Release,
}

impl Choice {
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Call(Fate::Refused) => "refused",
            Self::Call(Fate::AnswerLost) => "answer lost",
            Self::Call(Fate::Lost) => "lost",
            Self::Call(Fate::Late) => "late",
            Self::Call(Fate::TooLate) => "too late",
            Self::Pause(Pause::Stopped) => "stopped",
            Self::Pause(Pause::Suspended) => "suspended",
            Self::Pause(Pause::Paused) => "paused",
            Self::Pause(Pause::PausedUnnoticed) => "paused unnoticed",
            Self::Release => "released",
        }
    }
}

/// A choice at a call, by its number among the calls of both processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Action {
    pub(super) call: usize,
    pub(super) choice: Choice,
}

impl Action {
    /// Whether a schedule may go on with that one: each call has one fate and one disturbance.
    pub(super) fn is_before(&self, next: &Self) -> bool {
        let is_fate = |it: &Self| matches!(it.choice, Choice::Call(_));
        self.call < next.call || (self.call == next.call && is_fate(self) && !is_fate(next))
    }
}

/// What the claims assume.
#[derive(Clone, Copy)]
pub(super) struct Assumed {
    /// How long a request may be on its way to the server.
    pub(super) travel: Duration,
    /// The boot clock or the wall clock of a machine that stood still shows it.
    pub(super) clocks_go_on: bool,
    /// No write leaves after a stop without another look at the fence.
    pub(super) looks_again: bool,
}

enum Event {
    /// The server carries out a call and answers, if anything, so much later.
    Act(usize, Call, Option<Duration>),
    Answer(usize, oneshot::Sender<Answer>, Answer),
}

struct World {
    server: Server,
    processes: [Process; 2],
    /// The call of each process that is not sent yet.
    made: [Option<Call>; 2],
    events: Vec<(Duration, Event)>,
    assumed: Assumed,
    /// Replies that never come. A reply that is dropped would be a reset.
    silent: Vec<oneshot::Sender<Answer>>,
}

/// Plays a schedule; whether each of the first calls was a write.
///
/// # Errors
/// The claim that is violated.
pub(super) fn play(
    schedule: &[Action],
    limit: usize,
    assumed: Assumed,
) -> Result<Vec<bool>, String> {
    let start = |identity, at| Process::new(identity, at, assumed.travel);
    let mut world = World {
        server: Server::default(),
        processes: [start("a", Duration::ZERO), start("b", SECOND)],
        made: [None, None],
        events: Vec::new(),
        assumed,
        silent: Vec::new(),
    };
    let mut calls = Vec::new();
    while let Some(place) = world.next_event() {
        match place {
            Next::Event(place) => world.happen(place),
            Next::Call(process) => {
                let number = calls.len();
                let Some(call) = world.made[process].take() else { break };
                if number < limit {
                    calls.push(call.verb != Verb::Get);
                }
                let chosen = schedule.iter().filter(|it| it.call == number && number < limit);
                world.send(process, call, chosen.map(|it| it.choice));
            }
        }
    }
    world.check()?;
    Ok(calls)
}

enum Next {
    Event(usize),
    Call(usize),
}

impl World {
    /// Lets each process run up to the next answer that it gets, and says what comes first.
    fn next_event(&mut self) -> Option<Next> {
        for (number, process) in self.processes.iter_mut().enumerate() {
            if self.made[number].is_none() && !process.has_ended {
                let answers = self.events.iter().filter_map(|(at, event)| match event {
                    Event::Answer(to, ..) | Event::Act(to, _, Some(_)) if *to == number => {
                        Some(*at)
                    }
                    _ => None,
                });
                let until = answers.min().unwrap_or(END).min(END);
                if until > process.at || process.at < END {
                    self.made[number] = process.run(until.max(process.at));
                }
            }
        }
        let events =
            self.events.iter().enumerate().map(|(place, (at, _))| (*at, Next::Event(place)));
        let made = self.made.iter().zip(&self.processes).enumerate();
        let calls = made
            .filter(|(_, (call, _))| call.is_some())
            .map(|(number, (_, process))| (process.at, Next::Call(number)));
        let (at, next) = events.chain(calls).min_by_key(|(at, _)| *at)?;
        (at < END).then_some(next)
    }

    fn happen(&mut self, place: usize) {
        let (at, event) = self.events.remove(place);
        match event {
            Event::Act(process, Call { verb, lease, reply }, answered) => {
                let answer = self.server.act(verb, lease);
                match answered {
                    Some(later) => {
                        self.events.push((at + later, Event::Answer(process, reply, answer)));
                    }
                    None => self.silent.push(reply),
                }
            }
            // The process may have given it up.
            Event::Answer(_, reply, answer) => drop(reply.send(answer)),
        }
    }

    /// A call leaves a process.
    fn send(&mut self, number: usize, call: Call, chosen: impl Iterator<Item = Choice>) {
        let at = self.processes[number].at;
        let (mut fate, mut disturbance) = (None, None);
        for choice in chosen {
            match choice {
                Choice::Call(of_call) => fate = Some(of_call),
                other => disturbance = Some(other),
            }
        }
        match fate {
            None => self.events.push((at + WAY, Event::Act(number, call, Some(WAY)))),
            Some(Fate::AnswerLost) => self.events.push((at + WAY, Event::Act(number, call, None))),
            Some(Fate::Late) if call.verb == Verb::Get => {
                self.events.push((at + WAY, Event::Act(number, call, Some(LATE))));
            }
            Some(Fate::Late) => self.events.push((at + LATE, Event::Act(number, call, Some(WAY)))),
            Some(Fate::TooLate) => {
                self.events.push((at + TOO_LATE, Event::Act(number, call, None)));
            }
            Some(Fate::Lost) => self.silent.push(call.reply),
            Some(Fate::Refused) => {
                let answer = Err(StoreError::Failed("500".to_owned()));
                self.events.push((at + 2 * WAY, Event::Answer(number, call.reply, answer)));
            }
        }
        match disturbance {
            Some(Choice::Pause(pause)) => {
                self.processes[number].pause(pause, PAUSE, !self.assumed.looks_again);
            }
            Some(Choice::Release) => self.processes[number].release(),
            Some(Choice::Call(_)) | None => {}
        }
    }

    /// C5, and that somebody leads in the end.
    fn check(&self) -> Result<(), String> {
        for (number, process) in self.processes.iter().enumerate() {
            let other = &self.processes[1 - number];
            for (mine, theirs) in
                process.open.iter().flat_map(|mine| other.open.iter().map(move |it| (mine, it)))
            {
                if mine.from <= theirs.from && theirs.from < mine.to {
                    return Err(format!(
                        "the fences of two terms are both open: {mine:?}, {theirs:?}"
                    ));
                }
                if mine.from <= theirs.from && theirs.from < mine.last_write {
                    return Err(format!(
                        "a write of a term may be applied until {:?}, and the next began at {:?}",
                        mine.last_write, theirs.from
                    ));
                }
            }
        }
        let mut candidates = self.processes.iter().filter(|it| it.is_candidate()).peekable();
        if candidates.peek().is_some() && !candidates.any(Process::leads) {
            return Err(format!("nobody leads after {END:?}"));
        }
        Ok(())
    }
}
