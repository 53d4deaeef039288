//! [`CredentialPlugins`]: the exec plugins that print the credentials of clusters. They run apart from all probing, few at a
//! time; a probe uses what the last run printed, so a slow plugin delays no probe.
//!
//! A plugin is a program that the operator names in a file. What an object says reaches it in `KUBERNETES_EXEC_INFO` and
//! nowhere else, and of the environment of this process it gets [`PASSED`] alone: the rest may hold credentials of ours.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use client::{PluginError, PluginLimits, PluginRuns, PluginSpec, Printed};
use health::Code;
use parking_lot::Mutex;
use probe::{ClientPair, Problem};
use prometheus::{IntCounterVec, Registry};
use secrecy::{ExposeSecret as _, SecretSlice};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::flavour::MemberId;
use crate::kubeconfig::Credential;

/// Plugins that run at the same time, over all members of a flavour.
const AT_ONCE: usize = 8;
/// Those of one provider: when they hang, the others run in the places that are left.
const OF_PROVIDER: usize = AT_ONCE / 2;
/// Between looks for plugins that are due.
const ROUND: Duration = Duration::from_secs(1);
const LIMITS: PluginLimits = PluginLimits {
    run: Duration::from_secs(10),
    output: 64 << 10,
    endless: Some(Duration::from_secs(600)),
    environment: Some(&PASSED),
};
/// The variables of this process that a plugin gets, in addition to those of its `execConfig`.
const PASSED: [&str; 8] = [
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
];

/// Runs by provider and outcome.
#[derive(Clone)]
pub(crate) struct PluginCounter(IntCounterVec);

impl PluginCounter {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let counter = metrics::counter(
            registry,
            "clusterhealth_access_plugin_runs_total",
            "Runs of exec plugins of ClusterProfiles by outcome: ok, start, timeout or failed.",
            &["provider", "outcome"],
        )?;
        Ok(Self(counter))
    }

    fn count(&self, provider: &str, failure: Option<&PluginError>) {
        let outcome = match failure {
            None => "ok",
            Some(PluginError::Start { .. }) => "start",
            Some(PluginError::Timeout { .. }) => "timeout",
            Some(PluginError::Unusable(_)) => "failed",
        };
        self.0.with_label_values(&[provider, outcome]).inc();
    }
}

/// The exec plugin that prints the credential of a cluster.
pub(crate) struct Plugin {
    /// The access provider that it is of: its name in metrics and messages.
    pub(crate) provider: String,
    pub(crate) spec: PluginSpec,
}

/// The plugins of all clusters of a flavour that have one.
pub(crate) struct CredentialPlugins {
    /// By UID.
    entries: Mutex<HashMap<Arc<str>, Entry>>,
    /// How many entries there were.
    made: Mutex<u64>,
    due: Notify,
    turns: Semaphore,
    turns_of_providers: Mutex<HashMap<Box<str>, Arc<Semaphore>>>,
    counter: PluginCounter,
}

struct Entry {
    /// A run of an earlier entry of this member, with the same plugin, may end later than one of this entry.
    id: u64,
    cluster: MemberId,
    provider: Box<str>,
    spec: PluginSpec,
    /// `None` while it runs.
    runs: Option<PluginRuns>,
    /// The member refused what it printed.
    refused: bool,
    is_failing: bool,
    given: Option<Result<Printed, PluginError>>,
    /// When that ends, unless it had ended by our clock when it was printed.
    ends_at: Option<Instant>,
}

impl Entry {
    fn has_ended(&self) -> bool {
        self.ends_at.is_some_and(|end| end <= Instant::now())
    }
}

/// One run to make.
struct Run {
    entry: u64,
    cluster: MemberId,
    provider: Box<str>,
    runs: PluginRuns,
}

impl CredentialPlugins {
    pub(crate) fn new(counter: PluginCounter) -> Self {
        let (entries, turns_of_providers, made) = Default::default();
        let (due, turns) = (Notify::new(), Semaphore::new(AT_ONCE));
        Self { entries, made, due, turns, turns_of_providers, counter }
    }

