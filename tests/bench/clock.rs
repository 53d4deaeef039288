//! The clock: a watch of its own that dates every assignment, the same for every contender.
//!
//! It has its own connection and its own thread, so the other work of this program (creating Nodes,
//! sending the raw loop's PATCHes) does not delay the clock. It reads JSON, as the product does; that the
//! server encodes an event once for both is worth under 1 % of what a PATCH costs it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bytes::{Buf as _, BytesMut};
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::watch;

use crate::api::Api;
use crate::ledger::{Change, Counts, Ledger};

/// Longer than any run. Without it the server ends a watch after half an hour to an hour.
const WATCH_SECONDS: u32 = 7200;

/// What the thread tells: how far the Nodes are, or why the clock stopped.
type Progress = Result<Counts, String>;

/// A running clock. Dropping it ends its watch.
pub(crate) struct Clock {
    ledger: Arc<Mutex<Ledger>>,
    progress: watch::Receiver<Progress>,
}

impl Clock {
    /// Starts to watch all Nodes from now on. There should be none yet.
    pub(crate) async fn start(kubeconfig: &Path) -> anyhow::Result<Self> {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let (sender, progress) = watch::channel(Ok(Counts::default()));
        let (started, starting) = tokio::sync::oneshot::channel();
        let (shared, kubeconfig) = (ledger.clone(), kubeconfig.to_path_buf());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the clock's runtime")?;
        std::thread::Builder::new()
            .name("clock".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    match Watch::open(&kubeconfig).await {
                        Ok(watch) => {
                            if started.send(Ok(())).is_ok() {
                                run(watch, &shared, &sender).await;
                            }
                        }
                        // The receiver is gone only when the starter has stopped.
                        Err(error) => drop(started.send(Err(error))),
                    }
                });
            })
            .context("cannot start the clock's thread")?;
        starting.await.context("the clock's thread ended")??;
        Ok(Self { ledger, progress })
    }

    /// Waits until the counts satisfy `condition`. Fails after `limit`, or when the clock stopped.
    pub(crate) async fn until(
        &mut self,
        limit: Duration,
        condition: impl Fn(Counts) -> bool,
    ) -> anyhow::Result<()> {
        let mut progress = self.progress.clone();
        let reached = progress.wait_for(|p| p.as_ref().map_or(true, |counts| condition(*counts)));
        let outcome = match tokio::time::timeout(limit, reached).await {
            Ok(outcome) => outcome.context("the clock's thread ended")?.clone(),
            Err(_) => anyhow::bail!("not done after {limit:?}: {:?}", self.ledger.lock().counts()),
        };
        outcome.map(drop).map_err(anyhow::Error::msg)
    }

    /// Reads what was seen so far.
    pub(crate) fn read<R>(&self, reader: impl FnOnce(&Ledger) -> R) -> R {
        reader(&self.ledger.lock())
    }
}

/// Follows the watch until the receivers are dropped or the watch fails.
async fn run(mut watch: Watch, ledger: &Mutex<Ledger>, progress: &watch::Sender<Progress>) {
    let error = tokio::select! {
        error = watch.follow(ledger, progress) => error,
        () = progress.closed() => return,
    };
    drop(progress.send_replace(Err(format!("the clock stopped: {error:#}"))));
}

/// The clock's connection, and the watch on it.
struct Watch {
    api: Api,
    version: String,
    body: Incoming,
}

impl Watch {
    /// Starts at what is there now.
    async fn open(kubeconfig: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct List {
            metadata: ListMeta,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ListMeta {
            resource_version: String,
        }
        let api = Api::connect(kubeconfig).await?;
        let list = api.call(Method::GET, "/api/v1/nodes?limit=1", None, &[]).await?;
        let version = serde_json::from_slice::<List>(&list)?.metadata.resource_version;
        let body = watch_from(&api, &version).await?;
        Ok(Self { api, version, body })
    }

    /// Tells all progress until something is wrong beyond repair; returns what.
    async fn follow(
        &mut self,
        ledger: &Mutex<Ledger>,
        progress: &watch::Sender<Progress>,
    ) -> anyhow::Error {
        loop {
            let version = self.version.clone();
            if let Err(error) = self.read_to_end(ledger, progress).await {
                return error;
            }
            if self.version == version {
                return anyhow::anyhow!("the server closed the watch before it sent anything");
            }
            // Nothing is missed, but what happened meanwhile is dated some milliseconds late.
            eprintln!("the server closed the clock's watch, as it does to slow watchers; resuming");
            match watch_from(&self.api, &self.version).await {
                Ok(body) => self.body = body,
                Err(error) => return error,
            }
        }
    }

    async fn read_to_end(
        &mut self,
        ledger: &Mutex<Ledger>,
        progress: &watch::Sender<Progress>,
    ) -> anyhow::Result<()> {
        let mut buffer = BytesMut::new();
        while let Some(frame) = self.body.frame().await {
            let at = Instant::now();
            if let Ok(data) = frame.context("cannot read the watch")?.into_data() {
                buffer.extend_from_slice(&data);
            }
            let counts = observe_lines(&mut buffer, &mut ledger.lock(), &mut self.version, at)?;
            drop(progress.send_replace(Ok(counts)));
        }
        Ok(())
    }
}

async fn watch_from(api: &Api, version: &str) -> anyhow::Result<Incoming> {
    let path = format!(
        "/api/v1/nodes?watch=true&resourceVersion={version}&timeoutSeconds={WATCH_SECONDS}"
    );
    let reply = api.stream(Method::GET, &path, None).await?;
    anyhow::ensure!(reply.status().is_success(), "the watch was answered {}", reply.status());
    Ok(reply.into_body())
}

/// Takes the complete lines out of the buffer and into the ledger; `version` becomes the last
/// one's.
fn observe_lines(
    buffer: &mut BytesMut,
    ledger: &mut Ledger,
    version: &mut String,
    at: Instant,
) -> anyhow::Result<Counts> {
    while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
        let change: Change<'_> = serde_json::from_slice(&buffer[..end])
            .context("cannot decode an event of the watch")?;
        ledger.observe(&change, at)?;
        change.resource_version().clone_into(version);
        buffer.advance(end + 1);
    }
    Ok(ledger.counts())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_arrives_in_two_frames_is_read_once_it_is_complete() {
        let (mut buffer, mut ledger) = (BytesMut::new(), Ledger::default());
        let mut version = "6".to_owned();
        let mut observe = |bytes: &str| {
            buffer.extend_from_slice(bytes.as_bytes());
            let at = Instant::now();
            let counts = observe_lines(&mut buffer, &mut ledger, &mut version, at).unwrap();
            (counts.added, version.clone())
        };
        let start = r#"{"type":"ADDED","object":{"metadata":"#;
        assert_eq!(observe(start), (0, "6".to_owned()));
        let end_and_start = format!("{{\"uid\":\"a\",\"resourceVersion\":\"7\"}}}}}}\n{start}");
        assert_eq!(observe(&end_and_start), (1, "7".to_owned()));
        let end = r#"{"uid":"b","resourceVersion":"8"}}}"#.to_owned() + "\n";
        assert_eq!(observe(&end), (2, "8".to_owned()));
    }
}
