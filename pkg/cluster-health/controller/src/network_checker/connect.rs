//! The checks of the network: a TCP connection within its time, SSH, and whether the API server of a
//! Cluster takes a credential and is free to be imported.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use health::Code;
use http::StatusCode;
use probe::{ConnectionLimits, Meters, Names, Order, Prober, Resolver};
use prometheus::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use transport::{DialPolicy, Unresolved, Way};
use validation::CheckResult;

use crate::secret_data::ReadError;
use crate::{Asker, Lookup, StoredObjects, Subject};

/// Longest time for all addresses of a target together.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// Opens a connection to `host:port`, IPv6 in brackets.
///
/// # Errors
/// A code.
pub(super) async fn open(
    target: &str,
    way: Way<'_>,
    limit: Duration,
) -> Result<TcpStream, &'static str> {
    timeout(limit, any(target, way)).await.unwrap_or(Err("connect-timeout"))
}

/// The first of its addresses that may be dialled and takes a connection.
async fn any(target: &str, way: Way<'_>) -> Result<TcpStream, &'static str> {
    let (host, port) = target.rsplit_once(':').ok_or("bad-endpoint")?;
    let port: u16 = port.parse().map_err(|_| "bad-endpoint")?;
    let addresses = way.resolver.addresses(host, port, way.asker).await;
    let addresses = addresses.map_err(|error| match error {
        Unresolved::Unknown(_) => "dns",
        Unresolved::Denied => Code::AddressDenied.label(),
    })?;
    let mut code = "dns";
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => code = code_of(error.kind()),
        }
    }
    Err(code)
}

fn code_of(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "connect-refused",
        io::ErrorKind::TimedOut => "connect-timeout",
        io::ErrorKind::ConnectionReset => "reset",
        _ => "connect-failed",
    }
}

/// Longest time of the whole check for SSH.
const SSH_LIMIT: Duration = Duration::from_secs(3);
/// Other lines may come before that of the version (RFC 4253, 4.2).
const READ: u64 = 8 * 1024;
const VERSIONS: [&[u8]; 2] = [b"SSH-2.0-", b"SSH-1.99-"];

/// Checks that SSH answers at `IP:port`.
///
/// # Errors
/// A code.
pub(super) async fn check_ssh(target: &str, way: Way<'_>) -> Result<(), &'static str> {
    let asked = async {
        let stream = open(target, way, SSH_LIMIT).await?;
        banner(stream).await
    };
    timeout(SSH_LIMIT, asked).await.unwrap_or(Err("timeout"))
}

/// Reads to the line of the version.
async fn banner(stream: impl AsyncRead + Unpin) -> Result<(), &'static str> {
    let (mut stream, mut seen) = (stream.take(READ), Vec::new());
    loop {
        let before = seen.len();
        let read = stream.read_buf(&mut seen).await;
        let is_there = |version: &&[u8]| {
            seen.starts_with(version)
                || seen.windows(version.len() + 1).any(|at| at[0] == b'\n' && at[1..] == **version)
        };
        if VERSIONS.iter().any(is_there) {
            return Ok(());
        }
        match read {
            Ok(_) if seen.len() > before => {}
            Ok(_) => return Err("no-ssh-banner"),
            Err(_) => return Err("reset"),
        }
    }
}

/// The ConfigMap that TKEStack creates in a cluster when it imports it.
const MARK: &str = "/api/v1/namespaces/kube-system/configmaps/tke";
/// The oldest version that is imported.
const OLDEST: (u64, u64) = (1, 10);
const MOST: usize = 256 * 1024;
/// Longest time of one question.
const MEMBER_LIMIT: Duration = Duration::from_secs(5);
/// A Cluster whose name the API server makes.
const UNNAMED: &str = "unnamed";

pub(super) struct Members {
    prober: Prober,
    namespace: Option<String>,
    insecure_without_ca: bool,
}

impl Members {
    pub(super) fn new(options: &NetworkOptions) -> Result<Self, prometheus::Error> {
        let limits = ConnectionLimits { max_age: Duration::ZERO, ..ConnectionLimits::default() };
        let resolver = Resolver::new(Names::default(), options.policy.clone());
        let prober = Prober::new(Meters::new(&Registry::new())?, limits, resolver);
        let (namespace, insecure_without_ca) =
            (options.secret_namespace.clone(), options.insecure_without_ca);
        Ok(Self { prober, namespace, insecure_without_ca })
    }

    /// Whether the API server takes the credential.
    pub(super) async fn credential(
        &self,
        asker: Asker,
        cluster: &Value,
        objects: &StoredObjects,
    ) -> Answer {
        let client = match self.client(asker, cluster, objects).await {
            Ok(client) => Arc::new(client),
            Err(answer) => return answer,
        };
        let order = Order::once(MEMBER_LIMIT, true);
        let finding = self.prober.probe(&client, &order).await.report.finding;
        match finding.code() {
            None => result(Ok(())),
            // Nothing is known of the cluster.
            Some(code) if finding.is_void() => Answer::NotChecked(code.label().to_owned()),
            Some(code) => result(Err(code.label())),
        }
    }

