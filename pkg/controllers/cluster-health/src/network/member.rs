//! Asks the API server of a Cluster, by the credential that it names.

use std::sync::Arc;
use std::time::Duration;

use health::Code;
use http::StatusCode;
use probe::{ConnectionLimits, Meters, Names, Order, Prober, Resolver};
use prometheus::Registry;
use serde::Deserialize;
use serde_json::{Value, json};
use validation::CheckResult;

use super::NetworkOptions;
use crate::{StoredObjects, Subject};

/// What TKEStack leaves in a cluster that it has imported.
const MARK: &str = "/api/v1/namespaces/kube-system/configmaps/tke";
/// The oldest version that is imported.
const OLDEST: (u64, u64) = (1, 10);
const MOST: usize = 256 * 1024;
/// Longest time of one question.
const LIMIT: Duration = Duration::from_secs(5);
/// A Cluster whose name the API server makes.
const UNNAMED: &str = "unnamed";

pub(super) struct Members {
    prober: Prober,
    namespace: String,
}

impl Members {
    pub(super) fn new(options: &NetworkOptions) -> Result<Self, prometheus::Error> {
        let limits = ConnectionLimits { max_age: Duration::ZERO, ..ConnectionLimits::default() };
        let resolver = Resolver::new(Names::default(), options.policy.clone());
        let prober = Prober::new(Meters::new(&Registry::new())?, limits, resolver);
        let namespace = options.secret_namespace.clone().unwrap_or_default();
        Ok(Self { prober, namespace })
    }

    /// Whether the API server takes the credential (`rule:credentials-are-accepted`).
    pub(super) async fn credential(
        &self,
        cluster: &Value,
        objects: &StoredObjects,
    ) -> Option<CheckResult> {
        let client = match self.client(cluster, objects).await? {
            Ok(client) => Arc::new(client),
            Err(code) => return Some(failed(code)),
        };
        let order = Order {
            budget: LIMIT,
            authenticated_read: true,
            next_in: Duration::MAX,
            newest: &|| None,
            reread: None,
        };
        let finding = self.prober.probe(&client, &order).await.report.finding;
        match finding.code() {
            None => Some(CheckResult::Passed),
            // Nothing is known of the cluster.
            Some(_) if finding.is_void() => None,
            Some(code) => Some(failed(code.label())),
        }
    }

    /// Whether the cluster is free to be imported (`rule:clusters-are-imported-once`).
    pub(super) async fn import(
        &self,
        cluster: &Value,
        objects: &StoredObjects,
    ) -> Option<CheckResult> {
        let client = match self.client(cluster, objects).await? {
            Ok(client) => Arc::new(client),
            // It may be given its credential later, and others tell what is wrong with that.
            Err(_) => return None,
        };
        let mut reader = self.prober.reader(&client);
        match reader.get(MARK, MOST, LIMIT).await.map(|read| read.status) {
            Ok(StatusCode::NOT_FOUND) => {}
            Ok(StatusCode::OK) => return Some(failed("imported-already")),
            // Other checks tell of a server that is not there, and of a credential that is no good.
            Ok(_) | Err(_) => return None,
        }
        match reader.get("/version", MOST, LIMIT).await {
            Ok(read) if is_new_enough(&read.body) => Some(CheckResult::Passed),
            Ok(_) => Some(failed("version-too-old")),
            Err(_) => None,
        }
    }

    /// A client as health would have it; `None` when that could not be read.
    async fn client(
        &self,
        cluster: &Value,
        objects: &StoredObjects,
    ) -> Option<Result<probe::Client, &'static str>> {
        let mut cluster = cluster.clone();
        if cluster["metadata"]["name"].as_str().is_none_or(str::is_empty) {
            cluster["metadata"]["name"] = json!(UNNAMED);
        }
        let name = cluster["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let subject: Subject = format!("cluster/{name}").parse().ok()?;
        let inputs = match subject.inputs(&objects.with(cluster), &self.namespace).await.ok()? {
            Ok(inputs) => inputs,
            // Nobody was asked whether there is one.
            Err(problem) if problem.code() == Code::SecretMissing && objects.api().is_none() => {
                return None;
            }
            Err(problem) => return Some(Err(problem.code().label())),
        };
        Some(self.prober.client(&inputs).map_err(|problem| problem.code().label()))
    }
}

fn failed(code: &str) -> CheckResult {
    CheckResult::Failed(code.to_owned())
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

#[cfg(test)]
mod tests {
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
