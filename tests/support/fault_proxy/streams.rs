//! Watches: their events pass through as they come, until a test ends or stalls them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming};
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::canned::Canned;
use super::encoding::{Encoding, Events};

/// The watches a proxy has open.
#[derive(Default)]
pub(super) struct Streams(Arc<Mutex<Vec<Open>>>);

#[derive(Clone)]
struct Open {
    path: String,
    orders: UnboundedSender<Order>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Close,
    Cut,
    Expire,
    Stall,
    Resume,
}

/// Some watches, to be ended or stalled. Those that ended meanwhile are passed over.
pub struct Watches(Vec<Open>);

impl Watches {
    /// Number of open streams.
    pub fn count(&self) -> usize {
        self.0.iter().filter(|open| !open.orders.is_closed()).count()
    }

    /// Ends them as the server does when their time is up: a clean end of the answer.
    pub fn close(&self) {
        self.order(Order::Close);
    }

    /// Ends them in the midst of the answer.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    /// Ends them with the event `ERROR` and a Status of code 410, `Expired`.
    pub fn expire(&self) {
        self.order(Order::Expire);
    }

    /// Events wait from now on: the product sees the past.
    pub fn stall(&self) {
        self.order(Order::Stall);
    }

    /// Ends [`Self::stall`]: what waited is delivered.
    pub fn resume(&self) {
        self.order(Order::Resume);
    }

    fn order(&self, order: Order) {
        for open in &self.0 {
            // A watch that has ended needs no order.
            let _ended = open.orders.send(order).is_err();
        }
    }
}

impl Streams {
    pub(super) fn open(&self, path: &str) -> Watches {
        let mut all = self.0.lock();
        all.retain(|open| !open.orders.is_closed());
        Watches(all.iter().filter(|open| open.path.starts_with(path)).cloned().collect())
    }

    /// The answer to a watch: first `prefix`, then what the server sends.
    pub(super) fn pass(
        &self,
        path: String,
        prefix: VecDeque<Bytes>,
        upstream: Incoming,
        encoding: Encoding,
    ) -> impl Stream<Item = anyhow::Result<Frame<Bytes>>> + Send + use<> {
        let (orders, inbox) = mpsc::unbounded_channel();
        self.0.lock().push(Open { path, orders });
        let events = encoding.events();
        let watch =
            Watch { prefix, upstream, inbox, encoding, events, stalled: false, ending: None };
        futures::stream::unfold(Some(watch), async |watch| {
            let mut watch = watch?;
            match watch.next().await {
                Next::Data(data) => Some((Ok(Frame::data(data)), Some(watch))),
                Next::LastData(data) => Some((Ok(Frame::data(data)), None)),
                Next::Error(error) => Some((Err(error), None)),
                Next::End => None,
            }
        })
    }
}

struct Watch {
    prefix: VecDeque<Bytes>,
    upstream: Incoming,
    inbox: UnboundedReceiver<Order>,
    stalled: bool,
    encoding: Encoding,
    /// Position in the events that were passed on.
    events: Events,
    /// An order to end, which waits for the end of the event under way.
    ending: Option<Order>,
}

enum Next {
    Data(Bytes),
    LastData(Bytes),
    Error(anyhow::Error),
    End,
}

impl Watch {
    async fn next(&mut self) -> Next {
        loop {
            match self.ending {
                Some(Order::Cut) => return Next::Error(anyhow::anyhow!("cut by the test")),
                Some(Order::Expire) if self.events.at_end() => {
                    return Next::LastData(Canned::status(410).event(self.encoding));
                }
                Some(Order::Close) if self.events.at_end() => return Next::End,
                _ => {}
            }
            tokio::select! {
                biased;
                // The sender lives in the list of this proxy: none means that it has been dropped.
                order = self.inbox.recv() => self.obey(order.unwrap_or(Order::Cut)),
                next = from_server(&mut self.prefix, &mut self.upstream), if !self.stalled => {
                    if let Next::Data(data) = &next {
                        self.events.pass(data);
                    }
                    return next;
                }
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Stall => self.stalled = true,
            Order::Resume => self.stalled = false,
            end => {
                self.ending = Some(end);
                self.stalled = false;
            }
        }
    }
}

async fn from_server(prefix: &mut VecDeque<Bytes>, upstream: &mut Incoming) -> Next {
    if let Some(event) = prefix.pop_front() {
        return Next::Data(event);
    }
    loop {
        match upstream.frame().await {
            None => return Next::End,
            Some(Err(error)) => return Next::Error(error.into()),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Next::Data(data);
                }
            }
        }
    }
}
