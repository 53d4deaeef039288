//! [`Caller`]: sends raw requests and reads the whole answers. The hot writes go this way: kube's
//! own client puts a queue, a task and two channels between a caller and the layers.

use std::time::Duration;

use futures::future::BoxFuture;
use http::Request;
use kube::client::Body;

use crate::call::answer::{Answer, answer, read};
use crate::call::error::CallError;
use crate::call::request::AttemptTimeout;
use crate::call::sender::Sender as _;
use crate::stack::Stack;

/// Sends raw requests through the layers of one client. Clones share them.
#[derive(Clone)]
pub struct Caller(Way);

#[derive(Clone)]
enum Way {
    Layers(Stack),
    Kube(kube::Client),
}

impl Caller {
    pub(crate) fn of(stack: Stack) -> Self {
        Self(Way::Layers(stack))
    }

    /// The same layers behind kube's API: one throttle, one identity, one fence.
    pub fn kube(&self) -> kube::Client {
        match &self.0 {
            Way::Layers(stack) => stack.kube(),
            Way::Kube(client) => client.clone(),
        }
    }

    /// Sends `request` and reads the whole answer. Any HTTP status is an answer. `timeout` bounds
    /// one attempt, reading the body included; waiting in the throttle is no part of it. A write
    /// tells the server to give up when the attempt does, or when our lease ends if that is sooner.
    ///
    /// # Errors
    /// [`CallError`] says whether the request may have been carried out. One whose answer broke off
    /// after the headers may have been: it is a [`CallError::Transport`] or [`CallError::Timeout`].
    pub fn answer(
        &self,
        mut request: Request<Body>,
        timeout: Duration,
    ) -> BoxFuture<'_, Result<Answer, CallError>> {
        // Boxed: every crate that awaits a call would have a copy of all layers.
        Box::pin(async move {
            match &self.0 {
                Way::Layers(stack) => {
                    request.extensions_mut().insert(AttemptTimeout(timeout));
                    read(stack.send(request).await?, timeout).await
                }
                Way::Kube(client) => answer(client, request, timeout).await,
            }
        })
    }
}

impl From<kube::Client> for Caller {
    fn from(client: kube::Client) -> Self {
        Self(Way::Kube(client))
    }
}
