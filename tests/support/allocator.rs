//! [`Allocator`]: where the product takes pod CIDRs from. What it promises of one it promises of the
//! others, so a scene is played for all.

use std::collections::HashSet;
use std::path::PathBuf;

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use parking_lot::Mutex;

use crate::cluster::delete_all;
use crate::control_plane::ControlPlane;
use crate::kubectl::Shell;

/// Source of pod CIDRs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocator {
    /// Ranges of the flags.
    Range,
    /// ClusterCIDRs. One is made of the flags, so that the flags of a scene do for both, as long as
    /// a block has 16 addresses at least and a scene has one family.
    MultiCidr,
    /// The aliases of VMs, which [`Vms`](crate::Vms) makes of the flags. It has no pool.
    Cloud,
}

impl Allocator {
    /// The flag that selects this allocator.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Range => "--cidr-allocator-type=RangeAllocator",
            Self::MultiCidr => "--cidr-allocator-type=MultiCIDRRangeAllocator",
            Self::Cloud => "--cidr-allocator-type=CloudAllocator",
        }
    }

    /// The name of a metric of its pools, such as `usage_cidrs`.
    pub fn metric(self, of: &str) -> String {
        match (self, of) {
            // Spelled so in kube-controller-manager.
            (Self::Range | Self::Cloud, "max_cidrs") => {
                "node_ipam_controller_cirdset_max_cidrs".to_owned()
            }
            (Self::Range | Self::Cloud, of) => format!("node_ipam_controller_cidrset_{of}"),
            (Self::MultiCidr, of) => format!("node_ipam_controller_multicidrset_{of}"),
        }
    }

    /// Prepares a control plane: installs the CRD and the rights for ClusterCIDRs, and deletes all
    /// ClusterCIDRs.
    pub async fn prepare(self, plane: &ControlPlane) {
        static READY: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
        if self != Self::MultiCidr {
            return;
        }
        // A directory is never used again, unlike a port.
        let is_ready = |plane: &ControlPlane| {
            READY.lock().as_ref().is_some_and(|ready| ready.contains(plane.dir()))
        };
        if !is_ready(plane) {
            let admin = Shell::new(plane.admin_kubeconfig());
            admin.run("apply -f config/crd/networking.x-k8s.io_clustercidrs.yaml");
            admin.await_crds();
            for file in ["cluster-cidrs", "node-ipam-records"] {
                admin.run(&format!("apply -f config/rbac/{file}.yaml"));
            }
            READY.lock().get_or_insert_default().insert(plane.dir().to_owned());
        }
        let objects = cluster_cidrs(&plane.client().await);
        delete_all(&objects).await.expect("ClusterCIDRs can be deleted");
    }
}

/// All ClusterCIDRs.
pub fn cluster_cidrs(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("networking.x-k8s.io", "v1", "ClusterCIDR");
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "clustercidrs"))
}
