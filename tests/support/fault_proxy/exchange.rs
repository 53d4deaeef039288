//! The life of one request: read, recorded, struck by a fault or not, passed on, answered.

use std::collections::VecDeque;
use std::sync::Arc;

use anyhow::bail;
use bytes::Bytes;
use http::Response;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Collected, Full, StreamBody};
use hyper::body::Incoming;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::canned::Canned;
use super::encoding::Encoding;
use super::matching::Request;
use super::past::Past;
use super::recorder::{Entry, Outcome};
use super::rules::{Cut, Fault};
use super::state::State;
use super::upstream::end_to_end;

type Body = UnsyncBoxBody<Bytes, anyhow::Error>;

/// Answers a request. An error makes hyper reset the stream, or close an HTTP/1.1 connection.
pub(super) async fn answer(
    state: Arc<State>,
    connection: CancellationToken,
    request: http::Request<Incoming>,
) -> anyhow::Result<Response<Body>> {
    let request = read(request).await?;
    // In this order: who has awaited the use of a rule finds the request in the record.
    let entry = state.recorder.arrived(request.clone());
    let request = state.wire.granted(request);
    let fault = match state.wire.refusal(&request) {
        Some(refusal) => Fault::Answer(refusal),
        None => state.rules.take(&request),
    };
    // In a task of its own: what the server has begun goes on when the client hangs up, and the
    // record learns how it ended.
    tokio::spawn(async move {
        let exchange = Exchange { state: Arc::clone(&state), connection, request, entry };
        let result = exchange.run(fault).await;
        let outcome = match &result {
            Ok(response) => Outcome::Answered(response.status().as_u16()),
            Err(_) => Outcome::Cut,
        };
        state.recorder.ended(entry, outcome);
        result
    })
    .await?
}

async fn read(request: http::Request<Incoming>) -> anyhow::Result<Request> {
    let (head, body) = request.into_parts();
    Ok(Request {
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: body.collect().await?.to_bytes(),
    })
}

struct Exchange {
    state: Arc<State>,
    connection: CancellationToken,
    request: Request,
    entry: Entry,
}

impl Exchange {
    async fn run(self, fault: Fault) -> anyhow::Result<Response<Body>> {
        match fault {
            Fault::None => self.forward().await,
            Fault::LoseAnswer(cut) => {
                self.forward().await?;
                self.cut(cut)
            }
            Fault::Reset(cut) => {
                self.never_sent();
                self.cut(cut)
            }
            Fault::Answer(canned) => {
                self.never_sent();
                Ok(whole(canned.response(self.asked_for())))
            }
            Fault::ReplaceAnswer(canned) => self.replaced(&canned).await,
            Fault::DelayBefore(time) => {
                sleep(time).await;
                self.forward().await
            }
            Fault::DelayAfter(time) => {
                let answer = self.forward().await;
                sleep(time).await;
                answer
            }
            Fault::Past(past) => self.past(&past).await,
            Fault::HoldBefore(gate) => {
                gate.pass().await;
                self.forward().await
            }
            Fault::HoldAfter(gate) => {
                let answer = self.forward().await;
                gate.pass().await;
                answer
            }
        }
    }

    async fn replaced(&self, canned: &Canned) -> anyhow::Result<Response<Body>> {
        self.forward().await?;
        Ok(whole(canned.response(self.asked_for())))
    }

    async fn past(&self, past: &Past) -> anyhow::Result<Response<Body>> {
        if self.request.is_watch_list() {
            let upstream =
                self.state.upstream.send(&past.watch_since(self.request.clone())).await?;
            let encoding = Encoding::of_answer(upstream.headers());
            return Ok(self.stream(upstream, past.initial_events(encoding)));
        }
        if self.request.is_watch() {
            return self.forward().await;
        }
        self.never_sent();
        Ok(whole(past.list(self.asked_for())))
    }

    /// Sends it to the server; the server's answer, complete unless it is a watch.
    async fn forward(&self) -> anyhow::Result<Response<Body>> {
        let upstream = match self.state.upstream.send(&self.request).await {
            Ok(upstream) => upstream,
            Err(error) => {
                self.state.recorder.settled(self.entry, None, None);
                return Err(error);
            }
        };
        if self.request.is_watch() && upstream.status().is_success() {
            return Ok(self.stream(upstream, VecDeque::new()));
        }
        let (head, body) = upstream.into_parts();
        let body = body.collect().await.map(Collected::to_bytes);
        // The head alone says that it has taken effect.
        self.settled(&head, body.as_deref().unwrap_or_default());
        let body = body?;
        Ok(whole(Response::from_parts(head, body)))
    }

    fn stream(&self, upstream: Response<Incoming>, prefix: VecDeque<Bytes>) -> Response<Body> {
        let (head, body) = upstream.into_parts();
        self.state.recorder.settled(self.entry, Some(head.status.as_u16()), None);
        let path = self.request.path.clone();
        let encoding = Encoding::of_answer(&head.headers);
        let events = self.state.streams.pass(path, prefix, body, encoding);
        with_body(head, StreamBody::new(events).boxed_unsync())
    }

    fn settled(&self, head: &http::response::Parts, body: &[u8]) {
        let read = || Encoding::of_answer(&head.headers).resource_version(body);
        let version = (!self.request.method.is_safe()).then(read).flatten();
        self.state.recorder.settled(self.entry, Some(head.status.as_u16()), version);
    }

    fn asked_for(&self) -> Encoding {
        Encoding::asked_for(&self.request.headers)
    }

    fn never_sent(&self) {
        self.state.recorder.settled(self.entry, None, None);
    }

    fn cut(&self, cut: Cut) -> anyhow::Result<Response<Body>> {
        if cut == Cut::Connection {
            self.connection.cancel();
        }
        bail!("cut by the test")
    }
}

fn whole(response: Response<Bytes>) -> Response<Body> {
    let (head, body) = response.into_parts();
    with_body(head, Full::new(body).map_err(|never| match never {}).boxed_unsync())
}

fn with_body(mut head: http::response::Parts, body: Body) -> Response<Body> {
    head.headers = end_to_end(head.headers);
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}
