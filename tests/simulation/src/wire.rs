//! [`wire_of`]: the way of a process to the API servers. What a process has sent goes on when the process
//! dies or gives the request up; where a request meets a fault, the plan says.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tower::BoxError;
use transport::{AnswerBody, RequestBody, SendPermit, Wire, WireError};

use crate::api::{Answer, Watch, breached};
use crate::call::{Call, Refusal, Target};
use crate::members;
use crate::plan::{Breach, Fate, Fault, Moment, Number, Share};
use crate::replica::kill;
use crate::world::{State, World, digest};

/// Deadline of a write that names none.
const DEADLINE: Duration = Duration::from_secs(34);
/// Between two bookmarks of a watch.
const BOOKMARKS: Duration = Duration::from_secs(60);

type Outcome = Result<Response<AnswerBody>, WireError>;

/// The way of this process to the API servers.
pub(crate) fn wire_of(world: &World, process: usize) -> Wire {
    let world = world.clone();
    Wire::of(move |request| {
        let world = world.clone();
        Box::pin(async move { carry(&world, process, request).await })
    })
}

/// A request on its way.
struct Carried {
    world: World,
    id: u64,
    /// That of its fate.
    number: Number,
    process: usize,
    call: Call,
    fate: Fate,
    /// When in it the process crashes.
    crash: Option<Moment>,
}

async fn carry(world: &World, process: usize, request: Request<RequestBody>) -> Outcome {
    let (head, body) = request.into_parts();
    let mut call = Call::new(&head, Bytes::new());
    let (id, number, fate, knows) = world.with(|state| {
        let (id, number) = state.next_request(process, &call);
        let knows = state.processes[process].knows();
        let share = match &call.target() {
            _ if !state.is_busy => Share::None,
            Some(target) if call.method == Method::PATCH && is_relied_on(target) => Share::Memory,
            _ => Share::Other,
        };
        (id, number, state.plan.fate(number, share), knows)
    });
    sleep(fate.open).await;
    if fate.fault == Some(Fault::NotSent) {
        world.with(|state| {
            state.count(number, Fault::NotSent.name());
            state.contest(&call, fate, number);
        });
        return Err(WireError::unprocessed("connection refused"));
    }
    // Here the client looks at its fence for the last time.
    call.body = body.collect().await.map_err(WireError::broken)?.to_bytes();
    if head.extensions.get::<SendPermit>().is_some_and(|permit| !permit.ask()) {
        return Err(WireError::unprocessed("the permit to send was withdrawn"));
    }
    if !world.with(|state| state.processes[process].is_alive) {
        return std::future::pending().await;
    }
    let crash = world.with(|state| {
        let crash = state.sends_in_script(&call);
        if crash != Some(Moment::Before) {
            state.send(id, process, &call, knows);
        }
        crash
    });
    if crash == Some(Moment::Before) {
        kill(world, process, "crashes before a write");
        return std::future::pending().await;
    }
    let carried = Carried { world: world.clone(), id, number, process, call, fate, crash };
    if let Some(halt) = fate.halt {
        stand_still(world, process, number, halt);
    }
    let (answer, answered) = oneshot::channel();
    tokio::spawn(carried.travel(answer));
    if crash == Some(Moment::During) {
        kill(world, process, "crashes during a write");
    }
    match answered.await {
        Ok(outcome) => outcome,
        // No answer ever comes.
        Err(_) => std::future::pending().await,
    }
}

/// Lets a process stand still from the next millisecond on, when all tasks that woke with this one have gone on.
fn stand_still(world: &World, process: usize, number: Number, time: Duration) {
    let world = world.clone();
    tokio::spawn(async move {
        sleep(Duration::from_millis(1)).await;
        let is_halted = world.with(|state| {
            if state.is_busy {
                state.count(number, "process stands still");
                state.note(|| format!("p{process} stands still for {time:?}"));
                state.processes[process].halt.stop();
            }
            state.is_busy
        });
        if !is_halted {
            return;
        }
        sleep(time).await;
        world.with(|state| state.processes[process].resume());
    });
}

impl Carried {
    fn count(&self, what: &'static str) {
        self.world.with(|state| state.count(self.number, what));
    }

    /// Takes the request to the server and its answer back.
    async fn travel(self, answer: oneshot::Sender<Outcome>) {
        sleep(self.fate.travel).await;
        if let Some(fault) = self.fate.fault {
            self.count(fault.name());
            self.world.with(|state| state.contest(&self.call, self.fate, self.number));
        }
        if self.fate.fault == Some(Fault::Abandoned) {
            drop(answer.send(Err(WireError::broken("connection reset"))));
            self.arrive().await;
        } else if let Some(outcome) = self.arrive().await {
            drop(answer.send(outcome));
        }
    }

