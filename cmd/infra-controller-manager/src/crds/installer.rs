//! [`Installer`]: reads what there is of one CRD, and applies it unless it is not ours to change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use informer::MANAGED_BY;
use kube_api::Resource;
use manager::CrdLabel;
use objects::{Apply, Dynamic, Object, ObjectClient, OpenWrites, Part};
use resilience::{Backoff, Jitter, Series};
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::crd_label;
use super::release::newer_release;
use crate::build;

pub(super) const LOGGER: &str = "install-crds";
/// Time limit of one attempt of one request.
pub(super) const ATTEMPT: Duration = Duration::from_secs(5);
/// After a failure, such as a missing right that is granted while the process runs.
const RETRY: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(60), Jitter::Around(0.5));

const API_SERVICES: Resource =
    Resource::cluster("apiregistration.k8s.io", "v1", "APIService", "apiservices");

pub(super) struct Installer {
    crds: ObjectClient<Dynamic>,
    api_services: ObjectClient<Dynamic>,
    labels: Vec<CrdLabel>,
}

/// What is to become of a CRD.
enum Verdict {
    Install,
    /// It is ours and has this UID.
    Update(String),
    /// For this reason.
    Leave(String),
}

impl Installer {
    /// Its writes of unknown outcome are noted in `open`.
    pub(super) fn new(client: kube::Client, labels: Vec<CrdLabel>, open: &OpenWrites) -> Self {
        let crds =
            ObjectClient::new(client.clone(), Resource::CRDS, build::PRODUCT, ATTEMPT).noting(open);
        let api_services = ObjectClient::new(client, API_SERVICES, build::PRODUCT, ATTEMPT);
        Self { crds, api_services, labels }
    }

    /// Tries until nothing is left to do for it, or it is asked to stop: it sends nothing more
    /// then, and waits for the answer of what it sent.
    pub(super) async fn settle(self: Arc<Self>, manifest: &'static str, stop: CancellationToken) {
        let mut failures = Series::new(RETRY);
        while let Err(error) = self.put(manifest, &stop).await {
            let wait = failures.fail(Instant::now());
            let err = format!("{error:#}");
            warn!(logger = LOGGER, err, ?wait, "Cannot install a CRD");
            if stop.run_until_cancelled(sleep(wait)).await.is_none() {
                return;
            }
        }
    }

    async fn put(&self, manifest: &str, stop: &CancellationToken) -> Result<()> {
        let mut fields: Value =
            serde_saphyr::from_str(manifest).context("cannot read a manifest")?;
        let label = crd_label::put(&mut fields, &self.labels);
        let Some(crd) = fields["metadata"]["name"].as_str().map(str::to_owned) else {
            bail!("cannot install a manifest without a name");
        };
        let Some(verdict) = stop.run_until_cancelled(self.judge(&crd, &fields)).await else {
            return Ok(());
        };
        let (uid, told) = match verdict? {
            Verdict::Leave(reason) => {
                warn!(logger = LOGGER, crd, reason, "CRD not installed");
                return Ok(());
            }
            Verdict::Install => (None, "CRD installed"),
            Verdict::Update(uid) => (Some(uid), "CRD is up to date"),
        };
        // Without force where there was none: one that others make meanwhile is a conflict.
        let apply = Apply { fields, force: uid.is_some(), uid, part: Part::Main };
        let applied = self.crds.apply(&crd, &apply).await?;
        if let Some(CrdLabel { other, .. }) = label {
            // Another field manager may own the other label, so an apply leaves it.
            self.crds
                .change(&applied, |_, draft| drop(draft.metadata.labels.remove(other)))
                .await?;
        }
        info!(logger = LOGGER, crd, "{told}");
        Ok(())
    }

    async fn judge(&self, name: &str, fields: &Value) -> Result<Verdict> {
        if let Some(service) = self.aggregated(fields).await? {
            let reason = format!("the API service {service} is of an aggregated API server");
            return Ok(Verdict::Leave(reason));
        }
        let Some(crd) = self.crds.read(name).await? else { return Ok(Verdict::Install) };
        if !is_ours(&crd) {
            let label = format!("{MANAGED_BY}={}", build::PRODUCT);
            return Ok(Verdict::Leave(format!("it is there without the label {label}")));
        }
        if let Some(release) = newer_release(&crd) {
            return Ok(Verdict::Leave(format!("it is of the newer release {release}")));
        }
        Ok(Verdict::Update(crd.metadata.uid.to_string()))
    }

    /// Name of the API service by which another server serves the CRD's version.
    async fn aggregated(&self, crd: &Value) -> Result<Option<String>> {
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
            let name = format!("{}.{group}", version["name"].as_str().unwrap_or_default());
            let found = self.api_services.read(&name).await?;
            // The API server makes one without a service for each CRD.
            let of_another = |service: &Object<Dynamic>| {
                service.body.get("spec").is_some_and(|spec| spec["service"].is_object())
            };
            if found.is_some_and(|service| of_another(&service)) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }
}

fn is_ours(crd: &Object<Dynamic>) -> bool {
    crd.metadata.labels.get(MANAGED_BY).is_some_and(|label| label == build::PRODUCT)
}
