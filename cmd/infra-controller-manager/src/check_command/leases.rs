//! Holders of the lease of this program and of kube-controller-manager's.

use std::time::Duration;

use election::ElectionConfig;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::cluster::Cluster;
use super::report::{Check, Report};
use crate::build;

/// The lease of kube-controller-manager.
pub(crate) const STOCK: (&str, &str) = ("kube-system", "kube-controller-manager");
/// A lease that was renewed so long ago is held; clocks may differ.
const RENEWED: Duration = Duration::from_secs(60);

/// A lease as far as it matters.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Lease {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    managed_fields: Vec<ManagedFields>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ManagedFields {
    manager: String,
    /// RFC 3339 of one length, so that the order of the text is that of time.
    time: String,
    fields_v1: Value,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    holder_identity: String,
    renew_time: String,
}

impl Lease {
    /// The current holder; `None` when the lease was released or has expired.
    pub(super) fn holder(&self, now: Timestamp) -> Option<&str> {
        let renewed: Timestamp = self.spec.renew_time.parse().ok()?;
        let is_fresh = now.duration_since(renewed).unsigned_abs() < RENEWED;
        let holder = self.spec.holder_identity.as_str();
        (is_fresh && !holder.is_empty()).then_some(holder)
    }

    /// When it was renewed last, if anybody holds it.
    pub(crate) fn renewal(&self) -> Option<&str> {
        (!self.spec.holder_identity.is_empty()).then_some(&*self.spec.renew_time)
    }

    /// The program that renewed it last, by the name that the API server noted.
    fn renewed_by(&self) -> Option<&str> {
        let renews = |fields: &&ManagedFields| !fields.fields_v1["f:spec"]["f:renewTime"].is_null();
        let renewing = self.metadata.managed_fields.iter().filter(renews);
        renewing.max_by_key(|fields| fields.time.as_str()).map(|fields| fields.manager.as_str())
    }
}

/// Reads both. Whether kube-controller-manager leads.
pub(super) async fn check(
    cluster: &Cluster,
    election: Option<&ElectionConfig>,
    now: Timestamp,
    report: &mut Report,
) -> bool {
    if let Some(ElectionConfig { namespace, name, .. }) = election {
        match read(cluster, namespace, name).await {
            Ok(lease) => judge_own(lease.as_ref(), &format!("{namespace}/{name}"), now, report),
            Err(message) => report.error(Check::Leases, message, ""),
        }
    }
    match read(cluster, STOCK.0, STOCK.1).await {
        Ok(lease) => judge_stock(lease.as_ref(), now, report),
        // The rights of the program do not depend on it.
        Err(message) => {
            report.warn(Check::Leases, message, "");
            false
        }
    }
}

/// Reads a Lease.
pub(crate) async fn read(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<Option<Lease>, String> {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let lease = cluster.find(&path).await;
    lease.map_err(|error| format!("cannot read the lease {namespace}/{name}: {error}"))
}

fn judge_own(lease: Option<&Lease>, name: &str, now: Timestamp, report: &mut Report) {
    let Some((lease, holder)) = lease.and_then(|lease| Some((lease, lease.holder(now)?))) else {
        report.note(Check::Leases, format!("lease {name} has no holder"));
        return;
    };
    match lease.renewed_by().filter(|program| *program != build::PRODUCT) {
        Some(program) => report.error(
            Check::Leases,
            format!("lease {name} is held by {holder}, which is {program}"),
            "choose another --leader-elect-resource-name: one of the two programs would never lead",
        ),
        None => report.note(
            Check::Leases,
            format!(
                "lease {name} is held by {holder}: this process would wait until that process stops"
            ),
        ),
    }
}

fn judge_stock(lease: Option<&Lease>, now: Timestamp, report: &mut Report) -> bool {
    let holder = lease.and_then(|lease| lease.holder(now));
    match holder {
        Some(holder) => {
            report.note(Check::Leases, format!("kube-controller-manager leads as {holder}"));
        }
        None => report.warn(
            Check::Leases,
            "no process holds the lease kube-system/kube-controller-manager",
            "controllers for workloads, garbage collection and tokens do not run; start \
             kube-controller-manager",
        ),
    }
    holder.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::report::Severity;
    use super::*;

    const NOW: &str = "2026-01-01T12:00:00Z";

    fn lease(holder: &str, renewed: &str, managers: &[(&str, &str)]) -> Lease {
        let fields = managers.iter().map(|(manager, time)| {
            json!({"manager": manager, "time": time, "fieldsV1": {"f:spec": {"f:renewTime": {}}}})
        });
        let managed: Vec<Value> = fields.collect();
        let spec = json!({"holderIdentity": holder, "renewTime": renewed});
        let lease = json!({"metadata": {"managedFields": managed}, "spec": spec});
        serde_json::from_value(lease).unwrap()
    }

    fn own(lease: Option<&Lease>) -> (Severity, String) {
        let mut report = Report::default();
        judge_own(lease, "kube-system/own", NOW.parse().unwrap(), &mut report);
        let [line] = report.lines() else { panic!("{report:?}") };
        (line.severity, line.message.clone())
    }

    #[test]
    fn a_lease_that_another_program_renews_is_an_error() {
        let (old, new) = ("2025-12-31T12:00:00Z", "2026-01-01T11:59:50Z");
        let fresh = "2026-01-01T11:59:55.000000Z";
        let (ours, stock) = ("infra-controller-manager", "kube-controller-manager");
        let unheld = (Severity::Note, "lease kube-system/own has no holder".to_owned());
        assert_eq!(own(None), unheld);
        assert_eq!(own(Some(&lease("", fresh, &[(ours, new)]))), unheld);
        assert_eq!(own(Some(&lease("a_1", "2026-01-01T11:58:00Z", &[(stock, new)]))), unheld);
        let replica = own(Some(&lease("a_1", fresh, &[(stock, old), (ours, new)])));
        assert_eq!(replica.0, Severity::Note);
        let other = own(Some(&lease("a_1", fresh, &[(ours, old), (stock, new)])));
        let told = "lease kube-system/own is held by a_1, which is kube-controller-manager";
        assert_eq!(other, (Severity::Error, told.to_owned()));
        assert_eq!(
            own(Some(&lease("a_1", fresh, &[]))).0,
            Severity::Note,
            "an unknown writer is no finding"
        );
    }

    #[test]
    fn a_cluster_without_a_running_stock_manager_is_reported() {
        let severity = |lease: Option<&Lease>| {
            let mut report = Report::default();
            judge_stock(lease, NOW.parse().unwrap(), &mut report);
            report.lines()[0].severity
        };
        assert_eq!(severity(None), Severity::Warning);
        let gone = lease("a_1", "2026-01-01T11:00:00.000000Z", &[]);
        assert_eq!(severity(Some(&gone)), Severity::Warning);
        let there = lease("a_1", "2026-01-01T12:00:05.000000Z", &[]);
        assert_eq!(severity(Some(&there)), Severity::Note, "its clock is ahead");
    }
}
