//! [`Sender`]: what the layers of a client have in common.

use http::{Request, Response};
use kube::client::Body;

/// Sends one request, itself or through what stands below it. A trait of our own, because its
/// futures borrow: a stack of tower services would box one per layer and request.
pub(crate) trait Sender: Send + Sync {
    /// Body of the answer.
    type Answer;
    /// Why there is none.
    type Error;

    /// Sends one request. Giving up the future gives up the request.
    fn send(
        &self,
        request: Request<Body>,
    ) -> impl Future<Output = Result<Response<Self::Answer>, Self::Error>> + Send;
}

/// Tests script a layer by a function.
#[cfg(test)]
impl<F, Sending, Answer, Error> Sender for F
where
    F: Fn(Request<Body>) -> Sending + Send + Sync,
    Sending: Future<Output = Result<Response<Answer>, Error>> + Send,
{
    type Answer = Answer;
    type Error = Error;

    async fn send(&self, request: Request<Body>) -> Result<Response<Answer>, Error> {
        self(request).await
    }
}
