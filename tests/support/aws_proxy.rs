//! A proxy before [`moto`](crate::moto): counts calls by name, loses answers, refuses, and is as
//! strict as AWS where moto is not. Calls have the rights of the policy that the project ships, and
//! no others.
//!
//! | file | part |
//! |---|---|
//! | `call.rs` | what is known of a call, and what becomes of it |
//! | `upstream.rs` | asks moto |
//! | `permissions.rs` | refuses what the policy does not allow |
//! | `strict.rs` | refuses what AWS refuses |
//! | `elements.rs` | answers of moto, as `strict.rs` reads them |
//! | `idempotence.rs` | repeated creates, with and without client tokens |
//! | `answer.rs` | error answers |
//! | `states.rs` | NAT gateways, associations and load balancers that take their time, or fail |
//! | `regional.rs` | regional NAT gateways |
//! | `edge_zones.rs` | local zones and wavelength zones |
//! | `late.rs` | what was just made, and is not shown yet |
//! | `neighbours.rs` | resources of others in unusual shapes |

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::PATIENCE;
use crate::moto::Moto;

mod answer;
mod call;
mod edge_zones;
mod elements;
mod idempotence;
mod late;
mod neighbours;
mod permissions;
mod regional;
mod states;
mod strict;
mod upstream;

pub use call::{Call, Fate};
pub use states::Pace;
pub use upstream::Upstream;

/// What decides about a call, given its number among all calls since the last [`AwsProxy::forget`],
/// from 0.
type Decide = Box<dyn FnMut(usize, &Call) -> Fate + Send>;

/// A running proxy. Dropping it closes its connections.
pub struct AwsProxy {
    port: u16,
    state: Arc<State>,
    _stop: DropGuard,
}

struct State {
    upstream: Upstream,
    calls: Mutex<Vec<Call>>,
    /// The writes that were carried out, with their answers.
    done: Mutex<Vec<(Call, String)>>,
    decide: Mutex<Decide>,
    tokens: idempotence::Tokens,
    /// The one who calls is dead: nothing it sends arrives, nothing it gets is read.
    is_dead: watch::Sender<bool>,
    under_way: watch::Sender<usize>,
    is_strict: AtomicBool,
    states: Mutex<states::States>,
    late: Mutex<late::Late>,
    neighbours: Mutex<neighbours::Neighbours>,
    regional: Mutex<regional::Regional>,
    edges: Mutex<edge_zones::Edges>,
    permissions: Mutex<permissions::Permissions>,
}

/// Counts a call as under way. Dropping it, in a panic too, ends that.
struct UnderWay(Arc<State>);

impl UnderWay {
    fn begin(state: Arc<State>) -> Self {
        state.under_way.send_modify(|calls| *calls += 1);
        Self(state)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|calls| *calls -= 1);
    }
}

/// The connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the answer is lost")]
struct Lost;

