//! [`Calls`]: a server whose test gets each request and answers it by hand.

use futures::channel::{mpsc, oneshot};
use futures::future::FutureExt as _;
use futures::stream::StreamExt as _;

use crate::asked::Asked;
use crate::reply::Reply;
use crate::server::client;

/// The requests of one client, in their order.
pub struct Calls(mpsc::UnboundedReceiver<Call>);

/// A request that waits for its answer. Dropped, it is a connection that breaks.
pub struct Call {
    /// The request.
    pub asked: Asked,
    reply: oneshot::Sender<Reply>,
}

impl Calls {
    /// A client in memory, and its requests.
    pub fn new() -> (kube::Client, Self) {
        let (sender, calls) = mpsc::unbounded();
        let client = client(move |asked| {
            let (reply, replied) = oneshot::channel();
            match sender.unbounded_send(Call { asked: asked.clone(), reply }) {
                Ok(()) => Reply::Later(replied.map(|it| it.unwrap_or(Reply::Refused)).boxed()),
                Err(_) => Reply::Fails("the server is gone".into()),
            }
        });
        (client, Self(calls))
    }

    /// The next request, as soon as it comes.
    ///
    /// # Panics
    /// The client is dropped.
    pub async fn next(&mut self) -> Call {
        self.0.next().await.expect("the client lives")
    }
}

impl Call {
    /// Answers the request.
    ///
    /// # Panics
    /// The client does not wait for the answer any more.
    pub fn answer(self, reply: Reply) {
        assert!(self.reply.send(reply).is_ok(), "the client waits for its answer");
    }
}
