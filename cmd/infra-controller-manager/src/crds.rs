//! `--install-crds`: a leader installs the CRDs of `config/crd`
//! (rule:crds-of-others-are-not-touched), and has objects of older versions stored again.

pub(crate) mod stored_versions;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use client::{Clients, Profile, applicable_for};
use informer::MANAGED_BY;
use kube_api::Resource;
use manager::CrdLabel;
use objects::{Apply, Dynamic, Object, ObjectClient, OpenWrites, Part};
use resilience::{Backoff, Fence, Jitter, Series, task};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::build;
use super::controllers::ALL;
use stored_versions::Migration;

/// The CRDs of all controllers.
pub fn manifests() -> impl Iterator<Item = &'static str> {
    ALL.iter().flat_map(|controller| controller.crds()).copied()
}

/// The installation under way. Dropped, it is cut off, and what it sent may still be carried out.
pub(crate) struct Installing {
    stop: CancellationToken,
    /// One for each CRD: none waits for another one.
    crds: JoinSet<()>,
    open: OpenWrites,
}

/// Begins to install every CRD. Each is tried until it is up to date or found to belong to another
/// program. Controllers need not wait: they are dormant while their kind is not served. `labels` are the
/// labels of CRDs that flags choose.
pub(crate) fn install(
    clients: &Clients,
    fence: Fence,
    labels: Vec<CrdLabel>,
) -> Result<Installing> {
    let profile = Profile { fence: Some(fence), ..Profile::root(LOGGER) };
    Ok(Installing::start(clients.build(profile)?, labels))
}

impl Installing {
    fn start(client: kube::Client, labels: Vec<CrdLabel>) -> Self {
        let (stop, open) = (CancellationToken::new(), OpenWrites::default());
        let installer = Arc::new(Installer::new(client, labels, &open));
        let mut crds = JoinSet::new();
        for manifest in manifests() {
            crds.spawn(task(Arc::clone(&installer).settle(manifest, stop.clone())));
        }
        Self { stop, crds, open }
    }

    /// Sends nothing more, and waits until the server cannot carry out anything of it any more: the
    /// lease may then be released.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        if !timeout(ATTEMPT, self.ended()).await.unwrap_or(false) {
            warn!(
                logger = LOGGER,
                "The installation of the CRDs did not stop in time and is cancelled"
            );
            self.crds.shutdown().await;
            sleep(applicable_for(ATTEMPT)).await;
        }
        self.open.settled().await;
    }

    /// Whether all have ended by themselves.
    async fn ended(&mut self) -> bool {
        let mut orderly = true;
        while let Some(ended) = self.crds.join_next().await {
            orderly &= ended.is_ok();
        }
        orderly
    }
}

const LOGGER: &str = "install-crds";
/// Time limit of one attempt of one request.
const ATTEMPT: Duration = Duration::from_secs(5);
/// After a failure, such as a missing right that is granted while the process runs.
const RETRY: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(60), Jitter::Around(0.5));

/// Between runs over all objects of a CRD.
const STORE_RETRY: Backoff =
    Backoff::doubling(Duration::from_secs(60), Duration::from_secs(600), Jitter::Around(0.5));

const API_SERVICES: Resource =
    Resource::cluster("apiregistration.k8s.io", "v1", "APIService", "apiservices");

struct Installer {
    client: kube::Client,
    crds: ObjectClient<Dynamic>,
    api_services: ObjectClient<Dynamic>,
    labels: Vec<CrdLabel>,
    open: OpenWrites,
}

/// The decision about one CRD.
enum CrdAction {
    Install,
    /// Our CRD with this UID.
    Update(String),
    /// Do not touch a CRD that is newer or belongs to another program; the text says why.
    Leave(String),
}

impl Installer {
    /// `open` collects writes of unknown outcome.
    fn new(client: kube::Client, labels: Vec<CrdLabel>, open: &OpenWrites) -> Self {
        let crds =
            ObjectClient::new(client.clone(), Resource::CRDS, build::PRODUCT, ATTEMPT).noting(open);
        let api_services = ObjectClient::new(client.clone(), API_SERVICES, build::PRODUCT, ATTEMPT);
        Self { client, crds, api_services, labels, open: open.clone() }
    }

    /// Tries until nothing is left to do for it, or it is asked to stop: it sends nothing more
    /// then, and waits for the answer of what it sent.
    async fn settle(self: Arc<Self>, manifest: &'static str, stop: CancellationToken) {
        let mut failures = Series::new(RETRY);
        let crd = loop {
            match self.put(manifest, &stop).await {
                Ok(Some(crd)) => break crd,
                Ok(None) => return,
                Err(error) => {
                    if !again("Cannot install a CRD", &error, &mut failures, &stop).await {
                        return;
                    }
                }
            }
        };
        let mut failures = Series::new(STORE_RETRY);
        while let Err(error) = self.store_again(&crd, &stop).await {
            let told = "Cannot store the objects of a CRD again, which config/rbac/install-crds.yaml permits";
            if !again(told, &error, &mut failures, &stop).await {
                return;
            }
        }
    }

