//! The end of a run: how long outcomes of PATCHes may be settled after a stop.

use std::time::Duration;

use manager::{Context, Failure};
use tokio::time::Instant;

/// Besides the time of a PATCH, for settling the last outcomes after a stop: one second in which a
/// PATCH travels to the server, and two for reads. With 5 s of the PATCH it fits into stock's
/// default for `--controller-shutdown-timeout`, 10 s.
const LAST_READS: Duration = Duration::from_secs(3);

/// Waits for the stop of the run; until when its outcomes may be settled.
pub(crate) async fn deadline_of_outcomes(context: &Context) -> Result<Instant, Failure> {
    context.stop.clone().cancelled_owned().await;
    Ok(Instant::now() + context.settings.write_timeout + LAST_READS)
}
