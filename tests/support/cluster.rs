//! Hands out the control planes of a test process, one test at a time each.
//!
//! At most two are started, when first needed, and reused: a start costs seconds, a test often
//! less. What a test left behind is deleted when the next one takes over, so a failed test's
//! objects can't hide in a shared name space, and names need no prefixes.

use std::fmt::Debug;
use std::ops::Deref;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::control_plane::{ControlPlane, Options};
use crate::kubectl::Shell;

/// Maximum of clusters: the number of tests that run at once on a machine of two cores.
const AT_MOST: usize = 2;

static TURNS: Semaphore = Semaphore::const_new(AT_MOST);
static IDLE: Mutex<Vec<ControlPlane>> = Mutex::new(Vec::new());

/// Exclusive use of a control plane without Nodes, Events, work Leases, or Pods and ServiceAccounts
/// in `kube-system`. Given back on drop.
pub struct Cluster {
    plane: Option<ControlPlane>,
    _turn: SemaphorePermit<'static>,
}

/// Waits for a free control plane, cleans it, and lends it. A test holds one at a time: two tests
/// that each hold one and wait for a second would wait without end.
pub async fn cluster() -> Cluster {
    let turn = TURNS.acquire().await.expect("the semaphore is never closed");
    let idle = IDLE.lock().pop();
    let plane = match idle {
        Some(plane) => {
            clean(&plane.client().await).await.expect("the last test's objects can be deleted");
            plane
        }
        None => {
            let plane = ControlPlane::start(Options::default()).await;
            let plane = plane.expect("a control plane starts");
            let records = "apply -f config/rbac/node-ipam-records.yaml";
            Shell::new(plane.admin_kubeconfig()).run(records);
            plane
        }
    };
    Cluster { plane: Some(plane), _turn: turn }
}

impl Deref for Cluster {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.plane.as_ref().expect("present until dropped")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(plane) = self.plane.take()
            && plane.is_running()
        {
            IDLE.lock().push(plane);
        }
    }
}

async fn clean(client: &Client) -> kube::Result<()> {
    let (delete, list) = (DeleteParams::default(), ListParams::default());
    delete_all(&Api::<Node>::all(client.clone())).await?;
    for namespace in ["default", "kube-system"] {
        Api::<Event>::namespaced(client.clone(), namespace)
            .delete_collection(&delete, &list)
            .await?;
    }
    Api::<ServiceAccount>::namespaced(client.clone(), "kube-system")
        .delete_collection(&delete, &list)
        .await?;
    // No kubelet is asked whether they have ended.
    Api::<Pod>::namespaced(client.clone(), "kube-system")
        .delete_collection(&DeleteParams::default().grace_period(0), &list)
        .await?;
    let config_maps = Api::<ConfigMap>::namespaced(client.clone(), "kube-system");
    for name in ["antrea-config", "cilium-config", "icm-pools", "kubeadm-config"] {
        match config_maps.delete(name, &delete).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            result => drop(result?),
        }
    }
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
    for lease in leases.list(&list).await? {
        // kube-apiserver's own, which it uses to know its peers.
        if !lease.labels().contains_key("apiserver.kubernetes.io/identity") {
            leases.delete(&lease.name_any(), &delete).await?;
        }
    }
    Ok(())
}

/// Deletes all of a kind, whatever holds them.
pub(crate) async fn delete_all<K>(objects: &Api<K>) -> kube::Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    drop_finalizers(objects).await?;
    objects.delete_collection(&DeleteParams::default(), &ListParams::default()).await.map(drop)
}

/// An object with a finalizer would outlive the deletion.
async fn drop_finalizers<K>(objects: &Api<K>) -> kube::Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    let held = objects.list_metadata(&ListParams::default()).await?;
    let held = held.items.into_iter().map(|object| object.metadata);
    let held = held.filter(|metadata| metadata.finalizers.is_some());
    let patch = serde_json::json!({"metadata": {"finalizers": null}});
    futures::stream::iter(held)
        .map(async |metadata| {
            let (name, patch) = (metadata.name.unwrap_or_default(), Patch::Merge(&patch));
            match objects.patch_metadata(&name, &PatchParams::default(), &patch).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
                result => result.map(drop),
            }
        })
        .buffer_unordered(16)
        .try_collect()
        .await
}
