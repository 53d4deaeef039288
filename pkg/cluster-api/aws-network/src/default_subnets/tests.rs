use super::*;

fn zones(count: usize) -> Vec<String> {
    ["b", "a", "c", "d"][..count].iter().map(|letter| format!("us-east-2{letter}")).collect()
}

fn texts(dialect: Dialect, vpc: &str, count: usize) -> Option<Vec<String>> {
    let subnets = default_subnets(dialect, cidr::parse(vpc).unwrap(), &zones(count))?;
    let text = |subnet: &DesiredSubnet| {
        let kind = if subnet.public { "public" } else { "private" };
        format!("{kind} {} {}", subnet.cidr.unwrap(), subnet.zone.as_ref().unwrap())
    };
    Some(subnets.iter().map(text).collect())
}

#[test]
fn today_s_default_is_a_small_public_and_a_large_private_subnet_in_each_of_three_zones() {
    assert_eq!(
        texts(Dialect::V1Beta2, "10.0.0.0/16", 4).unwrap(),
        [
            "public 10.0.0.0/20 us-east-2b",
            "public 10.0.16.0/20 us-east-2a",
            "public 10.0.32.0/20 us-east-2c",
            "private 10.0.64.0/18 us-east-2b",
            "private 10.0.128.0/18 us-east-2a",
            "private 10.0.192.0/18 us-east-2c",
        ]
    );
    assert_eq!(
        texts(Dialect::V1Beta2, "10.0.0.0/16", 1).unwrap(),
        ["public 10.0.0.0/17 us-east-2b", "private 10.0.128.0/17 us-east-2b"]
    );
}

#[test]
fn the_older_default_is_two_subnets_of_the_vpc_in_the_first_zone_by_name() {
    assert_eq!(
        texts(Dialect::V1Alpha2, "10.9.0.0/16", 2).unwrap(),
        ["private 10.9.0.0/24 us-east-2a", "public 10.9.1.0/24 us-east-2a"]
    );
    assert_eq!(
        texts(Dialect::V1Alpha2, "10.9.0.0/24", 2).unwrap(),
        ["private 10.9.0.0/25 us-east-2a", "public 10.9.0.128/25 us-east-2a"]
    );
}

#[test]
fn a_vpc_that_is_too_small_and_a_region_without_zones_have_no_default() {
    assert_eq!(texts(Dialect::V1Beta2, "10.0.0.0/26", 3), None);
    assert_eq!(texts(Dialect::V1Alpha2, "10.0.0.0/28", 1), None);
    assert_eq!(texts(Dialect::V1Alpha2, "10.0.0.0/16", 0), None);
    assert_eq!(texts(Dialect::V1Beta2, "10.0.0.0/16", 0), None);
}