    /// What the server does, and what comes back; `None` for no answer.
    async fn arrive(&self) -> Option<Outcome> {
        let Fate { work, back, fault, .. } = self.fate;
        match fault {
            Some(Fault::Reset) => {
                self.world.with(|state| state.claims.end(self.id));
                return Some(Err(WireError::broken("connection reset")));
            }
            Some(Fault::Refused(code)) => return Some(self.refuse(code).await),
            _ => {}
        }
        let deadline = Instant::now() + self.deadline();
        sleep_until(deadline.min(Instant::now() + work)).await;
        if Instant::now() >= deadline {
            return Some(self.refuse(504).await);
        }
        let done = self.apply();
        if self.crash == Some(Moment::After) {
            kill(&self.world, self.process, "crashes after a write");
        }
        sleep(back).await;
        match fault {
            Some(Fault::AnswerReset) => Some(Err(WireError::broken("connection reset"))),
            Some(Fault::AnswerLost) => None,
            Some(Fault::Failed(code)) => Some(Ok(refused(code))),
            _ => Some(Ok(self.response(done))),
        }
    }

    /// The server does nothing.
    async fn refuse(&self, code: u16) -> Outcome {
        self.world.with(|state| state.claims.end(self.id));
        self.note(code);
        sleep(self.fate.back).await;
        Ok(refused(code))
    }

    /// How long the server may work on it.
    fn deadline(&self) -> Duration {
        let text = self.call.parameter("timeout");
        let millis = text.strip_suffix("ms").and_then(|text| text.parse().ok());
        millis.map_or(DEADLINE, Duration::from_millis).min(DEADLINE)
    }

    /// The server carries it out.
    fn apply(&self) -> (Answer, usize) {
        let Self { world, id, process, call, fate, .. } = self;
        world.with(|state| {
            let front = state.front(*process, fate.is_moved);
            state.arrives_in_script(front, call);
            let before = state.store.revision();
            let written = call.target().filter(|it| it.kind.resource == "kubefedclusters");
            let written = written.map(|target| (state.store.get(&target.key).cloned(), target.key));
            let answer = state.apply(front, call);
            let mut is_heartbeat = false;
            if let Some((Some(before), key)) = written
                && let Some(after) = state.store.get(&key).cloned()
            {
                state.judge_status(&call.json(), &before, &after);
                is_heartbeat = members::is_heartbeat(&before, &after);
            }
            state.judge_clusters(before);
            let is_written = state.store.revision() != before;
            let count = if is_heartbeat { &mut state.heartbeats } else { &mut state.writes };
            *count += u64::from(call.changes_objects());
            if is_written {
                let verdict = state.claims.applied(*id);
                verdict.unwrap_or_else(|claim| state.violate(claim));
            }
            state.claims.end(*id);
            self.follow(state, is_written);
            let code = if let Answer::Whole(code, _) = &answer { *code } else { 200 };
            state.note(|| self.line(code));
            (answer, front)
        })
    }

    /// Tells the claims of leases and lists.
    fn follow(&self, state: &mut State, is_written: bool) {
        let Some(target) = self.call.target() else { return };
        match target.kind.resource {
            "leases" if is_written => {
                let holder = self.call.json()["spec"]["holderIdentity"].clone();
                if holder == *state.processes[self.process].identity {
                    state.claims.wins(self.process);
                }
            }
            "nodes" if self.is_consistent_list(&target) => {
                state.claims.asks(self.id, self.process);
            }
            _ => {}
        }
    }

    /// Whether it asks for all Nodes as they are now.
    fn is_consistent_list(&self, target: &Target) -> bool {
        let is_list = self.call.method == Method::GET && target.key.name.is_empty();
        let is_consistent = self.call.parameter("resourceVersion").is_empty();
        is_list && is_consistent && self.call.parameter("limit") != "1"
    }

    fn note(&self, code: u16) {
        self.world.with(|state| state.note(|| self.line(code)));
    }

    fn line(&self, code: u16) -> String {
        let Self { number, process, call, fate, .. } = self;
        let fault = fate.fault.map_or("", Fault::name);
        let body = digest(&call.body);
        let Call { method, path, query, .. } = call;
        format!("{number} p{process} {method} {path} {query:?} {body:x} {code} {fault}")
    }

    fn response(&self, (answer, front): (Answer, usize)) -> Response<AnswerBody> {
        match answer {
            Answer::Whole(code, object) => {
                let target = self.call.target().filter(|_| code == 200);
                if target.is_some_and(|target| self.is_consistent_list(&target)) {
                    self.world.with(|state| state.claims.delivers(self.id));
                }
                response(code, whole(&object))
            }
            Answer::Watch(watch) => {
                let events = self.events(watch, front);
                let frames = events.map(|event| event.map(http_body::Frame::data));
                response(200, StreamBody::new(frames).boxed_unsync())
            }
        }
    }

