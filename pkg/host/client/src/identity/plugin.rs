//! An exec plugin: a program that prints credentials, and when it runs. The follower of the
//! credentials runs it, never a request: requests use the credentials of the last run.
//!
//! The output of a plugin may hold a secret. No word of it gets into an error
//! (`rule:secrets-have-no-printed-form`).

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use http::HeaderValue;
use k8s_openapi::jiff::Timestamp;
use resilience::{Backoff, Jitter, Series, wall_now};
use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, waitpgid};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use transport::{ClientCertificate, sensitive_header};
use zeroize::Zeroizing;

use crate::config::settings::PluginSpec;
use crate::identity::metrics::{PluginEnd, PluginMetrics};

/// The shortest time between two runs, even when the credentials of each run have already expired.
const RENEWAL_PAUSE: Duration = Duration::from_secs(5);
/// Looks for ended processes of a killed group, and the pause after one that found none: ten seconds at most.
const REAPS: u32 = 1000;
const REAP_PAUSE: Duration = Duration::from_millis(10);
/// A token or a certificate with its key is smaller.
const OUTPUT_USUAL: usize = 64 << 10;

/// The limits of a plugin.
#[derive(Clone, Copy, Debug)]
pub struct PluginLimits {
    /// One run may take this long; then it is killed.
    pub run: Duration,
    /// Bytes; more output is not a credential.
    pub output: u64,
    /// When a credential without an end is renewed; `None` when only a refusal tells.
    pub endless: Option<Duration>,
    /// The only variables of this process that the plugin gets; `None` for all.
    pub environment: Option<&'static [&'static str]>,
}

impl PluginLimits {
    /// Those of the plugin of this process's own identity.
    pub(crate) const OWN: Self =
        Self { run: Duration::from_secs(60), output: 1 << 20, endless: None, environment: None };
}

/// Why a plugin gives no credentials.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PluginError {
    /// The program did not start.
    #[error("cannot run {command:?}: {source}; install it or correct the path")]
    Start {
        /// The program.
        command: String,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// A run did not end in time.
    #[error("{command:?} did not end within {seconds} s and was stopped")]
    Timeout {
        /// The program.
        command: String,
        /// The limit.
        seconds: u64,
    },
    /// Its configuration cannot work, or a run gave nothing that can be used.
    #[error("{0}")]
    Unusable(String),
}

/// The credentials that one run printed.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) certificate: Option<ClientCertificate>,
    /// When to ask again; `None` when only a refusal tells.
    pub(crate) renew_at: Option<Instant>,
    /// When it ends, if that was said.
    pub(crate) ends_at: Option<Instant>,
    printed: Printed,
}

/// A token, a client certificate, or both, as a plugin printed them.
#[derive(Clone)]
pub struct Printed {
    /// The bearer token.
    pub token: Option<SecretString>,
    /// Chain and key in PEM.
    pub pair: Option<(String, SecretString)>,
}

impl fmt::Debug for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Printed(..)")
    }
}

#[derive(Deserialize)]
struct ExecCredential {
    kind: String,
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    expiration_timestamp: Option<Timestamp>,
    token: Option<SecretString>,
    client_certificate_data: Option<String>,
    client_key_data: Option<SecretString>,
}

/// Runs the plugin once.
pub(crate) async fn run(spec: &PluginSpec, limits: &PluginLimits) -> Result<Issued, PluginError> {
    let command = name(&spec.command);
    let Ok(output) = timeout(limits.run, output(spec, &command, limits)).await else {
        return Err(PluginError::Timeout { command, seconds: limits.run.as_secs() });
    };
    read(&output?, &command, wall_now().into())
}

async fn output(
    spec: &PluginSpec,
    command: &str,
    limits: &PluginLimits,
) -> Result<Zeroizing<Vec<u8>>, PluginError> {
    let start = |error| PluginError::Start { command: command.to_owned(), source: Arc::new(error) };
    let mut info = json!({
        "apiVersion": spec.api_version,
        "kind": "ExecCredential",
        "spec": {"interactive": false},
    });
    if let Some(cluster) = &spec.cluster {
        info["spec"]["cluster"] = cluster.clone();
    }
    let mut plugin = Command::new(&spec.command);
    if let Some(passed) = limits.environment {
        let passed = passed.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        plugin.env_clear().envs(passed);
    }
    let mut child = plugin
        .args(&spec.args)
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(start)?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let _group = id.map(Group);
    // So large that it does not move while it grows: what it held before would not be overwritten.
    let mut printed = Zeroizing::new(Vec::with_capacity(OUTPUT_USUAL));
    if let Some(stdout) = child.stdout.take() {
        stdout.take(limits.output + 1).read_to_end(&mut printed).await.map_err(start)?;
    }
    if printed.len() as u64 > limits.output {
        let problem = format!("it is longer than {} KiB", limits.output >> 10);
        return Err(no_credential(command, &problem));
    }
    let status = child.wait().await.map_err(start)?;
    if status.success() {
        return Ok(printed);
    }
    let problem = format!("{command:?} failed ({status}); run it by hand to see its output");
    Err(PluginError::Unusable(problem))
}

