//! The requests of a call (`rule:a-call-is-not-doubled`): each waits for its turn and is
//! counted, and there is another one only where that cannot make a second resource.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::call::{AwsError, Call};
use crate::region::Region;

/// A call is tried so often.
const REQUESTS: u32 = 3;
/// The second request comes within this time, the third within twice as much.
const PAUSE: Duration = Duration::from_secs(1);

/// Sends a call until it is answered for good, or was tried often enough. `send` makes one request;
/// none is made after `leaves_by`, and none that cannot leave by then takes the turn of another.
///
/// The error of a call whose first request may have been carried out says so, even when a later one
/// was throttled or held back.
pub(crate) async fn send<T, F>(
    region: &Region,
    call: Call,
    leaves_by: Option<Instant>,
    mut send: impl FnMut() -> F,
) -> Result<T, AwsError>
where
    F: Future<Output = Result<T, AwsError>>,
{
    let (mut retries, mut doubt) = (0, None);
    let ended = loop {
        match request(region, call, leaves_by, &mut send).await {
            Err(error) if retries + 1 < REQUESTS && may_follow(&error, call) => {
                if error.leaves_doubt() {
                    doubt = Some(error);
                }
                retries += 1;
                sleep(PAUSE.mul_f64(resilience::draw() * f64::from(retries))).await;
            }
            Err(error) if !was_looked_at(&error) => break Err(doubt.unwrap_or(error)),
            ended => break ended,
        }
    };
    region.metrics().call_ended(region.labels(call), retries);
    ended
}

/// AWS has looked at the call, or may have: a later answer then tells what became of an earlier
/// request, too.
fn was_looked_at(error: &AwsError) -> bool {
    !error.is_throttle() && !error.is_not_sent()
}

/// Whether another request may follow this one (`rule:a-call-is-not-doubled`).
fn may_follow(error: &AwsError, call: Call) -> bool {
    error.is_throttle() || (call.is_repeatable && error.leaves_doubt())
}

async fn request<T, F>(
    region: &Region,
    call: Call,
    leaves_by: Option<Instant>,
    send: &mut impl FnMut() -> F,
) -> Result<T, AwsError>
where
    F: Future<Output = Result<T, AwsError>>,
{
    let asked = Instant::now();
    let turn = take_turn(region, call, leaves_by).await;
    region.metrics().waited(call, asked.elapsed());
    turn?;
    region.count(call);
    let sent = Instant::now();
    let ended = send().await;
    match &ended {
        Err(error) if error.is_not_sent() => {}
        Err(error) => region.metrics().request(region.labels(call), sent.elapsed(), Err(error)),
        Ok(_) => region.metrics().request(region.labels(call), sent.elapsed(), Ok(())),
    }
    if ended.as_ref().is_err_and(AwsError::asks_for_fewer_calls) {
        region.limits().throttled(call.service, call.class);
    }
    ended
}

/// Waits for the turn of a call, and leaves it to another when it would come too late
/// (`rule:a-throttle-slows-everybody`).
async fn take_turn(
    region: &Region,
    call: Call,
    leaves_by: Option<Instant>,
) -> Result<(), AwsError> {
    let turn = region.limits().wait(call.service, call.class);
    let Some(at) = leaves_by else {
        turn.await;
        return Ok(());
    };
    timeout_at(at, turn).await.map_err(|_| {
        let reason = "cannot send the write before its plan expires: the rate limit delays it; it is planned again";
        AwsError::NotSent { reason: reason.to_owned() }
    })
}
