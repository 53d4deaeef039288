//! Flags of kube-controller-manager's volume controllers.

use flags::{Kind, Spec};

use super::verdicts::accepted;

pub(super) const ATTACHING: &[Spec] = &[
    accepted(
        "attach-detach-reconcile-sync-period",
        Kind::Duration,
        "1m0s",
        "Pause between checks of attached volumes.",
    ),
    accepted("disable-attach-detach-reconcile-sync", Kind::Bool, "false", "Skip those checks."),
    accepted(
        "disable-force-detach-on-timeout",
        Kind::Bool,
        "false",
        "Never detach a volume by force.",
    ),
];

pub(super) const VOLUMES: &[Spec] = &[
    accepted(
        "concurrent-ephemeralvolume-syncs",
        Kind::Int32,
        "5",
        "Workers of the named controller.",
    ),
    accepted("enable-dynamic-provisioning", Kind::Bool, "true", "Provision volumes on demand."),
    accepted(
        "enable-hostpath-provisioner",
        Kind::Bool,
        "false",
        "Provision host paths, for tests.",
    ),
    accepted(
        "flex-volume-plugin-dir",
        Kind::String,
        "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
        "Directory of flex volume plugins; never created.",
    ),
    accepted("pvclaimbinder-sync-period", Kind::Duration, "15s", "Pause between volume bindings."),
    recycler("pv-recycler-increment-timeout-nfs", "30", "Seconds per GiB added for NFS."),
    recycler("pv-recycler-minimum-timeout-nfs", "300", "Least seconds for NFS."),
    recycler("pv-recycler-minimum-timeout-hostpath", "60", "Least seconds for host paths."),
    recycler("pv-recycler-timeout-increment-hostpath", "30", "Seconds per GiB for host paths."),
    accepted("pv-recycler-pod-template-filepath-nfs", Kind::String, "", "Pod template for NFS."),
    accepted(
        "pv-recycler-pod-template-filepath-hostpath",
        Kind::String,
        "",
        "Pod template for host paths.",
    ),
];

const fn recycler(name: &'static str, default: &'static str, help: &'static str) -> Spec {
    accepted(name, Kind::Int32, default, help)
}