    /// What the plugin of a member printed last. One that is new, or another one, runs soon.
    ///
    /// # Errors
    /// It has printed nothing yet, or nothing that can be used.
    pub(super) fn credential(
        &self,
        cluster: &MemberId,
        Plugin { provider, spec }: Plugin,
    ) -> Result<Credential, Problem> {
        let mut entries = self.entries.lock();
        let known = entries.get(&cluster.uid).filter(|it| it.spec == spec);
        let given = match known {
            Some(known) if known.has_ended() => None,
            Some(known) => known.given.clone(),
            None => {
                let mut made = self.made.lock();
                *made += 1;
                let entry = Entry {
                    id: *made,
                    cluster: cluster.clone(),
                    provider: provider.as_str().into(),
                    runs: Some(PluginRuns::limited(spec.clone(), LIMITS)),
                    spec,
                    refused: false,
                    is_failing: false,
                    given: None,
                    ends_at: None,
                };
                entries.insert(Arc::clone(&cluster.uid), entry);
                self.due.notify_one();
                None
            }
        };
        drop(entries);
        match given {
            Some(Ok(Printed { token, pair })) => {
                let pair = pair.map(|(certificate, key)| ClientPair {
                    certificate: certificate.into_bytes(),
                    key: SecretSlice::from(key.expose_secret().as_bytes().to_vec()),
                });
                Ok((token, pair))
            }
            Some(Err(error)) => {
                let text = format!("the exec plugin of access provider {provider}: {error}");
                // The limit is ours, and says nothing about the member.
                let code = match error {
                    PluginError::Timeout { .. } => Code::OwnLimit,
                    PluginError::Start { .. } | PluginError::Unusable(_) => Code::PluginFailed,
                };
                Err(Problem::new(code, text))
            }
            None => {
                let text = format!(
                    "the exec plugin of access provider {provider} has not printed a credential in time"
                );
                Err(Problem::new(Code::OwnLimit, text))
            }
        }
    }

    /// A member refused its credential: its plugin runs again, unless it just did.
    pub(super) fn refused(&self, uid: &str) {
        if let Some(entry) = self.entries.lock().get_mut(uid) {
            entry.refused = true;
            self.due.notify_one();
        }
    }

    /// The member is gone, or has no plugin any more.
    pub(crate) fn forget(&self, uid: &str) {
        let gone = self.entries.lock().remove(uid);
        // Dropped after the lock: that wipes a credential.
        drop(gone);
    }

