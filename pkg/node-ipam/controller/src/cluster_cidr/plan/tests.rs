//! Specs that are in order, and those that are not.

use k8s_openapi::api::core::v1::NodeSelector;
use proptest::prelude::*;

use super::super::selector::Terms;
use super::*;

const RULES: Rules = Rules { terms: Terms::Or, ipv6_bits: 16 };

fn spec(bits: i64, ipv4: &str, ipv6: &str) -> ClusterCidrSpec {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    ClusterCidrSpec {
        per_node_host_bits: bits,
        per_node_host_bits_ipv4: None,
        per_node_host_bits_ipv6: None,
        ipv4: given(ipv4),
        ipv6: given(ipv6),
        node_selector: None,
    }
}

/// `range/mask` of each pool.
fn pools(bits: i64, ipv4: &str, ipv6: &str) -> Result<Vec<String>, String> {
    let plan = Plan::of(&spec(bits, ipv4, ipv6), RULES).map_err(|error| error.to_string())?;
    Ok(plan.pools.iter().map(|pool| format!("{} {}", pool.cidr(), pool.mask())).collect())
}

#[test]
fn a_range_is_cut_into_blocks_of_the_host_bits() {
    for (bits, ipv4, ipv6, wanted) in [
        (8, "10.0.0.0/16", "", &["10.0.0.0/16 24"][..]),
        (4, "10.0.0.0/28", "", &["10.0.0.0/28 28"]),
        (32, "0.0.0.0/0", "", &["0.0.0.0/0 0"]),
        (8, "", "2001:db8::/110", &["2001:db8::/110 120"]),
        (64, "", "fd00::/56", &["fd00::/56 64"]),
        (8, "10.0.0.0/16", "ace:cab:deca::/120", &["10.0.0.0/16 24", "ace:cab:deca::/120 120"]),
        // Host bits are masked, and texts read, as those of flags are.
        (8, "127.123.3.0/16", "", &["127.123.0.0/16 24"]),
    ] {
        assert_eq!(pools(bits, ipv4, ipv6).unwrap(), wanted);
    }
    let plan = Plan::of(&spec(8, "", "2001:db8::/110"), RULES).unwrap();
    assert_eq!(plan.pools[0].blocks(), 1024);
}

#[test]
fn what_cannot_be_used_is_refused_with_the_reason() {
    for (bits, ipv4, ipv6, said) in [
        (8, "", "", "neither ipv4 nor ipv6"),
        (8, "garbage", "", "ipv4: cannot read CIDR \"garbage\""),
        (8, "fd00::/56", "", "ipv4: fd00::/56 is not a range of IPv4"),
        (8, "", "10.0.0.0/16", "ipv6: 10.0.0.0/16 is not a range of IPv6"),
        // An IPv4-mapped range is one of IPv4.
        (8, "", "::ffff:10.0.0.0/112", "is not a range of IPv6"),
        (3, "10.0.0.0/16", "", "perNodeHostBits is 3, but 10.0.0.0/16 allows 4 to 16"),
        (17, "10.0.0.0/16", "", "allows 4 to 16"),
        (-1, "10.0.0.0/16", "", "perNodeHostBits is -1"),
        (260, "10.0.0.0/16", "", "perNodeHostBits is 260"),
        (9, "10.0.0.0/16", "fd00::/120", "perNodeHostBits is 9, but fd00::/120 allows 4 to 8"),
        (4, "10.0.0.0/30", "", "10.0.0.0/30 is smaller than"),
        (8, "", "fd00::/56", "2^64"),
    ] {
        let error = pools(bits, ipv4, ipv6).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
    let everybody = ClusterCidrSpec {
        node_selector: Some(NodeSelector::default()),
        ..spec(8, "10.0.0.0/16", "")
    };
    let error = Plan::of(&everybody, RULES).unwrap_err().to_string();
    assert!(error.contains("leave nodeSelector out"), "{error}");
}

proptest! {
    /// Compared with the words of the CRD.
    #[test]
    fn a_number_of_a_family_wins_over_the_shared_one(
        shared in 0..70_i64,
        own in (prop::option::of(0..40_i64), prop::option::of(0..70_i64)),
        given in (any::<bool>(), any::<bool>()),
    ) {
        let ranges = [("10.0.0.0/16", given.0), ("fd00::/56", given.1)];
        let [ipv4, ipv6] = ranges.map(|(range, is_given)| if is_given { range } else { "" });
        let (per_node_host_bits_ipv4, per_node_host_bits_ipv6) = own;
        let spec = ClusterCidrSpec {
            per_node_host_bits_ipv4,
            per_node_host_bits_ipv6,
            ..spec(shared, ipv4, ipv6)
        };
        let (v4, v6) = (own.0.unwrap_or(shared), own.1.unwrap_or(shared));
        let is_good = (given.0 || given.1)
            && (!given.0 || (4..=16).contains(&v4))
            && (!given.1 || (4..=72).contains(&v6));
        let plan = Plan::of(&spec, Rules { ipv6_bits: 64, ..RULES });
        // A /56 of IPv6 takes at most 2^64 blocks, so at least 8 host bits.
        let is_good = is_good && (!given.1 || v6 >= 8);
        prop_assert_eq!(plan.is_ok(), is_good, "{:?}", plan);
        if let Ok(plan) = plan {
            let masks: Vec<i64> = plan.pools.iter().map(|it| i64::from(it.mask())).collect();
            let wanted = [(given.0, 32 - v4), (given.1, 128 - v6)];
            let wanted: Vec<i64> =
                wanted.into_iter().filter(|it| it.0).map(|(_, mask)| mask).collect();
            prop_assert_eq!(masks, wanted);
            prop_assert_eq!(i64::from(plan.host_bits), if given.0 { v4 } else { v6 });
        }
    }
}

#[test]
fn a_number_of_a_family_is_named_where_it_is_wrong() {
    let spec =
        ClusterCidrSpec { per_node_host_bits_ipv6: Some(3), ..spec(8, "10.0.0.0/16", "fd00::/56") };
    let error = Plan::of(&spec, RULES).unwrap_err().to_string();
    assert_eq!(error, "perNodeHostBitsIPv6 is 3, but fd00::/56 allows 4 to 72");
}

#[test]
fn the_flag_lets_ipv6_ranges_have_more_blocks() {
    let wide = Rules { ipv6_bits: 64, ..RULES };
    assert_eq!(Plan::of(&spec(8, "", "fd00::/56"), wide).unwrap().pools[0].blocks(), 1 << 64);
}