impl AwsProxy {
    /// Starts one before a server.
    pub async fn start(moto: &Moto) -> Self {
        let state = Arc::new(State {
            upstream: Upstream::new(moto.port()),
            calls: Mutex::default(),
            done: Mutex::default(),
            decide: Mutex::new(Box::new(|_, _| Fate::Pass)),
            tokens: idempotence::Tokens::default(),
            is_dead: watch::Sender::new(false),
            under_way: watch::Sender::new(0),
            is_strict: AtomicBool::new(true),
            states: Mutex::new(states::States::new(Pace::PROMPT)),
            late: Mutex::new(late::Late::never()),
            neighbours: Mutex::default(),
            regional: Mutex::default(),
            edges: Mutex::default(),
            permissions: Mutex::new(permissions::Permissions::shipped()),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let stop = CancellationToken::new();
        let (served, cut) = (Arc::clone(&state), stop.clone());
        tokio::spawn(async move {
            while let Some(Ok((stream, _))) = cut.run_until_cancelled(listener.accept()).await {
                tokio::spawn(serve(Arc::clone(&served), stream, cut.child_token()));
            }
        });
        Self { port, state, _stop: stop.drop_guard() }
    }

    /// The endpoint for the SDK.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The server behind it, asked without counting.
    pub fn upstream(&self) -> &Upstream {
        &self.state.upstream
    }

    /// The proxy itself, called as the product calls it.
    pub fn itself(&self) -> Upstream {
        Upstream::new(self.port)
    }

    /// The calls since the last [`forget`](Self::forget), in the order of their arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.state.calls.lock().clone()
    }

    /// The writes that were carried out since the last [`forget`](Self::forget), with the answers of moto.
    pub fn done(&self) -> Vec<(Call, String)> {
        self.state.done.lock().clone()
    }

    /// Forgets the calls and decides about none any more.
    pub fn forget(&self) {
        self.state.calls.lock().clear();
        self.state.done.lock().clear();
        self.decide(|_, _| Fate::Pass);
    }

    /// Has this decide about each call from now on.
    pub fn decide(&self, decide: impl FnMut(usize, &Call) -> Fate + Send + 'static) {
        *self.state.decide.lock() = Box::new(decide);
    }

    /// Waits until a call has killed the one who sent it.
    pub async fn died(&self) {
        let mut dead = self.state.is_dead.subscribe();
        dead.wait_for(|is_dead| *is_dead).await.expect("the proxy lives");
    }

    /// Kills every process that calls.
    pub fn kill(&self) {
        self.state.is_dead.send_replace(true);
    }

    /// Lets processes that call from now on live, once all calls of the dead process have come to their
    /// end.
    pub async fn revive(&self) {
        let mut under_way = self.state.under_way.subscribe();
        let ended = under_way.wait_for(|calls| *calls == 0);
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        drop(ended.expect("all calls end in time").expect("the proxy lives"));
        self.state.is_dead.send_replace(false);
    }

    /// Has AWS take its time, also after a [`reset`](Self::reset).
    pub fn set_pace(&self, pace: Pace) {
        *self.state.states.lock().pace() = pace;
    }

    /// What is made from now on is not shown for so long, as this clock counts, also after a [`reset`](Self::reset).
    pub fn shows_late(&self, by: Duration, clock: impl Fn() -> Duration + Send + 'static) {
        *self.state.late.lock() = late::Late::by(by, Box::new(clock));
    }

    /// NAT gateways are shown as pending in so many answers after they were made.
    pub fn nats_pending_for(&self, polls: u32) {
        self.state.states.lock().pace().pending = polls;
    }

    /// NAT gateways are shown as pending for so long after they were first shown.
    pub fn nats_pending_until(&self, time: Duration) {
        self.state.states.lock().pending_until(time);
    }

    /// Shows the next `number` NAT gateways as failed until they are deleted.
    pub fn nats_fail(&self, number: u32) {
        self.state.states.lock().fail(number);
    }

    /// Regional NAT gateways have so many addresses from now on.
    pub fn regional_nats_grow_to(&self, addresses: usize) {
        self.state.regional.lock().grow_to(addresses);
    }

    /// Shows resources of others, in shapes that moto cannot make, in every VPC that is asked about.
    pub fn neighbours_move_in(&self) {
        self.state.neighbours.lock().move_in();
    }

    /// Whether it refuses what AWS refuses and moto does not. To know that, it reads all resources of a kind, which takes
    /// moto seconds for each write where there are thousands.
    pub fn set_strict(&self, is_strict: bool) {
        self.state.is_strict.store(is_strict, Ordering::Relaxed);
    }

    /// Takes a right away, such as `ec2:CreateVpc`.
    pub fn forbid(&self, action: &str) {
        self.state.permissions.lock().take_away(action);
    }

    /// Gives it back.
    pub fn permit(&self, action: &str) {
        self.state.permissions.lock().give(action);
    }

    /// Whether the account has opted in to the local zone and the wavelength zone of its region.
    pub fn opt_in_to_edge_zones(&self, is_opted_in: bool) {
        self.state.edges.lock().opt_in(is_opted_in);
    }

    /// Empties the server.
    pub async fn reset(&self) {
        self.state.upstream.reset().await;
        self.state.tokens.forget();
        let pace = *self.state.states.lock().pace();
        *self.state.states.lock() = states::States::new(pace);
        self.state.late.lock().forget();
        *self.state.neighbours.lock() = neighbours::Neighbours::default();
        *self.state.regional.lock() = regional::Regional::default();
        *self.state.edges.lock() = edge_zones::Edges::default();
        self.forget();
    }
}

async fn serve(state: Arc<State>, stream: TcpStream, cut: CancellationToken) {
    let service = service_fn(|request| exchange(Arc::clone(&state), request));
    let mut server = hyper::server::conn::http1::Builder::new();
    let connection =
        server.timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    // The client is free to hang up, and we hang up on it, so an error here tells nothing.
    let _hung_up = cut.run_until_cancelled(connection).await;
}

/// A call goes on when its sender has hung up, as it would at AWS.
async fn exchange(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Lost> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Lost)?.to_bytes();
    let call = UnderWay::begin(state);
    let carried_out = tokio::spawn(async move { carry_out(&call.0, head, body).await });
    carried_out.await.map_err(|_| Lost)?
}