    /// Whether the cluster is free to be imported.
    pub(super) async fn import(
        &self,
        asker: Asker,
        cluster: &Value,
        objects: &StoredObjects,
    ) -> Answer {
        let client = match self.client(asker, cluster, objects).await {
            Ok(client) => Arc::new(client),
            // Other checks report mistakes of its credential.
            Err(Answer::Known(CheckResult::Failed(code))) => return Answer::NotChecked(code),
            Err(answer) => return answer,
        };
        let mut reader = self.prober.reader(&client);
        // Other checks report an unreachable server and a refused credential.
        let unknown = || Answer::NotChecked("the cluster did not say".to_owned());
        match reader.get(MARK, MOST, LIMIT).await.map(|read| read.status) {
            Ok(StatusCode::NOT_FOUND) => {}
            Ok(StatusCode::OK) => return result(Err("imported-already")),
            Ok(_) | Err(_) => return unknown(),
        }
        match reader.get("/version", MOST, LIMIT).await {
            Ok(read) if is_new_enough(&read.body) => result(Ok(())),
            Ok(_) => result(Err("version-too-old")),
            Err(_) => unknown(),
        }
    }

    /// The client that probes would use, or the answer without it. A missing or unusable object is "not
    /// checked" and no failure: another object can still correct it.
    async fn client(
        &self,
        asker: Asker,
        cluster: &Value,
        objects: &StoredObjects,
    ) -> Result<probe::Client, Answer> {
        let not_checked = |why: &dyn std::fmt::Display| Answer::NotChecked(why.to_string());
        let mut cluster = cluster.clone();
        if cluster["metadata"]["name"].as_str().is_none_or(str::is_empty) {
            cluster["metadata"]["name"] = json!(UNNAMED);
        }
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let subject = format!("cluster/{name}").parse::<Subject>();
        let subject = subject.map_err(|error| not_checked(&error))?;
        let lookup = Lookup {
            asker,
            secret_namespace: self.namespace.clone(),
            profile_secret_namespaces: Vec::new(),
            insecure_without_ca: self.insecure_without_ca,
        };
        let inputs = subject.inputs(&objects.with(cluster), &lookup).await;
        let may_be_mended = [Code::SecretMissing, Code::CredentialRefused, Code::BadEndpoint];
        let inputs = inputs.map_err(|error| match error {
            ReadError::Problem(problem) if !may_be_mended.contains(&problem.code()) => {
                result(Err(problem.code().label()))
            }
            error => not_checked(&error),
        })?;
        self.prober.client(&inputs).map_err(|problem| result(Err(problem.code().label())))
    }
}

fn is_new_enough(version: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Version {
        major: String,
        minor: String,
    }
    let version: Version = serde_json::from_slice(version).unwrap_or_default();
    let number = |text: &str| {
        let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
        text.get(..end).and_then(|digits| digits.parse::<u64>().ok())
    };
    match (number(&version.major), number(&version.minor)) {
        (Some(major), Some(minor)) => (major, minor) >= OLDEST,
        _ => false,
    }
}

/// The answer to one question.
pub(super) enum Answer {
    Known(CheckResult),
    /// The question was not checked, for this reason.
    NotChecked(String),
    Busy,
}

/// The answer in the form that the rules of `validation` read.
pub(super) fn result(found: Result<(), &str>) -> Answer {
    Answer::Known(match found {
        Ok(()) => CheckResult::Passed,
        Err(code) => CheckResult::Failed(code.to_owned()),
    })
}

/// The checks that are made, and how.
#[derive(Clone, Debug)]
pub(crate) struct NetworkOptions {
    /// Whether machines are asked for SSH.
    pub ssh: bool,
    /// Whether to check that a cluster is not imported elsewhere.
    pub import: bool,
    /// The addresses that may be dialled.
    pub policy: DialPolicy,
    /// Whether certificates of TKEStack's Clusters without a CA are not checked.
    pub insecure_without_ca: bool,
    /// The only namespace of the Secrets that ClusterCredentials refer to, if there is one.
    pub secret_namespace: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_server_with_an_ssh_banner_is_an_ssh_server() {
        for (said, expected) in [
            (&b"SSH-2.0-OpenSSH_9.9\r\n"[..], Ok(())),
            (b"SSH-1.99-x", Ok(())),
            (b"welcome\r\nto you\r\nSSH-2.0-x\r\n", Ok(())),
            (b"SSH-1.5-old\r\n", Err("no-ssh-banner")),
            (b"say SSH-2.0-x\r\n", Err("no-ssh-banner")),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", Err("no-ssh-banner")),
            (b"", Err("no-ssh-banner")),
        ] {
            assert_eq!(banner(said).await, expected, "{}", String::from_utf8_lossy(said));
        }
        let endless = tokio::io::repeat(b'\n');
        assert_eq!(banner(endless).await, Err("no-ssh-banner"), "it is read to a limit");
    }
}

#[cfg(test)]
mod member_tests {
    use super::*;

    #[test]
    fn versions_from_1_10_on_are_imported() {
        for (major, minor, expected) in
            [("1", "10", true), ("1", "36+", true), ("2", "0", true), ("1", "9", false)]
        {
            let body = json!({"major": major, "minor": minor}).to_string();
            assert_eq!(is_new_enough(body.as_bytes()), expected, "{major}.{minor}");
        }
        for odd in ["", "{}", "[]", r#"{"major": "x", "minor": "1"}"#] {
            assert!(!is_new_enough(odd.as_bytes()), "{odd}");
        }
    }
}