/// The process group of a plugin, which ends with the run: a program that the plugin started must not outlive it.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // It fails when nothing is left of the group.
        let _nothing_left = kill_process_group(self.0, Signal::KILL);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(reap(self.0));
        }
    }
}

/// Waits for what was left of a group. As the first process of a container, as in our image, this process inherits it,
/// and nothing else removes its zombies; elsewhere there is nothing to wait for. A program that left the group, as a
/// daemon does, is not waited for.
async fn reap(group: Pid) {
    for _ in 0..REAPS {
        match waitpgid(group, WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => sleep(REAP_PAUSE).await,
            Err(_) => return,
        }
    }
}

/// The output is not a credential of the version asked for.
fn no_credential(command: &str, problem: &str) -> PluginError {
    PluginError::Unusable(format!(
        "{command:?} printed something other than an ExecCredential with a status: {problem}"
    ))
}

fn read(output: &[u8], command: &str, now: SystemTime) -> Result<Issued, PluginError> {
    let fail = |problem| no_credential(command, problem);
    let credential = decode(output)
        .ok_or_else(|| fail("it is neither the JSON nor the YAML of an ExecCredential"))?;
    let status = credential.status.filter(|_| credential.kind == "ExecCredential");
    let status = status.ok_or_else(|| fail("its kind or status is missing"))?;
    let token = status.token.as_ref().map(SecretString::expose_secret);
    let authorization = token.filter(|token| !token.is_empty()).map(|token| {
        let header = sensitive_header(&["Bearer ", token.trim()]);
        header.ok_or_else(|| fail("its token cannot be put into a header"))
    });
    let authorization = authorization.transpose()?;
    let pair = match (status.client_certificate_data, status.client_key_data) {
        (Some(chain), Some(key)) => Some((chain, key)),
        (None, None) => None,
        _ => return Err(fail("it has only one of certificate and key")),
    };
    let certificate = pair.as_ref().map(|(chain, key)| {
        let key = key.expose_secret().as_bytes();
        ClientCertificate::from_pem(chain.as_bytes(), key).map_err(|error| {
            PluginError::Unusable(format!(
                "{command:?} returned a certificate that cannot be used: {error}"
            ))
        })
    });
    let certificate = certificate.transpose()?;
    if authorization.is_none() && certificate.is_none() {
        return Err(fail("it has neither a token nor a certificate"));
    }
    let end = status.expiration_timestamp;
    let renew_at = end.map(|end| Instant::now() + renewal(end, now));
    let ends_at = end.map(|end| Instant::now() + life(end, now));
    let token = authorization.is_some().then(|| token.map(|token| token.trim().into())).flatten();
    let printed = Printed { token, pair };
    Ok(Issued { authorization, certificate, renew_at, ends_at, printed })
}

/// Reads JSON, and otherwise YAML, as client-go does. JSON comes first because its parser makes no
/// copies of secrets, which would not be wiped.
fn decode(output: &[u8]) -> Option<ExecCredential> {
    if let Ok(credential) = serde_json::from_slice(output) {
        return Some(credential);
    }
    let text = std::str::from_utf8(output).ok()?;
    serde_saphyr::from_str_with_options(text, yaml_options()).ok()
}

/// Limits that a credential does not reach, so that aliases of aliases cost no time or memory. A
/// number is no token: client-go refuses one without quotes.
fn yaml_options() -> serde_saphyr::Options {
    const NODES: usize = 10_000;
    serde_saphyr::options! {
        no_schema: true,
        budget: serde_saphyr::budget! { max_events: 2 * NODES, max_nodes: NODES, max_documents: 1 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: NODES },
    }
}

/// A fifth of the life before its end, so that a run that fails can be repeated in time.
fn renewal(end: Timestamp, now: SystemTime) -> Duration {
    life(end, now).mul_f64(0.8).max(RENEWAL_PAUSE)
}

fn life(end: Timestamp, now: SystemTime) -> Duration {
    SystemTime::from(end).duration_since(now).unwrap_or_default()
}

/// The last part of the path: the rest says nothing of use.
pub(crate) fn name(command: &Path) -> String {
    command.file_name().unwrap_or(command.as_os_str()).to_string_lossy().into_owned()
}

/// The server's refusals make a plugin run at most this often.
const REFUSAL_PAUSE: Duration = Duration::from_secs(5);

