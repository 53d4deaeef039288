//! Flags that older kube-controller-managers had. Old manifests still carry them, so the error says
//! what became of them.

const SERVING: &str = "the insecure port is gone; use --secure-port and --bind-address";
const LOGGING: &str = "logs go to standard error; redirect them there";
const TAINTS: &str = "evictions are by taint; set tolerationSeconds on pods";
const UNUSED: &str = "it had no effect; leave it out";

const REMOVED: [(&str, &str); 17] = [
    ("address", SERVING),
    ("port", SERVING),
    ("pod-eviction-timeout", TAINTS),
    ("enable-taint-manager", TAINTS),
    ("logtostderr", LOGGING),
    ("log-dir", LOGGING),
    ("log-file", LOGGING),
    ("alsologtostderr", LOGGING),
    ("stderrthreshold", LOGGING),
    ("skip-headers", LOGGING),
    ("one-output", LOGGING),
    ("add-dir-header", LOGGING),
    ("deleting-pods-qps", UNUSED),
    ("deleting-pods-burst", UNUSED),
    ("register-retry-count", UNUSED),
    ("experimental-cluster-signing-duration", "use --cluster-signing-duration"),
    ("deployment-controller-sync-period", UNUSED),
];

/// What to do instead, when `name` is such a flag.
pub(super) fn reason(name: &str) -> Option<&'static str> {
    REMOVED.iter().find(|(removed, _)| *removed == name).map(|(_, reason)| *reason)
}

#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    REMOVED.iter().map(|(name, _)| *name)
}