async fn carry_out(
    state: &State,
    head: http::request::Parts,
    body: Bytes,
) -> Result<Response<Full<Bytes>>, Lost> {
    if *state.is_dead.borrow() {
        return Err(Lost);
    }
    let call = Call::read(&head, &body);
    let fate = {
        let mut calls = state.calls.lock();
        let number = calls.len();
        calls.push(call.clone());
        (state.decide.lock())(number, &call)
    };
    match &fate {
        Fate::CrashBefore => {
            state.is_dead.send_replace(true);
            return Err(Lost);
        }
        Fate::CallLost => return Err(Lost),
        Fate::Refuse(code) => return Ok(answer::refusal(&call, code, 400)),
        Fate::RefuseWith(status, code) => return Ok(answer::refusal(&call, code, *status)),
        Fate::Delay(time) => tokio::time::sleep(*time).await,
        Fate::Pass | Fate::CrashAfter | Fate::AnswerLost | Fate::DoneAndRefused(_) => {}
    }
    let answer = answer_to(state, &call, &head, body).await;
    match fate {
        Fate::CrashAfter => {
            state.is_dead.send_replace(true);
            Err(Lost)
        }
        Fate::AnswerLost => Err(Lost),
        Fate::DoneAndRefused(code) => Ok(answer::refusal(&call, code, 400)),
        _ if *state.is_dead.borrow() => Err(Lost),
        _ => Ok(answer),
    }
}

async fn answer_to(
    state: &State,
    call: &Call,
    head: &http::request::Parts,
    body: Bytes,
) -> Response<Full<Bytes>> {
    if let Some(code) = state.permissions.lock().refuses(call) {
        return answer::refusal(call, code, 403);
    }
    let _turn = state.tokens.turn(call).await;
    if let Some(known) = state.tokens.answer(call)
        && (idempotence::has_token(call) || strict::is_still_there(&state.upstream, call).await)
    {
        return known;
    }
    let unknown = state.late.lock().refuses(call);
    if let Some(code) = unknown {
        return answer::refusal_by(call, code, 400, "EC2 API, Eventual consistency");
    }
    if state.is_strict.load(Ordering::Relaxed)
        && let Some((code, page)) = strict::refuses(&state.upstream, &state.states, call).await
    {
        return answer::refusal_by(call, code, 400, page);
    }
    let has_neighbours = state.neighbours.lock().are_there();
    if has_neighbours && let Some(text) = neighbours::answer(&state.upstream, call).await {
        return Response::new(Full::new(Bytes::from(text)));
    }
    let refused = state.regional.lock().refuses(call);
    let refused = refused.or_else(|| state.edges.lock().refuses(call));
    if let Some((code, page)) = refused {
        return answer::refusal_by(call, code, 400, page);
    }
    let held = strict::holds_later(&state.upstream, call).await;
    let (status, text) = match regional::create(&state.upstream, &state.regional, call).await {
        Some(Ok(text)) => (http::StatusCode::OK, text),
        Some(Err((code, page))) => return answer::refusal_by(call, code, 400, page),
        None => match edge_zones::create(&state.upstream, &state.edges, call).await {
            Some(made) => made,
            None => state.upstream.forward(head, body).await,
        },
    };
    if !status.is_success() {
        return answer_of(status, text);
    }
    if call.is_write() {
        state.done.lock().push((call.clone(), text.clone()));
    }
    let text = state.states.lock().shown_as(call, text);
    follow(state, call, &text, held).await;
    let text = match state.late.lock().shown_as(call, text) {
        Ok(text) => text,
        Err(code) => return answer::refusal_by(call, code, 400, "EC2 API, Eventual consistency"),
    };
    let text = state.edges.lock().shown_in(call, text);
    let text = state.regional.lock().shown_in(call, text);
    answer_of(status, state.neighbours.lock().shown_in(call, text))
}

/// What follows from a call that was carried out.
async fn follow(state: &State, call: &Call, text: &str, held: Vec<String>) {
    state.tokens.note(call, text);
    state.late.lock().note(call, text);
    state.states.lock().hold(held.into_iter());
    if call.action == "DeleteSubnet" {
        strict::end_associations(&state.upstream, call).await;
    }
    let gone = state.states.lock().note(call, text);
    for nat in gone {
        strict::free_addresses(&state.upstream, call, &nat).await;
        regional::end(&state.upstream, &state.regional, call, &nat).await;
    }
}

fn answer_of(status: http::StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer
}