    /// The CRD as it was installed; `None` when that is left alone.
    async fn put(
        &self,
        manifest: &str,
        stop: &CancellationToken,
    ) -> Result<Option<Arc<Object<Dynamic>>>> {
        let mut fields: Value =
            serde_saphyr::from_str(manifest).context("cannot read a manifest")?;
        let label = put_label(&mut fields, &self.labels);
        let Some(crd) = fields["metadata"]["name"].as_str().map(str::to_owned) else {
            bail!("cannot install a manifest without a name");
        };
        let Some(verdict) = stop.run_until_cancelled(self.judge(&crd, &fields)).await else {
            return Ok(None);
        };
        let (uid, told) = match verdict? {
            CrdAction::Leave(reason) => {
                warn!(logger = LOGGER, crd, reason, "CRD not installed");
                return Ok(None);
            }
            CrdAction::Install => (None, "CRD installed"),
            CrdAction::Update(uid) => (Some(uid), "CRD is up to date"),
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
        Ok(Some(applied))
    }

    async fn store_again(&self, crd: &Object<Dynamic>, stop: &CancellationToken) -> Result<()> {
        let (client, crds, open) = (&self.client, &self.crds, &self.open);
        let migration = Migration { client, crds, open, stop, attempt: ATTEMPT };
        if let Some(objects) = migration.run(crd).await? {
            let crd = &*crd.metadata.key;
            info!(logger = LOGGER, crd, objects, "Objects of the CRD are stored in one version");
        }
        Ok(())
    }

    async fn judge(&self, name: &str, fields: &Value) -> Result<CrdAction> {
        if let Some(service) = self.aggregated(fields).await? {
            let reason = format!("the APIService {service} belongs to an aggregated API server");
            return Ok(CrdAction::Leave(reason));
        }
        let Some(crd) = self.crds.read(name).await? else { return Ok(CrdAction::Install) };
        if !is_ours(&crd) {
            let label = format!("{MANAGED_BY}={}", build::PRODUCT);
            return Ok(CrdAction::Leave(format!("it exists without the label {label}")));
        }
        if let Some(release) = newer_release(&crd) {
            return Ok(CrdAction::Leave(format!("the newer release {release} installed it")));
        }
        let unserved = stored_versions::unserved(&crd.whole(), fields);
        if !unserved.is_empty() {
            return Ok(CrdAction::Leave(stored_versions::refusal(&unserved)));
        }
        Ok(CrdAction::Update(crd.metadata.uid.to_string()))
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

/// Logs a failure and waits for the next attempt; false at a stop.
async fn again(
    told: &str,
    error: &anyhow::Error,
    failures: &mut Series,
    stop: &CancellationToken,
) -> bool {
    let wait = failures.fail(Instant::now());
    let err = format!("{error:#}");
    warn!(logger = LOGGER, err, ?wait, "{told}");
    stop.run_until_cancelled(sleep(wait)).await.is_some()
}

fn is_ours(crd: &Object<Dynamic>) -> bool {
    crd.metadata.labels.get(MANAGED_BY).is_some_and(|label| label == build::PRODUCT)
}

/// Puts the wanted label on a manifest that has it or the one that it excludes. The label that was put.
fn put_label<'a>(fields: &mut Value, wanted: &'a [CrdLabel]) -> Option<&'a CrdLabel> {
    let labels = fields.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)?;
    let is_on =
        |label: &&CrdLabel| [&label.key, &label.other].iter().any(|it| labels.contains_key(*it));
    let label = wanted.iter().find(is_on)?;
    labels.remove(&label.other);
    labels.insert(label.key.clone(), json!(label.value));
    Some(label)
}

/// Annotation of every manifest: the release that it is of.
const RELEASE: &str = "infra-controller-manager/release";

/// While a release is rolled out, or rolled back, an older leader must not take fields away that a
/// newer one writes (rule:crds-of-others-are-not-touched).
fn newer_release(crd: &Object<Dynamic>) -> Option<&str> {
    let release = crd.metadata.annotations.get(RELEASE)?;
    is_newer(release, build::INFO.version).then_some(release)
}

/// By major, minor and patch. What cannot be read is no release.
fn is_newer(release: &str, than: &str) -> bool {
    numbers(release).is_some_and(|release| Some(release) > numbers(than))
}

fn numbers(release: &str) -> Option<[u64; 3]> {
    let core = release.trim_start_matches('v').split(['-', '+']).next()?;
    let parts: Vec<u64> = core.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod release_tests {
    use super::*;

    /// rule:crds-of-others-are-not-touched
    #[test]
    fn releases_are_compared_by_number() {
        // (release of the CRD, of the program, whether the CRD is newer)
        let rows = [
            ("0.2.0", "0.1.0", true),
            ("0.10.0", "0.9.9", true),
            ("v1.0.0", "0.99.0", true),
            ("0.1.1-rc.1", "0.1.0", true),
            ("0.1.0", "0.1.0", false),
            ("0.1.0+build", "0.1.0", false),
            ("0.0.9", "0.1.0", false),
            ("tomorrow", "0.1.0", false),
            ("1.0", "0.1.0", false),
            ("", "0.1.0", false),
        ];
        for (crd, program, newer) in rows {
            assert_eq!(is_newer(crd, program), newer, "{crd} {program}");
        }
    }
}

#[cfg(test)]
mod tests;