    /// Runs the plugins that are due, of clusters that `is_used` names, until `stop`. `changed` is called with each cluster
    /// whose credential may be another one, and with the error that is news.
    pub(super) async fn run(
        self: Arc<Self>,
        is_used: impl Fn(&MemberId) -> bool,
        changed: impl Fn(&MemberId, Option<PluginError>) + Send + Sync + 'static,
        stop: CancellationToken,
    ) {
        let (changed, under_way) = (Arc::new(changed), TaskTracker::new());
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = rounds.tick() => {}
                () = self.due.notified() => {}
            }
            for cluster in self.take_ended() {
                changed(&cluster, None);
            }
            for run in self.take_due(&is_used) {
                let (plugins, changed) = (Arc::clone(&self), Arc::clone(&changed));
                let stop = stop.clone();
                under_way.spawn(resilience::task(async move {
                    let cluster = run.cluster.clone();
                    let made = stop.run_until_cancelled(plugins.make(run)).await;
                    if let Some((true, failure)) = made {
                        changed(&cluster, failure);
                    }
                }));
            }
        }
        under_way.close();
        under_way.wait().await;
    }

    /// The runs that are due, of members that `is_used` names; those of others are forgotten.
    fn take_due(&self, is_used: impl Fn(&MemberId) -> bool) -> Vec<Run> {
        let mut entries = self.entries.lock();
        entries.retain(|_, entry| is_used(&entry.cluster));
        let due = entries.values_mut().filter_map(|entry| {
            let runs = entry.runs.take_if(|runs| runs.is_due(entry.refused))?;
            entry.refused = false;
            let (cluster, provider) = (entry.cluster.clone(), entry.provider.clone());
            Some(Run { entry: entry.id, cluster, provider, runs })
        });
        due.collect()
    }

    /// The members whose credentials have ended before their plugins ran again; each is named once.
    fn take_ended(&self) -> Vec<MemberId> {
        let mut entries = self.entries.lock();
        let ended = entries.values_mut().filter(|entry| entry.has_ended());
        let named = ended.map(|entry| {
            (entry.given, entry.ends_at) = (None, None);
            entry.cluster.clone()
        });
        named.collect()
    }

    fn turns_of(&self, provider: &str) -> Arc<Semaphore> {
        let mut turns = self.turns_of_providers.lock();
        let of_provider = turns.entry(provider.into());
        Arc::clone(of_provider.or_insert_with(|| Arc::new(Semaphore::new(OF_PROVIDER))))
    }

    /// Makes a run when its turn comes; whether its result is wanted, and the error that is news.
    async fn make(&self, mut run: Run) -> (bool, Option<PluginError>) {
        let of_provider = self.turns_of(&run.provider);
        let turn = (of_provider.acquire().await, self.turns.acquire().await);
        let is_it = |entry: &Entry| entry.id == run.entry;
        if !self.entries.lock().get(&run.cluster.uid).is_some_and(is_it) {
            return (false, None);
        }
        run.runs.run().await;
        drop(turn);
        let failure = run.runs.failure().cloned();
        self.counter.count(&run.provider, failure.as_ref());
        let given = run.runs.printed();
        let ends_at = run.runs.ends_at().filter(|end| given.is_ok() && *end > Instant::now());
        let mut entries = self.entries.lock();
        let is_it = |entry: &&mut Entry| entry.id == run.entry;
        let Some(entry) = entries.get_mut(&run.cluster.uid).filter(is_it) else {
            return (false, None);
        };
        let was_failing = std::mem::replace(&mut entry.is_failing, failure.is_some());
        entry.runs = Some(run.runs);
        (entry.given, entry.ends_at) = (Some(given), ends_at);
        (true, failure.filter(|_| !was_failing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugins() -> CredentialPlugins {
        CredentialPlugins::new(PluginCounter::new(&Registry::new()).unwrap())
    }

    fn of(provider: &str, spec: PluginSpec) -> Plugin {
        Plugin { provider: provider.to_owned(), spec }
    }

    fn cluster(number: usize) -> MemberId {
        MemberId { uid: number.to_string().into(), key: format!("ns/{number}").into() }
    }

    fn spec(script: &str) -> PluginSpec {
        PluginSpec {
            command: "sh".into(),
            args: vec!["-c".into(), script.into()],
            env: Vec::new(),
            api_version: "client.authentication.k8s.io/v1".into(),
            cluster: None,
        }
    }

    fn printing(token: &str) -> PluginSpec {
        spec(&format!(r#"echo '{{"kind":"ExecCredential","status":{{"token":"{token}"}}}}'"#))
    }

    fn token(plugins: &CredentialPlugins, spec: PluginSpec) -> Result<String, Code> {
        let credential = plugins.credential(&cluster(1), of("google", spec));
        credential
            .map(|(token, _)| token.unwrap().expose_secret().to_owned())
            .map_err(|problem| problem.code())
    }

    #[tokio::test]
    async fn a_credential_is_what_the_last_run_of_the_plugin_printed() {
        let plugins = plugins();
        assert_eq!(token(&plugins, printing("a")), Err(Code::OwnLimit));
        let mut due = plugins.take_due(|_| true);
        assert!(plugins.take_due(|_| true).is_empty(), "it runs");
        assert!(plugins.make(due.remove(0)).await.0);
        assert_eq!(token(&plugins, printing("a")).as_deref(), Ok("a"));
        assert!(plugins.take_due(|_| true).is_empty(), "it is good for ten minutes");
        // Another plugin: what the one before printed is not used for it.
        assert_eq!(token(&plugins, spec("exit 3")), Err(Code::OwnLimit));
        let (is_wanted, news) = plugins.make(plugins.take_due(|_| true).remove(0)).await;
        assert!(is_wanted && news.is_some());
        assert_eq!(token(&plugins, spec("exit 3")), Err(Code::PluginFailed));
        plugins.forget("1");
        assert_eq!(token(&plugins, spec("exit 3")), Err(Code::OwnLimit));
        assert!(plugins.take_due(|_| false).is_empty() && plugins.entries.lock().is_empty());
    }

    #[tokio::test]
    async fn the_result_of_a_run_that_nobody_wants_any_more_is_dropped() {
        let plugins = plugins();
        drop(token(&plugins, printing("a")));
        let run = plugins.take_due(|_| true).remove(0);
        assert_eq!(token(&plugins, printing("b")), Err(Code::OwnLimit));
        assert!(!plugins.make(run).await.0);
        assert_eq!(token(&plugins, printing("b")), Err(Code::OwnLimit));
        assert_eq!(plugins.take_due(|_| true).len(), 1, "the other one is still due");
    }

    #[tokio::test]
    async fn the_result_of_a_run_from_before_the_plugin_was_forgotten_is_dropped() {
        let plugins = plugins();
        drop(token(&plugins, printing("a")));
        let old = plugins.take_due(|_| true).remove(0);
        plugins.forget("1");
        drop(token(&plugins, printing("a")));
        let new = plugins.take_due(|_| true).remove(0);
        assert!(!plugins.make(old).await.0);
        assert!(plugins.take_due(|_| true).is_empty(), "the new one runs");
        assert!(plugins.make(new).await.0);
        assert_eq!(token(&plugins, printing("a")).as_deref(), Ok("a"));
    }

    #[tokio::test]
    async fn only_a_few_plugins_run_at_the_same_time_and_of_one_provider_half_of_them() {
        let plugins = Arc::new(plugins());
        let tasks = TaskTracker::new();
        let run_all = || {
            for run in plugins.take_due(|_| true) {
                let plugins = Arc::clone(&plugins);
                tasks.spawn(async move { plugins.make(run).await });
            }
        };
        let hang = |first: usize, provider: &str| {
            for number in first..first + 20 {
                let hanging = spec("exec sleep 1000");
                drop(plugins.credential(&cluster(number), of(provider, hanging)));
            }
        };
        hang(100, "google");
        run_all();
        while plugins.turns_of("google").available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let ask = || plugins.credential(&cluster(1), of("aws", printing("a")));
        assert!(ask().is_err());
        run_all();
        while ask().is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(plugins.turns.available_permits(), AT_ONCE - OF_PROVIDER);
        hang(200, "azure");
        run_all();
        while plugins.turns.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(tasks.len(), 40, "the others wait");
    }

    #[tokio::test]
    async fn what_our_limits_delay_says_nothing_about_the_member() {
        let plugins = plugins();
        assert_eq!(token(&plugins, printing("a")), Err(Code::OwnLimit));
        plugins.make(plugins.take_due(|_| true).remove(0)).await;
        assert!(plugins.take_ended().is_empty());
        let set = |given| {
            let mut entries = plugins.entries.lock();
            let entry = entries.get_mut("1").unwrap();
            (entry.given, entry.ends_at) = (Some(given), Some(Instant::now()));
        };
        let printed = plugins.entries.lock().get("1").unwrap().given.clone().unwrap();
        set(printed);
        assert_eq!(token(&plugins, printing("a")), Err(Code::OwnLimit), "it has ended");
        assert_eq!(plugins.take_ended(), [cluster(1)]);
        assert!(plugins.take_ended().is_empty());
        assert_eq!(token(&plugins, printing("a")), Err(Code::OwnLimit));
        set(Err(PluginError::Timeout { command: "sh".into(), seconds: 10 }));
        assert_eq!(token(&plugins, printing("a")), Err(Code::OwnLimit));
    }
}
