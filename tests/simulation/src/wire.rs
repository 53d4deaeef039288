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

use crate::api::{Answer, Watch};
use crate::call::{Call, Refusal};
use crate::plan::{Fate, Fault, Number, REQUEST, Share};
use crate::world::{State, World};

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
    number: u64,
    process: usize,
    call: Call,
    fate: Fate,
}

async fn carry(world: &World, process: usize, request: Request<RequestBody>) -> Outcome {
    let (head, body) = request.into_parts();
    let mut call = Call::new(&head, Bytes::new());
    let (number, fate) = world.with(|state| {
        let number = state.next_request();
        let share = match &call.target() {
            _ if !state.is_busy => Share::None,
            Some(target) if target.kind.resource == "nodes" && call.method == Method::PATCH => {
                Share::NodeWrite
            }
            _ => Share::Other,
        };
        (number, state.plan.fate(Number(REQUEST, number), share))
    });
    sleep(fate.open).await;
    if fate.fault == Some(Fault::NotSent) {
        world.with(|state| state.count(Number(REQUEST, number), Fault::NotSent.name()));
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
    let carried = Carried { world: world.clone(), number, process, call, fate };
    world.with(|state| state.send(number, process, &carried.call));
    let (answer, answered) = oneshot::channel();
    tokio::spawn(carried.travel(answer));
    match answered.await {
        Ok(outcome) => outcome,
        // No answer ever comes.
        Err(_) => std::future::pending().await,
    }
}

impl Carried {
    fn count(&self, what: &'static str) {
        self.world.with(|state| state.count(Number(REQUEST, self.number), what));
    }

    /// Takes the request to the server and its answer back.
    async fn travel(self, answer: oneshot::Sender<Outcome>) {
        let Fate { travel, work, back, fault, .. } = self.fate;
        sleep(travel).await;
        if let Some(fault) = fault {
            self.count(fault.name());
        }
        match fault {
            Some(Fault::Reset) => {
                self.world.with(|state| state.claims.end(self.number));
                drop(answer.send(Err(WireError::broken("connection reset"))));
                return;
            }
            Some(Fault::Refused(code)) => {
                self.world.with(|state| state.claims.end(self.number));
                self.note(code);
                sleep(back).await;
                drop(answer.send(Ok(refused(code))));
                return;
            }
            _ => {}
        }
        let deadline = Instant::now() + self.deadline();
        sleep_until(deadline.min(Instant::now() + work)).await;
        if Instant::now() >= deadline {
            self.world.with(|state| state.claims.end(self.number));
            self.note(504);
            sleep(back).await;
            drop(answer.send(Ok(refused(504))));
            return;
        }
        let done = self.apply();
        sleep(back).await;
        match fault {
            Some(Fault::AnswerReset) => {
                drop(answer.send(Err(WireError::broken("connection reset"))));
            }
            Some(Fault::AnswerLost) => {}
            Some(Fault::Failed(code)) => drop(answer.send(Ok(refused(code)))),
            _ => drop(answer.send(Ok(self.response(done)))),
        }
    }

    /// How long the server may work on it.
    fn deadline(&self) -> Duration {
        let text = self.call.parameter("timeout");
        let millis = text.strip_suffix("ms").and_then(|text| text.parse().ok());
        millis.map_or(DEADLINE, Duration::from_millis).min(DEADLINE)
    }

    /// The server carries it out.
    fn apply(&self) -> (Answer, usize) {
        let Self { world, number, process, call, fate } = self;
        world.with(|state| {
            let front = state.front(*process, fate.is_moved);
            let before = state.store.revision();
            let answer = state.apply(front, call);
            let is_written = state.store.revision() != before;
            if is_written {
                let verdict = state.claims.applied(*number);
                verdict.unwrap_or_else(|claim| state.violate(claim));
            }
            state.claims.end(*number);
            self.follow(state, is_written);
            let code = if let Answer::Whole(code, _) = &answer { *code } else { 200 };
            let line = self.line(code);
            state.note(|| line);
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
            "nodes" if self.call.method == Method::GET && target.key.name.is_empty() => {
                let is_consistent = self.call.parameter("resourceVersion").is_empty();
                let is_list = self.call.parameter("limit") != "1";
                if is_consistent && is_list && state.claims.has_term(self.process) {
                    state.claims.lists(self.process);
                }
            }
            _ => {}
        }
    }

    fn note(&self, code: u16) {
        self.world.with(|state| state.note(|| self.line(code)));
    }

    fn line(&self, code: u16) -> String {
        let Self { number, process, call, fate, .. } = self;
        // The name of an Event is made of the wall clock.
        let path = call.path.split("/events/").next().unwrap_or_default();
        let fault = fate.fault.map_or("", Fault::name);
        format!("r{number} p{process} {} {path} {:?} {code} {fault}", call.method, call.query)
    }

    fn response(&self, (answer, front): (Answer, usize)) -> Response<AnswerBody> {
        match answer {
            Answer::Whole(code, object) => response(code, whole(&object)),
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
            process: self.process,
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
    number: u64,
    process: usize,
    watch: Watch,
    front: usize,
    breaks_at: Option<Instant>,
    ends_at: Instant,
    bookmark_at: Instant,
    has_ended: bool,
}

impl Open {
    /// The next events in one frame; `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        let mut commits = self.world.commits();
        loop {
            let now = Instant::now();
            if self.breaks_at.is_some_and(|at| at <= now) {
                self.has_ended = true;
                let number = Number(REQUEST, self.number);
                self.world.with(|state| state.count(number, "watch broken"));
                return Some(Err("connection reset".into()));
            }
            if self.ends_at <= now {
                return None;
            }
            commits.mark_unchanged();
            let events = self.ready(now);
            if !events.is_empty() {
                let lines: Vec<_> = events.iter().map(|event| format!("{event}\n")).collect();
                return Some(Ok(lines.concat().into()));
            }
            let (is_alive, newer) = self.world.with(|state| {
                let known = self.watch.initial.map_or(self.watch.after, |at| at - 1);
                (state.processes[self.process].is_alive, state.shows_newer(self.front, known))
            });
            if !is_alive {
                return std::future::pending().await;
            }
            let next = self.ends_at.min(self.bookmark_at);
            let next = [newer, self.breaks_at].into_iter().flatten().fold(next, Instant::min);
            tokio::select! {
                biased;
                () = sleep_until(next) => {}
                _ = commits.changed() => {}
            }
        }
    }

    /// The events that can be sent now.
    fn ready(&mut self, now: Instant) -> Vec<Value> {
        let (watch, front) = (&mut self.watch, self.front);
        let is_due = self.bookmark_at <= now;
        let events = self.world.with(|state| {
            let shown = state.shown(front);
            if let Some(at) = watch.initial {
                if shown < at {
                    return Vec::new();
                }
                (watch.initial, watch.after) = (None, shown);
                return watch.initial_events(&state.store, shown);
            }
            if watch.after < state.store.compacted() {
                self.has_ended = true;
                return vec![watch.expiry()];
            }
            let changes = state.store.changes_after(watch.after);
            let changes = changes.iter().take_while(|change| change.revision <= shown);
            let mut events: Vec<_> = changes.filter_map(|change| watch.event(change)).collect();
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
