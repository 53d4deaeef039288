//! [`Cluster`]: what is asked of the API server (reads, and reviews of access, which store nothing),
//! and CRDs of other programs under the names of `config/crd`: what neither `--install-crds` nor an
//! operator may overwrite (rule:crds-of-others-are-not-touched).

use std::time::Duration;

use client::AnswerError;
use http::{Request, StatusCode};
use informer::MANAGED_BY;
use kube::client::Body;
use kube_api::ListMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::report::{Check, Report, Severity};
use crate::build;
use crate::controllers::{ALL, Controllers};
use crate::crds::stored_versions;
use crate::settings::ProcessSettings;

/// For one answer, to its last byte.
const LIMIT: Duration = Duration::from_secs(30);
/// Objects of one page.
const PAGE: usize = 500;

/// The API server, asked as the identity of `--kubeconfig`.
pub(crate) struct Cluster {
    client: kube::Client,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<T>,
}

impl Cluster {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// For reviews of access.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// Whether it answers, and knows who asks.
    pub(super) async fn is_there(&self) -> Result<(), AnswerError> {
        self.get::<Value>("/version").await.map(drop)
    }

    /// An object; `None` when there is no such.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, AnswerError> {
        match self.get(path).await {
            Err(AnswerError::Refused { status: StatusCode::NOT_FOUND, .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// The CRD of this name. The program may list CRDs, and get none by its name.
    pub(super) async fn crd(&self, name: &str) -> Result<Option<Value>, AnswerError> {
        Ok(self.list(&format!("{CRDS}?fieldSelector=metadata.name%3D{name}")).await?.pop())
    }

    /// All objects of a collection, whose path ends with a `?` or a query.
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Vec<T>, AnswerError> {
        let (mut all, mut next) = (Vec::new(), Box::<str>::default());
        loop {
            let from: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
            let page = format!("{path}&limit={PAGE}&continue={from}");
            let Page { metadata, items } = self.get(&page).await?;
            all.extend(items);
            next = metadata.token.unwrap_or_default();
            if next.is_empty() {
                return Ok(all);
            }
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AnswerError> {
        let answer =
            client::answer(&self.client, Request::get(path).body(Body::empty())?, LIMIT).await?;
        answer.decode()
    }
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Looks for the CRDs of the controllers that run.
pub(super) async fn check_crds(cluster: &Cluster, settings: &ProcessSettings, report: &mut Report) {
    let runs = |name: &str| settings.controllers.iter().any(|planned| planned.name == name);
    for (name, manifest) in manifests(ALL, runs) {
        match cluster.crd(&name).await {
            Ok(found) => judge(&name, &manifest, found.as_ref(), settings.install_crds, report),
            Err(error) => {
                let message =
                    format!("cannot check whether another program owns CRD {name}: {error}");
                report.warn(Check::Crds, message, "let the identity of --kubeconfig list CRDs");
            }
        }
    }
}

/// The CRDs of these controllers, by name.
fn manifests(controllers: Controllers, runs: impl Fn(&str) -> bool) -> Vec<(String, Value)> {
    let running = controllers.iter().filter(|controller| runs(controller.name()));
    let manifests = running.flat_map(|controller| controller.crds());
    let named = manifests.filter_map(|manifest| {
        let fields: Value = serde_saphyr::from_str(manifest).ok()?;
        Some((fields["metadata"]["name"].as_str()?.to_owned(), fields))
    });
    named.collect()
}

/// Whether a CRD is of this program.
pub(super) fn is_ours(crd: &Value) -> bool {
    crd["metadata"]["labels"][MANAGED_BY] == build::PRODUCT
}

fn judge(name: &str, manifest: &Value, crd: Option<&Value>, install: bool, report: &mut Report) {
    let Some(crd) = crd else { return };
    let unserved = stored_versions::unserved(crd, manifest);
    if !unserved.is_empty() {
        let message = format!("CRD {name}: {}", stored_versions::refusal(&unserved));
        report.warn(
            Check::Crds,
            message,
            "the API server refuses the CRD of config/crd until then",
        );
    }
    if is_ours(crd) {
        if !unserved.is_empty() {
            return;
        }
        match stored_versions::pending(crd) {
            None => report.note(Check::Crds, format!("CRD {name} is ours")),
            Some(version) => {
                let message =
                    format!("objects of CRD {name} may be stored in older versions than {version}");
                let advice =
                    "start with --install-crds, which stores them again, or see deploy/UPGRADE.md";
                report.warn(Check::Crds, message, advice);
            }
        }
        return;
    }
    let label = format!("{MANAGED_BY}={}", build::PRODUCT);
    let message = format!("CRD {name} belongs to another program: it lacks the label {label}");
    let (severity, advice) = if install {
        let advice = "--install-crds leaves it as it is; turn its controller off by --controllers, \
                      or apply the other CRDs with deploy/crds instead of --install-crds";
        (Severity::Error, advice)
    } else {
        (Severity::Warning, "do not apply the file of config/crd over it; deploy/crds refuses to")
    };
    report.push(severity, Check::Crds, message, advice);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_crd_of_another_program_is_an_error_where_it_would_be_installed_and_a_warning_elsewhere() {
        let judged = |crd: Option<Value>, install| {
            let mut report = Report::default();
            let manifest = json!({"spec": {"versions": [{"name": "v2"}]}});
            let name = "clusters.cluster.x-k8s.io";
            judge(name, &manifest, crd.as_ref(), install, &mut report);
            report.lines().first().map(|line| line.severity)
        };
        let labelled = |owner: &str| Some(json!({"metadata": {"labels": {MANAGED_BY: owner}}}));
        for install in [true, false] {
            assert_eq!(judged(None, install), None);
            assert_eq!(judged(labelled(build::PRODUCT), install), Some(Severity::Note));
        }
        for foreign in [labelled("Helm"), Some(json!({"metadata": {"name": "a"}}))] {
            assert_eq!(judged(foreign.clone(), true), Some(Severity::Error));
            assert_eq!(judged(foreign, false), Some(Severity::Warning));
        }
    }

    #[test]
    fn versions_that_objects_may_be_stored_in_are_told() {
        let judged = |stored: Value| {
            let mut report = Report::default();
            let versions = json!([{"name": "v1"}, {"name": "v2", "storage": true}]);
            let crd = json!({"metadata": {"labels": {MANAGED_BY: build::PRODUCT}},
                "spec": {"versions": versions}, "status": {"storedVersions": stored}});
            judge("a", &crd, Some(&crd), false, &mut report);
            let line = &report.lines()[0];
            (line.severity, line.message.clone())
        };
        let (severity, message) = judged(json!(["v1", "v2"]));
        let expected = "objects of CRD a may be stored in older versions than v2";
        assert_eq!((severity, &*message), (Severity::Warning, expected));
        assert_eq!(judged(json!(["v2"])).0, Severity::Note);
        let (severity, message) = judged(json!(["v0", "v2"]));
        assert_eq!(severity, Severity::Warning);
        assert!(message.ends_with("migrate with the upstream release first"), "{message}");
    }

    #[test]
    fn only_the_crds_of_controllers_that_run_are_looked_for() {
        assert_eq!(manifests(ALL, |_| true).len(), crate::crds::manifests().count());
        let ours = manifests(ALL, |name| name == "node-ipam-controller");
        assert_eq!(ours.len(), 1);
        assert_eq!(ours[0].0, "clustercidrs.networking.x-k8s.io");
    }
}
