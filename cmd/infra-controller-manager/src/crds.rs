//! `--install-crds`: the CRDs of `config/crd`, put into the cluster by a leader
//! (rule:crds-of-others-are-not-touched).

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use backoff::{Backoff, Jitter, Series};
use client::{Clients, Profile};
use fence::Fence;
use model::Resource;
use objects::{Apply, Dynamic, Object, ObjectClient, Part};
use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use crate::build;

const LOGGER: &str = "install-crds";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Annotation of every manifest: the release that it is of.
const RELEASE: &str = "infra-controller-manager/release";
/// Time limit of one attempt of one request.
const ATTEMPT: Duration = Duration::from_secs(5);
/// After a failure, such as a missing right that is granted while the process runs.
const RETRY: Backoff =
    Backoff::doubling(Duration::from_secs(1), Duration::from_secs(60), Jitter::Around(0.5));

const CRDS: Resource = Resource::cluster(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
);
const API_SERVICES: Resource =
    Resource::cluster("apiregistration.k8s.io", "v1", "APIService", "apiservices");

/// What `config/crd` holds.
pub const MANIFESTS: &[&str] = &[
    include_str!("../../../config/crd/core.kubefed.io_kubefedclusters.yaml"),
    include_str!("../../../config/crd/core.kubefed.io_kubefedconfigs.yaml"),
    include_str!("../../../config/crd/platform.tkestack.io_clustercredentials.yaml"),
    include_str!("../../../config/crd/platform.tkestack.io_clusters.yaml"),
    include_str!("../../../config/crd/platform.tkestack.io_machines.yaml"),
];

/// Installs every CRD, each tried until it is as it should be or is found to be of others. Ends
/// with the guard. Controllers need not wait: a kind that is not served leaves them dormant.
///
/// # Errors
/// The client cannot be made.
pub(crate) fn install(clients: &Clients, fence: Fence) -> Result<DropGuard> {
    let profile = Profile { fence: Some(fence), ..Profile::root(LOGGER) };
    let client = clients.build(profile)?;
    let installer = Installer {
        crds: ObjectClient::new(client.clone(), CRDS, build::PRODUCT, ATTEMPT),
        api_services: ObjectClient::new(client, API_SERVICES, build::PRODUCT, ATTEMPT),
    };
    let stop = CancellationToken::new();
    tokio::spawn(stop.clone().run_until_cancelled_owned(installer.run()));
    Ok(stop.drop_guard())
}

struct Installer {
    crds: ObjectClient<Dynamic>,
    api_services: ObjectClient<Dynamic>,
}

/// What became of a CRD.
#[derive(Debug)]
enum Installed {
    New,
    AsItShouldBe,
    /// It belongs to others, or to a newer release of this program, for this reason.
    NotOurs(String),
}

impl Installer {
    async fn run(self) {
        for manifest in MANIFESTS {
            self.settle(manifest).await;
        }
    }

    async fn settle(&self, manifest: &str) {
        let mut failures = Series::new(RETRY);
        loop {
            match self.put(manifest).await {
                Ok((crd, Installed::New)) => info!(logger = LOGGER, crd, "CRD installed"),
                Ok((crd, Installed::AsItShouldBe)) => {
                    info!(logger = LOGGER, crd, "CRD is up to date");
                }
                Ok((crd, Installed::NotOurs(reason))) => {
                    warn!(logger = LOGGER, crd, reason, "CRD not installed");
                }
                Err(error) => {
                    let wait = failures.fail(Instant::now());
                    warn!(
                        logger = LOGGER,
                        err = format!("{error:#}"),
                        ?wait,
                        "Cannot install a CRD"
                    );
                    tokio::time::sleep(wait).await;
                    continue;
                }
            }
            return;
        }
    }

    async fn put(&self, manifest: &str) -> Result<(String, Installed)> {
        let fields: Value = serde_saphyr::from_str(manifest).context("cannot read a manifest")?;
        let Some(name) = fields["metadata"]["name"].as_str().map(str::to_owned) else {
            bail!("cannot install a manifest without a name");
        };
        if let Some(service) = self.aggregated(&fields).await? {
            let reason = format!("the API service {service} is of an aggregated API server");
            return Ok((name, Installed::NotOurs(reason)));
        }
        let (uid, installed) = match self.crds.read(&name).await? {
            None => (None, Installed::New),
            Some(crd) if is_ours(&crd) => {
                if let Some(release) = newer_release(&crd) {
                    let reason = format!("it is of the newer release {release}");
                    return Ok((name, Installed::NotOurs(reason)));
                }
                (Some(crd.metadata.uid.to_string()), Installed::AsItShouldBe)
            }
            Some(_) => {
                let label = format!("{MANAGED_BY}={}", build::PRODUCT);
                let reason = format!("it is there without the label {label}");
                return Ok((name, Installed::NotOurs(reason)));
            }
        };
        // Without force where there was none: one that others make meanwhile is a conflict.
        let apply = Apply { fields, force: uid.is_some(), uid, part: Part::Main };
        self.crds.apply(&name, &apply).await?;
        Ok((name, installed))
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

/// While a release is rolled out, or rolled back, an older leader must not take fields away that a
/// newer one writes (rule:newer-crds-stay).
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
mod tests {
    use super::*;

    #[test]
    fn every_manifest_of_config_crd_is_installed_and_labelled() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/crd");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), MANIFESTS.len());
        for manifest in MANIFESTS {
            let fields: Value = serde_saphyr::from_str(manifest).unwrap();
            assert_eq!(fields["metadata"]["labels"][MANAGED_BY], build::PRODUCT);
            assert_eq!(fields["metadata"]["annotations"][RELEASE], build::INFO.version);
            assert!(fields["spec"]["versions"][0]["schema"].is_object());
        }
    }

    /// rule:newer-crds-stay
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
