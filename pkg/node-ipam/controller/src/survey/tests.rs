use kube_api::LabelSelector;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const OURS: &str = "infra-controller-manager";
const STOCK: &str = "kube-controller-manager";
const NOW: &str = "2026-01-01T12:00:00Z";

fn node(name: &str, cidrs: &[&str]) -> Surveyed {
    let cidrs = cidrs.iter().map(ToString::to_string).collect();
    Surveyed { name: name.to_owned(), cidrs, ..Surveyed::default() }
}

/// Got its CIDR of this manager, so many seconds ago.
fn given(index: u8, manager: &str, ago: i64) -> Surveyed {
    let at = now() - jiff::SignedDuration::from_secs(ago);
    let setters = vec![(at, manager.to_owned())];
    Surveyed { setters, ..node(&format!("n{index}"), &[&format!("10.0.{index}.0/24")]) }
}

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    cidr::parse(text).unwrap()
}

fn ranges() -> Ranges {
    let pool = |cidr, mask| Pool::new(net(cidr), mask, 16).unwrap();
    let pools = vec![pool("10.0.0.0/16", 24), pool("fd00::/56", 64)];
    Ranges { pools, services: vec![net("10.0.255.0/24")], ..Ranges::default() }
}

fn found(nodes: &[Surveyed]) -> Vec<Finding> {
    survey(nodes, &ranges(), OURS, now())
}

#[test]
fn a_cluster_in_order_has_no_findings() {
    assert_eq!(found(&[]), []);
    let nodes = [node("a", &["10.0.0.0/24", "fd00::/64"]), node("b", &["10.0.1.0/24"])];
    assert_eq!(found(&nodes), []);
}

#[test]
fn of_nodes_that_are_not_selected_only_overlaps_are_found() {
    let selector = LabelSelector::parse("tier=web").ok();
    let ranges = Ranges { selector, ..ranges() };
    let web = |node: Surveyed| {
        let labels = [("tier".to_owned(), "web".to_owned())].into();
        Surveyed { labels, ..node }
    };
    let found = |nodes: &[Surveyed]| survey(nodes, &ranges, OURS, now());
    let odd = [
        node("empty", &[]),
        node("garbage", &["x"]),
        node("outside", &["192.168.0.0/24"]),
        node("small", &["10.0.1.0/28"]),
        given(2, STOCK, 0),
    ];
    assert_eq!(found(&odd), []);
    assert_eq!(found(&odd.map(web)).len(), 5);
    let of = ["a", "b"].map(|name| (name.to_owned(), net("10.0.9.0/24")));
    let overlap = [web(node("a", &["10.0.9.0/24"])), node("b", &["10.0.9.0/24"])];
    assert_eq!(found(&overlap), [Finding::Overlap { of }]);
    let services = [node("s", &["10.0.255.0/28"])];
    assert!(matches!(&found(&services)[..], [Finding::InServiceRange { .. }]));
}

#[test]
fn what_is_no_cidr_is_reported() {
    let nodes = [node("a", &["10.0.0.0/24"]), node("b", &["10.0.1.0"])];
    let (node, text) = ("b".to_owned(), "10.0.1.0".to_owned());
    assert_eq!(found(&nodes), [Finding::Unreadable { node, text }]);
}

#[test]
fn doubles_and_overlaps_are_reported_with_both_nodes() {
    let overlap = |one: (&str, &str), other: (&str, &str)| Finding::Overlap {
        of: [one, other].map(|(node, cidr)| (node.to_owned(), net(cidr))),
    };
    let nodes = [
        node("a", &["10.0.1.0/24"]),
        node("b", &["10.0.1.0/24"]),
        node("c", &["10.0.1.128/25"]),
        node("d", &["10.0.2.0/24", "10.0.2.0/24"]),
        node("e", &["10.0.3.0/24"]),
    ];
    let overlaps: Vec<_> =
        found(&nodes).into_iter().filter(|f| matches!(f, Finding::Overlap { .. })).collect();
    let expected = [
        overlap(("a", "10.0.1.0/24"), ("b", "10.0.1.0/24")),
        overlap(("b", "10.0.1.0/24"), ("c", "10.0.1.128/25")),
        overlap(("d", "10.0.2.0/24"), ("d", "10.0.2.0/24")),
    ];
    assert_eq!(overlaps, expected);
}

