//! Spec: what is wrong with it, and does not keep anything from being built.

use cidr::IpNet;
use events::EventType;
use objects::Object;

use super::reconcile::Clusters;
use super::report::Report;
use crate::api::cluster::{Cluster, NetworkRanges};

const TOPOLOGY: &str = "TopologyReconciled";

impl Clusters {
    /// Says so, in events once for each generation.
    pub(super) fn judge_spec(&self, cluster: &Object<Cluster>, report: &mut Report) {
        if cluster.body.spec.topology.is_some() {
            let message = "spec.topology is stored and not acted upon";
            report.conditions.state(TOPOLOGY, false, "Unsupported", message);
        } else {
            report.conditions.gone.push(TOPOLOGY);
        }
        let is_new = cluster.status.observed_generation != Some(cluster.metadata.generation);
        if is_new && let Some((pods, services)) = overlap(cluster) {
            let message = format!("the Pods' {pods} overlaps the Services' {services}");
            self.tell(cluster, EventType::Warning, "OverlappingNetworks", &message);
        }
    }
}

fn overlap(cluster: &Object<Cluster>) -> Option<(IpNet, IpNet)> {
    let network = cluster.body.spec.cluster_network.as_ref()?;
    let services = cidrs(network.services.as_ref());
    cidrs(network.pods.as_ref()).into_iter().find_map(|pods| {
        let hit = services.iter().find(|it| it.contains(&pods) || pods.contains(*it))?;
        Some((pods, *hit))
    })
}

fn cidrs(ranges: Option<&NetworkRanges>) -> Vec<IpNet> {
    let blocks = ranges.into_iter().flat_map(|ranges| &ranges.cidr_blocks);
    blocks.filter_map(|text| text.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn networks_overlap_when_one_holds_the_other_in_either_family() {
        let of = |pods: &[&str], services: &[&str]| {
            let cluster: Object<Cluster> = Object::read(json!({
                "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
                "spec": {"clusterNetwork": {"pods": {"cidrBlocks": pods}, "services": {"cidrBlocks": services}}},
            }))
            .unwrap();
            overlap(&cluster).map(|(pods, services)| format!("{pods} {services}"))
        };
        assert_eq!(of(&["10.66.0.0/24"], &["192.168.0.0/16"]), None);
        let inside = Some("10.66.0.0/24 10.0.0.0/8".to_owned());
        assert_eq!(of(&["fd00::/48", "10.66.0.0/24"], &["10.0.0.0/8"]), inside);
        assert_eq!(
            of(&["10.0.0.0/8"], &["10.96.0.0/12"]).as_deref(),
            Some("10.0.0.0/8 10.96.0.0/12")
        );
        assert_eq!(of(&["no CIDR"], &["10.96.0.0/12"]), None);
    }
}
