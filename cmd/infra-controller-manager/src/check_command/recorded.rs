//! What the leader recorded about a pool, for `check --pool`: the ConfigMap that `--publish-pools` writes,
//! next to the Lease, which says whether its writer still leads.

use client::AnswerError;
use http::StatusCode;
use node_ipam::{POOL_RECORD, PoolDetails, PoolRecord, RecordedPool};
use resilience::wall_now;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::leases;
use crate::settings::ProcessSettings;

/// The record, or the reason why it is not shown.
pub(super) enum Recorded {
    /// It was read.
    Read {
        record: PoolRecord,
        /// Whether its writer holds the Lease; `None` where that cannot be known.
        leads: Option<bool>,
    },
    /// For the output.
    Missing(String),
}

impl Recorded {
    /// Reads the record and the Lease.
    pub(super) async fn read(cluster: &Cluster, settings: &ProcessSettings) -> Self {
        let namespace = &settings.lease.namespace;
        let name = format!("{namespace}/{POOL_RECORD}");
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{POOL_RECORD}");
        let object = match cluster.find::<Value>(&path).await {
            Ok(found) => found,
            Err(AnswerError::Refused { status: StatusCode::FORBIDDEN, .. }) => {
                return Self::Missing(format!(
                    "cannot get ConfigMap {name}: the identity of --kubeconfig may not; add it to the \
                     subjects in config/rbac/node-ipam-records.yaml and apply that"
                ));
            }
            Err(error) => return Self::Missing(format!("cannot get ConfigMap {name}: {error}")),
        };
        let Some(object) = object else {
            let reason = "the leader has written none, see --publish-pools";
            return Self::Missing(format!("no ConfigMap {name}: {reason}"));
        };
        let Some(record) = PoolRecord::of_config_map(&object) else {
            let why = "is not a record of this program";
            return Self::Missing(format!("ConfigMap {name} {why}"));
        };
        let leads = match &settings.election {
            Some(election) => {
                let lease = leases::read(cluster, &election.namespace, &election.name).await;
                let holds =
                    |lease: &leases::Lease| lease.holder(wall_now()) == Some(&*record.leader);
                lease.ok().map(|lease| lease.as_ref().is_some_and(holds))
            }
            None => None,
        };
        Self::Read { record, leads }
    }

    /// The recorded numbers of this pool.
    fn of(&self, pool: &PoolDetails) -> Option<&RecordedPool> {
        let Self::Read { record, .. } = self else { return None };
        let range = cidr::canonical(&pool.usage.range);
        record.pools.iter().find(|it| {
            it.pool == range && it.mask == pool.usage.mask && it.cluster_cidr == pool.cluster_cidr
        })
    }

    /// The lines `recorded` and `resting`.
    pub(super) fn in_text(&self, pool: &PoolDetails) -> [String; 2] {
        const UNKNOWN: &str =
            "unknown without a record, see node_ipam_resting_claims of the leader";
        match (self, self.of(pool)) {
            (Self::Missing(why), _) => [why.clone(), UNKNOWN.to_owned()],
            (Self::Read { record, leads }, Some(it)) => {
                // Whoever may write the ConfigMap must not control a terminal.
                let by = record.leader.escape_debug();
                let leads = match leads {
                    Some(true) => ", which leads",
                    Some(false) => ", which does not lead any more",
                    None => "",
                };
                let RecordedPool { used, free, resting, .. } = it;
                let written = record.written;
                let numbers = format!("{used} used, {free} free at {written} by {by}{leads}");
                [numbers, resting.to_string()]
            }
            (Self::Read { .. }, None) => {
                ["the record does not have this pool".to_owned(), UNKNOWN.to_owned()]
            }
        }
    }

    /// The recorded numbers as JSON; null without a record.
    pub(super) fn in_json(&self, pool: &PoolDetails) -> Value {
        let (Self::Read { record, leads }, Some(it)) = (self, self.of(pool)) else {
            return Value::Null;
        };
        json!({
            "used": it.used, "free": it.free, "resting": it.resting, "state": it.state,
            "written": record.written, "leader": record.leader, "leads": leads,
        })
    }
}

#[cfg(test)]
mod tests {
    use api_server_double::{ApiServer, Reply};

    use super::super::tests::settings;
    use super::*;

    /// The shipped Role grants no list of ConfigMaps.
    #[tokio::test]
    async fn the_record_is_read_by_its_name_and_a_refusal_names_the_file_of_the_right() {
        const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/icm-pools";
        for (code, reason, expected) in [
            (403, "Forbidden", "may not; add it to the subjects in config/rbac/node-ipam-records"),
            (404, "NotFound", "no ConfigMap kube-system/icm-pools: the leader has written none"),
            (500, "InternalError", "cannot get ConfigMap kube-system/icm-pools: "),
        ] {
            let server = ApiServer::new(move |_| Reply::failure(code, reason));
            let cluster = Cluster::new(server.client());
            let Recorded::Missing(why) = Recorded::read(&cluster, &settings(&[])).await else {
                panic!("{code} is no record");
            };
            assert!(why.contains(expected), "{why}");
            let asked: Vec<_> = server.asked().iter().map(|it| it.path().to_owned()).collect();
            assert_eq!(asked, [PATH]);
        }
    }
}
