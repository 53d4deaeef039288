//! [`Ranges`]: where pod CIDRs come from and where none may be, for the
//! command `check`.

use cidr::{IpNet, Pool};
use flags::Values;
use kube_api::LabelSelector;
use objects::Object;

use super::{Judged, Options, judge};
use crate::Surveyed;
use crate::allocator::ServingState;
use crate::cluster_cidr::plan::Rules;
use crate::cluster_cidr::{self, ClusterCidr, Plan};

/// Where pod CIDRs come from and where none may be, by the flags.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Pools, those of one family in the order in which they are used; empty where they come from
    /// ClusterCIDRs.
    pub pools: Vec<Pool>,
    /// Service ranges.
    pub services: Vec<IpNet>,
    /// Ranges of `--node-cidr-exclude`, which no Node may get.
    pub excluded: Vec<IpNet>,
    /// Which Nodes get a pod CIDR; `None` for all.
    pub(crate) selector: Option<LabelSelector>,
    /// Ranges of `--drain-cluster-cidrs`.
    pub(crate) drained: Vec<IpNet>,
    /// The ClusterCIDR and the state of each pool that is of one.
    pub(crate) of_objects: Vec<(String, ServingState)>,
    /// For pools that come from ClusterCIDRs.
    pub(crate) rules: Option<Rules>,
}

impl Ranges {
    /// The ranges in these flags; `None` when no pod CIDRs are assigned, or not by such flags.
    pub fn of(values: &Values) -> Option<Self> {
        match judge(values) {
            Ok(Judged::On { options, cluster_cidrs, .. }) => {
                let Options { pools, drained, service_ranges: services, excluded, .. } = *options;
                let selector = options.node_selector;
                let (of_objects, rules) = (Vec::new(), cluster_cidrs.map(|of| of.rules));
                Some(Self { pools, services, excluded, selector, drained, of_objects, rules })
            }
            Ok(Judged::Off) | Err(_) => None,
        }
    }

    /// Whether `--node-selector` selects a Node.
    pub(crate) fn select(&self, node: &Surveyed) -> bool {
        let label = |key: &str| node.labels.get(key).map(String::as_str);
        self.selector.as_ref().is_none_or(|selector| selector.selects(label))
    }

    /// Whether pools come from ClusterCIDRs.
    pub fn are_of_cluster_cidrs(&self) -> bool {
        self.rules.is_some()
    }

    /// These ranges with the pools of these ClusterCIDRs, as the API server has them; those that cannot be used are
    /// left out.
    #[must_use]
    pub fn with_cluster_cidrs(mut self, objects: Vec<serde_json::Value>) -> Self {
        let Some(rules) = self.rules else { return self };
        for object in objects.into_iter().flat_map(Object::<ClusterCidr>::read) {
            let Ok(plan) = Plan::of(&object.body.spec, rules) else { continue };
            let (name, state) = (object.metadata.name(), cluster_cidr::state(&object));
            self.of_objects.extend(plan.pools.iter().map(|_| (name.to_owned(), state)));
            self.pools.extend(plan.pools);
        }
        self
    }

    /// The ClusterCIDR of a pool, if it is of one, and the state of the pool.
    pub(crate) fn identity(&self, place: usize) -> (Option<&str>, &'static str) {
        if let Some((name, state)) = self.of_objects.get(place) {
            return (Some(name), state.label());
        }
        let is_drained = self.pools.get(place).is_some_and(|it| self.drained.contains(&it.cidr()));
        let state = if is_drained { ServingState::Draining } else { ServingState::Serving };
        (None, state.label())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster_cidr::{DRAIN, FINALIZER};
    use crate::flags::FLAGS;

    fn ranges(given: &[(&str, &str)]) -> Option<Ranges> {
        let given = given.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Ranges::of(&Values::from_given(FLAGS, given).unwrap())
    }

    #[test]
    fn they_are_those_of_the_flags_or_of_the_objects_that_can_be_used() {
        let on = ("allocate-node-cidrs", "true");
        assert!(ranges(&[]).is_none());
        assert!(ranges(&[on]).is_none(), "without a range nothing can be given out");
        let flags = [on, ("cluster-cidr", "10.0.0.0/16"), ("node-cidr-exclude", "10.0.1.0/24")];
        let of_flags = ranges(&flags).unwrap();
        assert_eq!((of_flags.pools.len(), of_flags.excluded.len()), (1, 1));
        assert!(!of_flags.are_of_cluster_cidrs());
        let objects = || {
            let metadata = json!({"name": "a", "uid": "u", "resourceVersion": "1"});
            let good = json!({"ipv4": "10.9.0.0/16", "perNodeHostBits": 6});
            let bad = json!({"ipv4": "10.8.0.0/16", "perNodeHostBits": 99});
            let object = |spec: Value| json!({"metadata": metadata, "spec": spec});
            vec![object(bad), json!({}), object(good)]
        };
        assert_eq!(of_flags.with_cluster_cidrs(objects()).pools.len(), 1);
        let multi = ranges(&[on, ("cidr-allocator-type", "MultiCIDRRangeAllocator")]).unwrap();
        assert!(multi.are_of_cluster_cidrs() && multi.pools.is_empty());
        let pools = multi.with_cluster_cidrs(objects()).pools;
        let of_objects: Vec<_> =
            pools.iter().map(|it| (it.cidr().to_string(), it.mask())).collect();
        assert_eq!(of_objects, [("10.9.0.0/16".to_owned(), 26)]);
    }

    /// `rule:draining-pool-gives-nothing`
    #[test]
    fn each_pool_has_the_name_and_the_state_of_its_cluster_cidr() {
        let on = ("allocate-node-cidrs", "true");
        let multi = ranges(&[on, ("cidr-allocator-type", "MultiCIDRRangeAllocator")]).unwrap();
        let object = |name: &str, metadata: Value| {
            let mut metadata = metadata;
            for (field, value) in [("name", name), ("uid", name), ("resourceVersion", "1")] {
                metadata[field] = json!(value);
            }
            let spec = json!({"ipv4": "10.9.0.0/16", "ipv6": "fd00::/116", "perNodeHostBits": 6});
            json!({"metadata": metadata, "spec": spec})
        };
        let (held, drain) = (json!([FINALIZER]), json!({DRAIN: "true"}));
        let objects = vec![
            object("new", json!({})),
            object("good", json!({"finalizers": held, "annotations": {DRAIN: "false"}})),
            object("old", json!({"finalizers": held, "annotations": drain})),
            object(
                "gone",
                json!({"finalizers": held, "annotations": drain, "deletionTimestamp": "now"}),
            ),
        ];
        let multi = multi.with_cluster_cidrs(objects);
        let of = |place| multi.identity(place);
        for (place, state) in [(0, "unheld"), (2, "serving"), (4, "draining"), (6, "terminating")] {
            assert_eq!((of(place), of(place + 1).1), ((of(place).0, state), state));
        }
        assert_eq!((of(5).0, of(6).0), (Some("old"), Some("gone")));
    }
}