#[test]
fn cidrs_outside_of_the_pools_are_reported_each_or_all_at_once() {
    let nodes =
        [node("a", &["10.0.0.0/24"]), node("b", &["10.1.0.0/24"]), node("c", &["fe00::/64"])];
    let outside = |node: &str, cidr| Finding::Outside { node: node.to_owned(), cidr: net(cidr) };
    assert_eq!(found(&nodes), [outside("b", "10.1.0.0/24"), outside("c", "fe00::/64")]);
    assert_eq!(found(&nodes[1..]), [Finding::AllOutside { cidrs: 2 }]);
    assert_eq!(survey(&nodes, &Ranges::default(), OURS, now()), []);
}

#[test]
fn addresses_of_services_other_sizes_and_pools_that_are_too_small_are_reported() {
    let (a, b) = (node("a", &["10.0.255.0/25"]), node("b", &["10.0.0.0/24"]));
    let (cidr, services) = (net("10.0.255.0/25"), net("10.0.255.0/24"));
    let expected = [
        Finding::InServiceRange { node: "a".to_owned(), cidr, services },
        Finding::OtherSize { nodes: 1, example: ("a".to_owned(), cidr), mask: 24, all: false },
    ];
    assert_eq!(found(&[a.clone(), b]), expected);
    let all = Finding::OtherSize { nodes: 1, example: ("a".to_owned(), cidr), mask: 24, all: true };
    assert_eq!(found(&[a])[1..], [all]);
    let many: Vec<_> = (0..=256).map(|index| node(&index.to_string(), &[])).collect();
    assert_eq!(found(&many[1..]), [Finding::Waiting { nodes: 256 }], "one block for each");
    let expected = [
        Finding::TooSmall { pools: vec![net("10.0.0.0/16")], blocks: 256, nodes: 257 },
        Finding::TooSmall { pools: vec![net("fd00::/56")], blocks: 256, nodes: 257 },
        Finding::Waiting { nodes: 257 },
    ];
    assert_eq!(found(&many), expected);
}

#[test]
fn allocators_that_take_turns_are_reported_and_a_take_over_is_not() {
    let managers = || [OURS, STOCK].map(str::to_owned).to_vec();
    let hour = 3600;
    for (nodes, expected) in [
        (vec![given(0, STOCK, 2 * hour), given(1, STOCK, hour)], None),
        (vec![given(0, STOCK, hour), given(1, OURS, 60), given(2, OURS, 30)], None),
        (
            vec![given(0, STOCK, 90), given(1, OURS, 60), given(2, STOCK, 30)],
            Some(Finding::InTurns { managers: managers(), lately: true }),
        ),
        (
            vec![given(0, STOCK, 3 * hour), given(1, OURS, 2 * hour), given(2, STOCK, hour)],
            Some(Finding::InTurns { managers: managers(), lately: false }),
        ),
        (vec![given(0, OURS, hour), given(1, STOCK, 600)], None),
        (
            vec![given(0, OURS, hour), given(1, STOCK, 599)],
            Some(Finding::Lately { manager: STOCK.to_owned(), node: "n1".to_owned() }),
        ),
    ] {
        assert_eq!(found(&nodes), Vec::from_iter(expected), "{nodes:?}");
    }
}

