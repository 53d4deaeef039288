//! The order in which ClusterCIDRs are asked, by table and against a naive model.

use std::cmp::Ordering;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::cluster_cidr::Plan;
use crate::cluster_cidr::plan::Rules;
use crate::cluster_cidr::selector::Terms;

const RULES: Rules = Rules { terms: Terms::Or, ipv6_bits: 16 };

fn source(specs: &[(&str, Value)]) -> PoolSource {
    let mut source = PoolSource::cluster_cidrs(Duration::ZERO);
    let mut first = 0;
    for (name, spec) in specs {
        let spec: ClusterCidrSpec = serde_json::from_value(spec.clone()).unwrap();
        let plan = Plan::of(&spec, RULES).unwrap();
        let name: Arc<str> = (*name).into();
        let pools = first..first + plan.pools.len();
        first = pools.end;
        let (rank, id) = (Rank::of(&name, &plan), source.take_id());
        let (uid, selector, state) = (name.clone(), plan.selector, ServingState::Serving);
        let seen = Instant::now();
        source.insert(Entry { id, uid, name, state, spec, selector, rank, pools, seen });
    }
    source
}

fn marks(labels: &[(&str, &str)]) -> NodeMarks {
    let labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    NodeMarks { labels, taints: Vec::new() }
}

fn order(source: &PoolSource, marks: &NodeMarks) -> Vec<String> {
    let candidates = source.choice("n", marks).candidates;
    let name = |id: &EntryId| source.by_id(*id).unwrap().name.to_string();
    candidates.iter().map(name).collect()
}

/// `ipv4`, host bits, and keys of required labels.
fn spec(ipv4: &str, bits: i64, keys: &[&str]) -> Value {
    let wanted: Vec<_> = keys.iter().map(|key| json!({"key": key, "operator": "Exists"})).collect();
    let mut spec = json!({"ipv4": ipv4, "perNodeHostBits": bits});
    if !keys.is_empty() {
        spec["nodeSelector"] = json!({"nodeSelectorTerms": [{"matchExpressions": wanted}]});
    }
    spec
}

