//! Writes that are held up between their body and the wire.

use std::sync::atomic::AtomicBool;

use futures::stream;

use super::super::super::departures::MayLeave;
use super::*;

/// A write that may leave while `allowed` says so, and whose body sets that to `then` when it is
/// taken.
fn write(
    allowed: &Arc<AtomicBool>,
    then: bool,
) -> Request<impl Body<Data = Bytes, Error = BoxError> + use<>> {
    let (asked, taken) = (Arc::clone(allowed), Arc::clone(allowed));
    let body = stream::once(async move {
        taken.store(then, Ordering::Relaxed);
        Ok::<_, BoxError>(Frame::data(Bytes::from("written")))
    });
    let mut request = Request::patch("https://api/a").body(StreamBody::new(body)).unwrap();
    request.extensions_mut().insert(MayLeave::new(move || asked.load(Ordering::Relaxed)));
    request
}

/// `rule:held-up-writes-are-asked-again`
#[tokio::test]
async fn a_write_that_may_not_leave_any_more_after_its_body_was_taken_does_not() {
    let (channel, server) = connect(&server::Builder::new()).await;
    let echo = tokio::spawn(echo(server));
    let allowed = Arc::new(AtomicBool::new(true));
    send(channel.clone(), write(&allowed, false)).await.unwrap_err();
    assert!(channel.turn().await.is_err(), "the connection has ended");
    echo.await.unwrap();
}

/// `rule:held-up-writes-are-asked-again`
#[tokio::test]
async fn a_write_that_has_left_is_not_asked_about_again() {
    let (channel, server) = connect(&server::Builder::new()).await;
    tokio::spawn(echo(server));
    let allowed = Arc::new(AtomicBool::new(true));
    assert_eq!(send(channel.clone(), write(&allowed, true)).await.unwrap(), "written");
    send(channel.clone(), get()).await.unwrap();
    allowed.store(false, Ordering::Relaxed);
    send(channel.clone(), get()).await.unwrap();
}