    /// The events of a watch until it ends.
    fn events(&self, watch: Watch, front: usize) -> BoxStream<'static, Result<Bytes, BoxError>> {
        let (world, opened) = (self.world.clone(), Instant::now());
        let state = Open {
            id: self.id,
            process: self.process,
            breach: self.fate.breach,
            held_back: None,
            breaks_at: self.fate.breaks_after.map(|after| opened + after),
            ends_at: opened + watch.lifetime,
            bookmark_at: opened + BOOKMARKS,
            number: self.number,
            world,
            watch,
            front,
            has_ended: false,
        };
        stream::unfold(state, |mut open| async move {
            if open.has_ended {
                return None;
            }
            let event = open.next().await?;
            Some((event, open))
        })
        .boxed()
    }
}

/// An open watch.
struct Open {
    world: World,
    id: u64,
    number: Number,
    process: usize,
    watch: Watch,
    front: usize,
    breach: Option<(u64, Breach)>,
    /// An event that comes after the next one, or at this time.
    held_back: Option<(Value, Instant)>,
    breaks_at: Option<Instant>,
    ends_at: Instant,
    bookmark_at: Instant,
    has_ended: bool,
}

impl Open {
    /// The next events in one frame; `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            let now = Instant::now();
            if self.breaks_at.is_some_and(|at| at <= now) {
                self.has_ended = true;
                let number = self.number;
                self.world.with(|state| state.count(number, "watch broken"));
                return Some(Err("connection reset".into()));
            }
            if self.ends_at <= now {
                return None;
            }
            let world = self.world.clone();
            // From here on no change is missed.
            let committed = world.committed();
            let events = self.ready(now);
            if !events.is_empty() {
                let lines: Vec<_> = events.iter().map(|event| format!("{event}\n")).collect();
                return Some(Ok(lines.concat().into()));
            }
            let (is_alive, newer) = self.world.with(|state| {
                let known = self.watch.initial.map_or(self.watch.after, |at| at - 1);
                let newer = state.shows_newer(self.front, known);
                let held_at = held_at(&self.watch, state);
                let newer = newer.filter(|_| held_at.is_none_or(|at| known < at));
                (state.processes[self.process].is_alive, newer)
            });
            if !is_alive {
                return std::future::pending().await;
            }
            let next = self.ends_at.min(self.bookmark_at);
            let late = self.held_back.as_ref().map(|(_, at)| *at);
            let next = [newer, self.breaks_at, late].into_iter().flatten().fold(next, Instant::min);
            tokio::select! {
                biased;
                () = sleep_until(next) => {}
                () = committed => {}
            }
        }
    }

    /// The events that can be sent now.
    fn ready(&mut self, now: Instant) -> Vec<Value> {
        let (watch, front) = (&mut self.watch, self.front);
        let is_due = self.bookmark_at <= now && self.held_back.is_none();
        let (id, process, number) = (self.id, self.process, self.number);
        let events = self.world.with(|state| {
            let shown = state.shown(front);
            let shown = shown.min(held_at(watch, state).unwrap_or(shown));
            if let Some(at) = watch.initial {
                if shown < at {
                    return Vec::new();
                }
                (watch.initial, watch.after) = (None, shown);
                state.claims.delivers(id);
                if watch.shows_nodes() {
                    state.processes[process].learn(shown);
                }
                return watch.initial_events(&state.store, shown);
            }
            if watch.after < state.store.compacted() {
                self.has_ended = true;
                state.expires_in_script();
                return vec![watch.expiry()];
            }
            let changes = state.store.changes_after(watch.after);
            let changes = changes.iter().take_while(|change| change.revision <= shown);
            let mut events: Vec<_> = changes.filter_map(|change| watch.event(change)).collect();
            if watch.shows_nodes() {
                state.processes[process].learn(shown);
                self.breach.take_if(|_| !state.is_busy);
                events = breached(events, &mut self.breach, &mut self.held_back, |breach| {
                    state.count(number, breach.name());
                    state.processes[process].is_misled = true;
                    state.lost_events |= breach == Breach::Skipped;
                });
            }
            watch.after = watch.after.max(shown);
            if is_due {
                events.push(watch.bookmark(watch.after, None));
            }
            events
        });
        if is_due {
            self.bookmark_at = now + BOOKMARKS;
        }
        events
    }
}

/// Whether controllers rely on what they wrote to this object.
fn is_relied_on(target: &Target) -> bool {
    ["nodes", "awsclusters"].contains(&target.kind.resource)
}

/// The version that a script lets this watch show at most. A list is not held.
fn held_at(watch: &Watch, state: &State) -> Option<u64> {
    if watch.initial.is_some() { None } else { state.held_at(watch.kind.resource) }
}

fn whole(object: &Value) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::from(object.to_string()).map_err(|never| match never {}).boxed_unsync()
}

/// The answer of a server that does nothing, or that does not say what it did.
fn refused(code: u16) -> Response<AnswerBody> {
    let reason = match code {
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    };
    let mut response = response(code, whole(&Refusal::new(code, reason, reason).status()));
    if code == 429 {
        response.headers_mut().insert(RETRY_AFTER, 1.into());
    }
    response
}

fn response(code: u16, body: UnsyncBoxBody<Bytes, BoxError>) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::made(body));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap_or_default();
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
