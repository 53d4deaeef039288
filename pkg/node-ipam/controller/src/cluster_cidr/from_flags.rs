//! The ClusterCIDR that stands for `--cluster-cidr`, so that a cluster moves from the
//! RangeAllocator by one flag (`rule:flags-become-an-object`).

use cidr::{Family, Pool};

use super::plan::MIN_HOST_BITS;
use super::spec::ClusterCidrSpec;

/// Its name.
pub(crate) const NAME: &str = "default-cluster-cidr";

/// The most host bits that both families are given when those of IPv4 do not do.
const MOST_SHARED_BITS: u8 = 32;

/// The ClusterCIDR of the pools that the flags come to; `None` without any.
pub(crate) fn spec(pools: &[Pool]) -> Option<ClusterCidrSpec> {
    let range = |family| pools.iter().find(|pool| pool.family() == family);
    let text = |pool: Option<&Pool>| pool.map(|pool| cidr::canonical(&pool.cidr()));
    let (ipv4, ipv6) = (range(Family::V4), range(Family::V6));
    let bits = match (ipv4.map(host_bits), ipv6.map(host_bits)) {
        (None, None) => return None,
        (Some(bits), None) | (None, Some(bits)) => bits.max(MIN_HOST_BITS),
        (Some(ipv4), Some(ipv6)) => shared_bits(ipv4, ipv6),
    };
    Some(ClusterCidrSpec {
        per_node_host_bits: i64::from(bits),
        ipv4: text(ipv4),
        ipv6: text(ipv6),
        node_selector: None,
    })
}

fn host_bits(pool: &Pool) -> u8 {
    pool.family().width() - pool.mask()
}

/// A ClusterCIDR has one number for both families.
fn shared_bits(ipv4: u8, ipv6: u8) -> u8 {
    if (MIN_HOST_BITS..=ipv6).contains(&ipv4) {
        ipv4
    } else if (MIN_HOST_BITS..=MOST_SHARED_BITS).contains(&ipv6) {
        ipv6
    } else {
        MIN_HOST_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(pools: &[(&str, u8)]) -> Option<i64> {
        let pool = |&(cidr, mask): &(&str, u8)| Pool::new(cidr.parse().unwrap(), mask, 64).unwrap();
        let pools: Vec<Pool> = pools.iter().map(pool).collect();
        spec(&pools).map(|spec| spec.per_node_host_bits)
    }

    /// `rule:flags-become-an-object`
    #[test]
    fn the_host_bits_are_those_of_the_masks_where_one_number_can_say_them() {
        for (pools, wanted) in [
            (&[][..], None),
            (&[("10.0.0.0/16", 24)], Some(8)),
            (&[("10.0.0.0/16", 30)], Some(4)),
            (&[("fd00::/56", 64)], Some(64)),
            (&[("fd00::/112", 126)], Some(4)),
            // Those of IPv4 where IPv6 has as many or more.
            (&[("10.0.0.0/16", 24), ("fd00::/56", 64)], Some(8)),
            (&[("fd00::/108", 120), ("10.0.0.0/16", 24)], Some(8)),
            // Those of IPv6 where IPv4 has more, or too few.
            (&[("10.0.0.0/16", 20), ("fd00::/108", 120)], Some(8)),
            (&[("10.0.0.0/16", 30), ("fd00::/108", 120)], Some(8)),
            // Neither does.
            (&[("10.0.0.0/16", 30), ("fd00::/56", 64)], Some(4)),
            (&[("10.0.0.0/16", 24), ("fd00::/112", 126)], Some(4)),
        ] {
            assert_eq!(bits(pools), wanted, "{pools:?}");
        }
    }

    #[test]
    fn ranges_are_told_by_family_whatever_their_order() {
        let pools = [("fd00::/108", 120), ("10.0.0.0/16", 24)]
            .map(|(cidr, mask)| Pool::new(cidr.parse().unwrap(), mask, 64).unwrap());
        let spec = spec(&pools).unwrap();
        assert_eq!(spec.ipv4.as_deref(), Some("10.0.0.0/16"));
        assert_eq!(spec.ipv6.as_deref(), Some("fd00::/108"));
        assert_eq!(spec.node_selector, None);
    }
}
