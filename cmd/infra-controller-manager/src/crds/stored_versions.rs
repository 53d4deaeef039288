//! [`Migration`]: objects that were stored in another version than their CRD stores now. Each is
//! stored again, unchanged; then `status.storedVersions` of the CRD names one version. Only then can
//! a later release leave the others out, or another program's CRD without them take its place.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use client::{AnswerError, answer};
use http::Request;
use kube::client::Body;
use kube_api::Resource;
use objects::{Dynamic, Error, Merge, Object, ObjectClient, OpenWrites, Part, Why};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::build;

/// After this time each API server stores in the version of a changed CRD. The API server itself
/// waits five seconds for the others before a new CRD is established.
const SETTLES: Duration = Duration::from_secs(10);
/// Time limit of a page of a list.
const LIST: Duration = Duration::from_secs(30);
const PAGE: usize = 500;
/// Between two objects: a migration may take long, and must not take the API server from others.
const PAUSE: Duration = Duration::from_millis(20);

/// Versions in which objects of a CRD are stored that are not among these: an API server refuses a
/// CRD without them.
pub(crate) fn unserved(crd: &Value, manifest: &Value) -> Vec<String> {
    let versions = || manifest["spec"]["versions"].as_array().into_iter().flatten();
    let stored = stored_versions(crd).filter(|stored| versions().all(|it| it["name"] != *stored));
    stored.map(str::to_owned).collect()
}

/// What has to be done about [`unserved`] versions.
pub(crate) fn refusal(unserved: &[String]) -> String {
    let versions = unserved.join(" and ");
    format!(
        "its objects are stored in {versions}, which is not served here; migrate with the upstream release first"
    )
}

/// The version in which a CRD stores, when objects may be stored in others, too.
pub(crate) fn pending(crd: &Value) -> Option<&str> {
    let mut versions = crd["spec"]["versions"].as_array()?.iter();
    let storage = versions.find(|version| version["storage"] == true)?["name"].as_str()?;
    stored_versions(crd).any(|stored| stored != storage).then_some(storage)
}

fn stored_versions(crd: &Value) -> impl Iterator<Item = &str> {
    crd["status"]["storedVersions"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: kube_api::ListMeta,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: ItemMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ItemMetadata {
    #[serde(default)]
    namespace: Option<String>,
    name: String,
    uid: String,
    resource_version: String,
}

/// The migration of the objects of one CRD.
pub(super) struct Migration<'a> {
    pub(super) client: &'a kube::Client,
    pub(super) crds: &'a ObjectClient<Dynamic>,
    pub(super) open: &'a OpenWrites,
    pub(super) stop: &'a CancellationToken,
    /// Time limit of a write.
    pub(super) attempt: Duration,
}

impl Migration<'_> {
    /// Migrates the objects of a CRD, if that is needed. How many there are; `None` when nothing was
    /// needed, or the process stops.
    pub(super) async fn run(&self, crd: &Object<Dynamic>) -> Result<Option<usize>> {
        if pending(&crd.whole()).is_none()
            || self.stop.run_until_cancelled(sleep(SETTLES)).await.is_none()
        {
            return Ok(None);
        }
        // The last write fails if the CRD changes from here on: it may store another version then.
        let name = &*crd.metadata.key;
        let Some(crd) = self.crds.read(name).await? else { return Ok(None) };
        let whole = crd.whole();
        let Some(version) = pending(&whole) else { return Ok(None) };
        let kind = resource(&whole, version).context("cannot read the names of a CRD")?;
        let objects = ObjectClient::<Dynamic>::new(
            self.client.clone(),
            kind.clone(),
            build::PRODUCT,
            self.attempt,
        )
        .keeping_no_answers()
        .noting(self.open);
        let (mut count, mut next) = (0, String::new());
        let mut refused = Vec::new();
        loop {
            let page = self.stop.run_until_cancelled(self.page(&kind, &next)).await;
            let Some(page) = page else { return Ok(None) };
            let page = page
                .with_context(|| format!("cannot list {name} to store its objects in {version}"))?;
            for Item { metadata } in page.items {
                if self.stop.run_until_cancelled(sleep(PAUSE)).await.is_none() {
                    return Ok(None);
                }
                count += 1;
                // One that is refused stops no other one.
                refused.extend(store(&objects, &metadata).await.err());
            }
            next = page.metadata.token.unwrap_or_default().into();
            if next.is_empty() {
                break;
            }
        }
        if let Some(first) = refused.first() {
            let number = refused.len();
            bail!("cannot store {number} of {count} objects of {name} in {version}: {first}");
        }
        let fields = json!({"status": {"storedVersions": [version]}});
        self.crds.merge(name, &Merge { fields, over: whole, part: Part::Status }).await?;
        Ok(Some(count))
    }

    /// A page of a consistent list.
    async fn page(&self, kind: &Resource, next: &str) -> Result<Page, AnswerError> {
        let from: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
        let path = format!("{}?limit={PAGE}&continue={from}", kind.collection_path(None));
        let request = Request::get(path)
            .header("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
        answer(self.client, request.body(Body::empty())?, LIST).await?.decode()
    }
}

/// Stores an object again. An object that was changed since the list is in the new version already.
async fn store(objects: &ObjectClient<Dynamic>, object: &ItemMetadata) -> Result<(), Error> {
    let key = match &object.namespace {
        Some(namespace) => format!("{namespace}/{}", object.name),
        None => object.name.clone(),
    };
    match objects.store_again(&key, &object.uid, &object.resource_version).await {
        Err(Error { why: Why::Conflict { .. } | Why::Gone, .. }) => Ok(()),
        stored => stored,
    }
}

fn resource(crd: &Value, version: &str) -> Option<Resource> {
    let spec = &crd["spec"];
    let text = |field: &Value| Some(Cow::Owned(field.as_str()?.to_owned()));
    Some(Resource {
        group: text(&spec["group"])?,
        version: Cow::Owned(version.to_owned()),
        kind: text(&spec["names"]["kind"])?,
        plural: text(&spec["names"]["plural"])?,
        namespaced: spec["scope"] == "Namespaced",
    })
}