#[test]
fn a_node_shows_who_set_its_cidrs_and_nothing_of_who_set_the_rest() {
    let fields = |manager: &str, spec| {
        json!({
            "manager": manager, "operation": "Update", "time": NOW, "fieldsV1": {"f:spec": spec},
        })
    };
    let read: Surveyed = serde_json::from_value(json!({
        "metadata": {"name": "a", "uid": "u", "creationTimestamp": NOW, "managedFields": [
            fields("kubelet", json!({"f:taints": {}})),
            fields(STOCK, json!({"f:podCIDR": {}, "f:podCIDRs": {".": {}}})),
            {"manager": "old", "fieldsV1": {"f:spec": {"f:podCIDR": {}}}},
        ]},
        "spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]},
    }))
    .unwrap();
    assert_eq!((&*read.uid, read.created), ("u", Some(now())));
    assert_eq!(read.cidrs, ["10.0.0.0/24", "fd00::/64"]);
    assert_eq!(read.setters, [(now(), STOCK.to_owned())], "without a time there is no order");
    let single = json!({"metadata": {"name": "b"}, "spec": {"podCIDR": "10.0.0.0/24"}});
    let read: Surveyed = serde_json::from_value(single).unwrap();
    assert_eq!(read, node("b", &["10.0.0.0/24"]));
    let bare: Surveyed = serde_json::from_value(json!({"metadata": {"name": "c"}})).unwrap();
    assert_eq!(bare, node("c", &[]));
}

proptest! {
    #[test]
    fn an_overlap_is_found_exactly_when_two_cidrs_have_addresses_in_common(
        blocks in prop::collection::vec((0_u8..16, 24_u8..=28), 0..8),
    ) {
        let nets: Vec<IpNet> =
            blocks.iter().map(|(at, mask)| net(&format!("10.0.0.{}/{mask}", at << 4))).collect();
        let nodes: Vec<_> = nets
            .iter()
            .enumerate()
            .map(|(index, cidr)| node(&index.to_string(), &[&cidr.to_string()]))
            .collect();
        let pairs = nets.iter().enumerate().flat_map(|(i, one)| nets[..i].iter().map(move |b| (one, b)));
        let common = pairs.filter(|(one, other)| one.contains(*other) || other.contains(*one)).count();
        let told: Vec<_> =
            found(&nodes).into_iter().filter(|f| matches!(f, Finding::Overlap { .. })).collect();
        prop_assert_eq!(told.is_empty(), common == 0);
        for finding in told {
            let Finding::Overlap { of: [(_, wider), (_, cidr)] } = finding else { continue };
            prop_assert!(wider.contains(&cidr));
        }
    }
}

#[test]
fn blocks_of_nodes_services_and_what_is_excluded_are_used_once() {
    let pool = |cidr, mask| Pool::new(net(cidr), mask, 16).unwrap();
    let ranges = Ranges {
        pools: vec![pool("10.0.0.0/16", 24), pool("10.9.0.0/24", 24), pool("fd00::/62", 64)],
        services: vec![net("10.0.0.0/23")],
        excluded: vec![net("10.0.1.7/32"), net("10.0.5.0/24")],
        ..Ranges::default()
    };
    let nodes = [
        node("a", &["10.0.2.0/24", "fd00::/64"]),
        node("b", &["10.0.2.0/25"]),
        node("outside", &["172.16.0.0/24", "garbage"]),
        node("waiting", &[]),
    ];
    let found = usage(&nodes, &ranges);
    let numbers: Vec<_> = found.iter().map(|it| (it.mask, it.blocks, it.used, it.nodes)).collect();
    assert_eq!(numbers, [(24, 256, 4, 2), (24, 1, 0, 0), (64, 4, 1, 1)]);
    assert_eq!(found[1].range, net("10.9.0.0/24"));
}

#[test]
fn a_pool_in_full_has_what_is_kept_out_and_its_nodes_in_order_of_address() {
    let nodes = [
        node("z", &["10.0.0.0/24", "fd00::/64"]),
        node("b", &["10.0.9.0/25"]),
        node("a", &["10.0.9.0/25"]),
        node("out", &["10.1.0.0/24"]),
    ];
    let found = details(&nodes, &ranges(), "10.0.0.0/16");
    let [pool] = &found[..] else { panic!("{found:?}") };
    let held: Vec<_> = pool.held.iter().map(|(node, cidrs)| (&**node, cidrs.len())).collect();
    assert_eq!(held, [("z", 1), ("a", 1), ("b", 1)]);
    assert_eq!((pool.kept_out, pool.usage.used, pool.longest_free_run), (1, 3, 245));
    assert_eq!((pool.state, &pool.cluster_cidr), ("serving", &None));
    assert!(details(&nodes, &ranges(), "10.0.0.0/17").is_empty());
    assert!(details(&nodes, &ranges(), "").is_empty());
}