/// The runs of one plugin.
pub struct PluginRuns {
    spec: PluginSpec,
    limits: PluginLimits,
    /// The credentials of the last successful run.
    issued: Option<Issued>,
    /// Why the last run failed, if it did.
    failure: Option<PluginError>,
    ran_at: Option<Instant>,
    retry_at: Option<Instant>,
    retries: Series,
    /// `None` for a plugin that gives credentials of others.
    metrics: Option<(PluginMetrics, PluginEnd)>,
    /// Since when the certificate is in use that it gave.
    certified_at: Option<Instant>,
}

impl PluginRuns {
    pub(crate) fn new(spec: PluginSpec, metrics: &PluginMetrics) -> Self {
        let metrics = Some((metrics.clone(), metrics.follow()));
        Self { metrics, ..Self::limited(spec, PluginLimits::OWN) }
    }

    /// The runs of a plugin that gives credentials for another server than that of this process.
    pub fn limited(spec: PluginSpec, limits: PluginLimits) -> Self {
        let (first, cap) = (Duration::from_secs(5), Duration::from_secs(60));
        let retries = Series::new(Backoff::doubling(first, cap, Jitter::None));
        Self {
            spec,
            limits,
            issued: None,
            failure: None,
            ran_at: None,
            retry_at: None,
            retries,
            metrics: None,
            certified_at: None,
        }
    }

    /// Starts over when the plugin of the configuration is another one.
    pub(crate) fn adopt(
        runs: &mut Option<Self>,
        spec: Option<&PluginSpec>,
        metrics: &PluginMetrics,
    ) {
        if runs.as_ref().map(|runs| &runs.spec) != spec {
            *runs = spec.cloned().map(|spec| Self::new(spec, metrics));
        }
    }

    /// The credentials for requests.
    pub(crate) fn issued(&self) -> Result<Issued, PluginError> {
        let waiting = || {
            let command = name(&self.spec.command);
            PluginError::Unusable(format!("{command:?} has returned no credentials yet"))
        };
        let failed = || self.failure.clone().unwrap_or_else(waiting);
        self.issued.clone().ok_or_else(failed)
    }

    /// The credentials as they were printed: those of the last good run until they end.
    ///
    /// # Errors
    /// The last run failed, and no credential is left that is valid.
    pub fn printed(&self) -> Result<Printed, PluginError> {
        let issued = self.issued()?;
        match &self.failure {
            Some(error) if issued.ends_at.is_some_and(|end| end <= Instant::now()) => {
                Err(error.clone())
            }
            _ => Ok(issued.printed),
        }
    }

    /// When the credentials of the last good run end, if that was said.
    pub fn ends_at(&self) -> Option<Instant> {
        self.issued.as_ref()?.ends_at
    }

    /// Why the last run failed, if it did.
    pub fn failure(&self) -> Option<&PluginError> {
        self.failure.as_ref()
    }

    /// When the next run is due by itself; `None` when only a refusal of the server tells.
    pub fn due_at(&self, now: Instant) -> Option<Instant> {
        match (&self.issued, self.retry_at) {
            (_, Some(retry_at)) => Some(retry_at),
            (Some(issued), None) => {
                issued.renew_at.or_else(|| Some(self.ran_at? + self.limits.endless?))
            }
            (None, None) => Some(now),
        }
    }

    /// Whether to run it now. `refused`: the server did not know us with what it gave.
    pub fn is_due(&self, refused: bool) -> bool {
        let now = Instant::now();
        let rested = self.ran_at.is_none_or(|at| now >= at + REFUSAL_PAUSE);
        (refused && rested) || self.due_at(now).is_some_and(|at| at <= now)
    }

    /// Runs it. A failure leaves what an earlier run gave.
    pub async fn run(&mut self) {
        self.ran_at = Some(Instant::now());
        match run(&self.spec, &self.limits).await {
            Ok(issued) => {
                self.retries.reset();
                self.measure(&issued);
                (self.issued, self.failure, self.retry_at) = (Some(issued), None, None);
            }
            Err(error) => {
                let pause = self.retries.fail(Instant::now());
                (self.failure, self.retry_at) = (Some(error), Some(Instant::now() + pause));
            }
        }
    }

    fn measure(&mut self, next: &Issued) {
        let Some((metrics, end)) = &self.metrics else { return };
        *end.lock() = next.ends_at;
        let before = self.issued.as_ref().and_then(|issued| issued.certificate.as_ref());
        let is_rotated = before.is_some() && before != next.certificate.as_ref();
        let now = Instant::now();
        if let Some(since) = self.certified_at.filter(|_| is_rotated) {
            metrics.rotated(now.saturating_duration_since(since));
        }
        if before != next.certificate.as_ref() {
            self.certified_at = Some(now);
        }
    }
}

#[cfg(test)]
mod tests;