#[test]
fn every_tie_is_broken_by_the_next_rule() {
    let node = marks(&[("abc", ""), ("foo", ""), ("bar", "")]);
    let dual = json!({"ipv4": "10.0.0.0/16", "ipv6": "ace:cab:deca::/120", "perNodeHostBits": 8});
    let own = |range: &str, more: Value| {
        let mut spec = json!({"ipv4": range, "perNodeHostBits": 8});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    for (what, first, second) in [
        (
            "smaller blocks of IPv4, whatever those of IPv6",
            own("10.1.0.0/20", json!({"ipv6": "fd00::/112", "perNodeHostBitsIPv6": 12})),
            own(
                "10.2.0.0/19",
                json!({"ipv6": "fd01::/112", "perNodeHostBitsIPv4": 9, "perNodeHostBitsIPv6": 4}),
            ),
        ),
        (
            "the scarcer family, with numbers of their own",
            own("10.0.0.0/8", json!({"ipv6": "fd00::/63", "perNodeHostBitsIPv6": 64})),
            own("127.123.232.0/22", json!({})),
        ),
        (
            "more requirements",
            spec("10.0.0.0/8", 8, &["foo", "bar"]),
            spec("10.0.0.0/24", 8, &["abc"]),
        ),
        ("a selector before none", spec("10.0.0.0/8", 8, &["foo"]), spec("10.0.0.0/24", 8, &[])),
        ("fewer blocks", spec("10.1.0.0/24", 8, &["foo"]), spec("172.16.0.0/16", 8, &["foo"])),
        ("fewer blocks, for everybody", spec("10.1.0.0/24", 8, &[]), spec("172.16.0.0/16", 8, &[])),
        ("the scarcer family", dual, spec("127.123.234.0/23", 8, &[])),
        ("smaller blocks", spec("10.1.1.0/26", 6, &["foo"]), spec("10.1.0.0/24", 8, &["foo"])),
        ("selector text", spec("10.1.3.0/26", 6, &["abc"]), spec("10.1.1.0/26", 6, &["foo"])),
        ("range text", spec("10.1.1.0/26", 6, &["foo"]), spec("10.1.3.0/26", 6, &["foo"])),
        ("range text, not number", spec("10.10.0.0/26", 6, &[]), spec("10.9.0.0/26", 6, &[])),
    ] {
        // Neither their names nor the order in which they come decide.
        for (one, other) in [("a", "z"), ("z", "a")] {
            let (first, second) = ((one, first.clone()), (other, second.clone()));
            let forth = order(&source(&[first.clone(), second.clone()]), &node);
            assert_eq!(forth, [one, other], "{what}");
            assert_eq!(order(&source(&[second, first]), &node), forth, "{what}");
        }
    }
    let twins = [("b", spec("10.0.0.0/24", 8, &[])), ("a", spec("10.0.0.0/24", 8, &[]))];
    assert_eq!(order(&source(&twins), &node), ["a", "b"], "the name, when nothing else differs");
}

#[test]
fn those_that_do_not_select_the_node_or_are_on_their_way_out_are_left_out() {
    let mut source = source(&[
        ("foo", spec("10.0.0.0/24", 8, &["foo"])),
        ("bar", spec("10.0.1.0/24", 8, &["bar"])),
        ("all", spec("10.0.2.0/24", 8, &[])),
    ]);
    assert_eq!(order(&source, &marks(&[("foo", "")])), ["foo", "all"]);
    assert_eq!(order(&source, &marks(&[])), ["all"]);
    assert!(!source.choice("n", &marks(&[])).selected);
    assert!(source.choice("n", &marks(&[("bar", "")])).selected);
    source.by_uid_mut("foo").unwrap().state = ServingState::Terminating;
    assert_eq!(order(&source, &marks(&[("foo", "")])), ["all"]);
}

#[test]
fn pools_behind_a_removed_entry_move_up() {
    let dual = json!({"ipv4": "10.0.0.0/16", "ipv6": "fd00::/112", "perNodeHostBits": 8});
    let mut source = source(&[
        ("a", spec("10.0.0.0/24", 8, &[])),
        ("b", dual),
        ("c", spec("10.2.0.0/24", 8, &["x"])),
    ]);
    let places = |source: &PoolSource, uid| source.by_uid(uid).unwrap().pools.clone();
    assert_eq!(source.name_of_pool(2).map(AsRef::as_ref), Some("b"));
    assert_eq!(source.remove("b").unwrap().pools, 1..3);
    assert_eq!((places(&source, "a"), places(&source, "c")), (0..1, 1..2));
    assert_eq!(source.name_of_pool(1).map(AsRef::as_ref), Some("c"));
    assert!(source.remove("b").is_none());
}

/// An object as the model sees it.
#[derive(Clone, Debug)]
struct Naive {
    name: String,
    /// Third byte of 10.0.x.0, and prefix length.
    range: (u8, u8),
    bits: u8,
    /// Labels that must be there, term by term; `None` without a selector.
    terms: Option<Vec<Vec<&'static str>>>,
}

impl Naive {
    fn ipv4(&self) -> String {
        let (byte, length) = self.range;
        format!("10.0.{byte}.0/{length}")
    }

    fn spec(&self) -> Value {
        let mut spec = json!({"ipv4": self.ipv4(), "perNodeHostBits": self.bits});
        if let Some(terms) = &self.terms {
            let exists = |key: &&str| json!({"key": key, "operator": "Exists"});
            let term = |keys: &Vec<&str>| json!({"matchExpressions": keys.iter().map(exists).collect::<Vec<_>>()});
            spec["nodeSelector"] =
                json!({"nodeSelectorTerms": terms.iter().map(term).collect::<Vec<_>>()});
        }
        spec
    }

    /// How many requirements of its terms that match; `None` when it is not for the Node.
    fn matching(&self, labels: &[&str]) -> Option<usize> {
        let Some(terms) = &self.terms else { return Some(0) };
        let mut sum = None;
        for term in terms {
            let mut met = !term.is_empty();
            for key in term {
                met &= labels.contains(key);
            }
            if met {
                sum = Some(sum.unwrap_or(0) + term.len());
            }
        }
        sum
    }

    fn selector_text(&self) -> String {
        let mut keys: Vec<&str> = self.terms.iter().flatten().flatten().copied().collect();
        keys.sort_unstable();
        keys.join(",")
    }

    /// The rules one by one, as they are written.
    fn compare(&self, other: &Self, labels: &[&str]) -> Ordering {
        let tier = |it: &Self| usize::from(it.terms.is_none());
        let blocks = |it: &Self| 1_u64 << (32 - it.bits - it.range.1);
        if tier(self) != tier(other) {
            return tier(self).cmp(&tier(other));
        }
        if self.matching(labels) != other.matching(labels) {
            return other.matching(labels).cmp(&self.matching(labels));
        }
        if blocks(self) != blocks(other) {
            return blocks(self).cmp(&blocks(other));
        }
        if self.bits != other.bits {
            return self.bits.cmp(&other.bits);
        }
        if self.selector_text() != other.selector_text() {
            return self.selector_text().cmp(&other.selector_text());
        }
        if self.ipv4() != other.ipv4() {
            return self.ipv4().cmp(&other.ipv4());
        }
        self.name.cmp(&other.name)
    }
}

fn key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "d"])
}

fn objects() -> impl Strategy<Value = Vec<Naive>> {
    let keys = prop::collection::vec(key(), 0..3);
    let terms = prop::option::weighted(0.7, prop::collection::vec(keys, 1..3));
    let object = (0..4_u8, 24..27_u8, 4..7_u8, terms);
    prop::collection::vec(object, 0..8).prop_map(|objects| {
        let naive = |(number, (byte, length, bits, terms)): (usize, (u8, u8, u8, _))| Naive {
            name: format!("o{number}"),
            range: (byte * 5, length),
            bits: bits.min(32 - length),
            terms,
        };
        objects.into_iter().enumerate().map(naive).collect()
    })
}

proptest! {
    #[test]
    fn the_order_is_that_of_the_naive_model(
        objects in objects(),
        labels in prop::collection::btree_set(key(), 0..4),
    ) {
        let labels: Vec<&str> = labels.into_iter().collect();
        let specs: Vec<_> = objects.iter().map(|it| (&*it.name, it.spec())).collect();
        let node = marks(&labels.iter().map(|key| (*key, "")).collect::<Vec<_>>());
        let mut wanted: Vec<&Naive> =
            objects.iter().filter(|it| it.matching(&labels).is_some()).collect();
        wanted.sort_by(|one, other| one.compare(other, &labels));
        let wanted: Vec<&str> = wanted.iter().map(|it| &*it.name).collect();
        prop_assert_eq!(order(&source(&specs), &node), wanted);
    }
}
