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
use super::{Answer, result};
use crate::{Asker, Lookup, StoredObjects, Subject};

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

    /// Whether the API server takes the credential (`rule:credentials-are-accepted`).
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
        let order = Order {
            budget: LIMIT,
            authenticated_read: true,
            next_in: Duration::MAX,
            newest: &|| None,
            reread: None,
        };
        let finding = self.prober.probe(&client, &order).await.report.finding;
        match finding.code() {
            None => result(Ok(())),
            // Nothing is known of the cluster.
            Some(code) if finding.is_void() => Answer::NotChecked(code.label().to_owned()),
            Some(code) => result(Err(code.label())),
        }
    }

    /// Whether the cluster is free to be imported (`rule:clusters-are-imported-once`).
    pub(super) async fn import(
        &self,
        asker: Asker,
        cluster: &Value,
        objects: &StoredObjects,
    ) -> Answer {
        let client = match self.client(asker, cluster, objects).await {
            Ok(client) => Arc::new(client),
            // Others tell what is wrong with its credential.
            Err(Answer::Known(CheckResult::Failed(code))) => return Answer::NotChecked(code),
            Err(answer) => return answer,
        };
        let mut reader = self.prober.reader(&client);
        // Other checks tell of a server that is not there, and of a credential that is no good.
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

    /// A client as health would have it, or what is answered without one. What is missing may come
    /// later, and what may not be used becomes usable by another object: neither is a mistake of
    /// this one.
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
            insecure_without_ca: self.insecure_without_ca,
        };
        let inputs = subject.inputs(&objects.with(cluster), &lookup).await;
        let inputs = inputs.map_err(|error| not_checked(&error))?;
        let inputs = inputs.map_err(|problem| match problem.code() {
            Code::SecretMissing | Code::CredentialRefused | Code::BadEndpoint => {
                not_checked(&problem)
            }
            code => result(Err(code.label())),
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
