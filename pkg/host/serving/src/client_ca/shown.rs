//! [`ShownChain`]: what a client showed on one connection, and what was found about it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tracing::debug;

use super::roots::ClientRoots;

/// Judgements of the process at once; further ones wait in order.
pub(super) const AT_ONCE: usize = 2;
/// The CAs of clients and of proxies, by which a chain is judged at the same time.
const VERDICTS: usize = 2;

pub(super) static TURNS: Semaphore = Semaphore::const_new(AT_ONCE);

/// The chain that a client has shown, leaf first, and whose key it has. Clones share the verdicts.
#[derive(Clone)]
pub struct ShownChain(Arc<Shown>);

struct Shown {
    certificates: Vec<CertificateDer<'static>>,
    verdicts: Mutex<Vec<Verdict>>,
    judging: tokio::sync::Mutex<()>,
}

struct Verdict {
    roots: ClientRoots,
    /// The last second in which a good chain is good; none for a bad one.
    until: Option<u64>,
}

impl ShownChain {
    /// A chain that nobody has judged.
    pub fn new(certificates: Vec<CertificateDer<'static>>) -> Self {
        let (verdicts, judging) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Shown { certificates, verdicts, judging }))
    }

    /// The certificates, leaf first.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0.certificates
    }

    /// Whether one of `roots` vouches for the chain now. It is judged once for the same roots,
    /// beside the workers of the runtime, and to the end when nobody waits any more
    /// (rule:chains-are-judged-once).
    pub async fn is_vouched_for_by(&self, roots: &ClientRoots) -> bool {
        if let Some(verdict) = self.verdict(roots) {
            return verdict;
        }
        let (shown, roots) = (self.clone(), roots.clone());
        let judging = tokio::spawn(async move { shown.judge(roots).await });
        judging.await.unwrap_or(false)
    }

    pub(super) fn verdict(&self, roots: &ClientRoots) -> Option<bool> {
        let verdicts = self.0.verdicts.lock();
        let verdict = verdicts.iter().find(|verdict| verdict.roots == *roots)?;
        match verdict.until {
            None => Some(false),
            // One that has ended is judged again.
            Some(until) => (UnixTime::now().as_secs() <= until).then_some(true),
        }
    }

    #[cfg(test)]
    pub(super) fn end_verdicts(&self, until: u64) {
        self.0.verdicts.lock().iter_mut().for_each(|verdict| verdict.until = Some(until));
    }

    async fn judge(&self, roots: ClientRoots) -> bool {
        let _alone = self.0.judging.lock().await;
        if let Some(verdict) = self.verdict(&roots) {
            return verdict;
        }
        let turn = TURNS.acquire().await;
        let (shown, judged_by) = (self.clone(), roots.clone());
        let judged = spawn_blocking(move || {
            let judged = judged_by.judge(shown.certificates());
            drop(turn);
            judged
        });
        let until = match judged.await {
            Ok(Ok(good)) => Some(good.until),
            Ok(Err(err)) => {
                debug!(v = 3, logger = "serving", %err, "Client certificate is not trusted");
                None
            }
            // The runtime ends.
            Err(_) => return false,
        };
        let mut verdicts = self.0.verdicts.lock();
        verdicts.retain(|verdict| verdict.roots != roots);
        verdicts.insert(0, Verdict { roots, until });
        verdicts.truncate(VERDICTS);
        until.is_some()
    }
}

impl fmt::Debug for ShownChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShownChain({} certificates)", self.certificates().len())
    }
}

/// Chains are the same when their certificates are, whatever was found about them.
impl PartialEq for ShownChain {
    fn eq(&self, other: &Self) -> bool {
        self.certificates() == other.certificates()
    }
}

impl Eq for ShownChain {}
