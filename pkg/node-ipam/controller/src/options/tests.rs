//! Every rule of the start that concerns the RangeAllocator and ClusterCIDRs.

use std::time::Duration;

use flags::Values;

use super::*;
use crate::cluster_cidr::selector::Terms;
use crate::flags::FLAGS;

fn verdict(line: &str) -> Result<Judged, Vec<Problem>> {
    let given = line.split_whitespace().map(|arg| {
        let (name, value) = arg.trim_start_matches("--").split_once('=').unwrap();
        (name, value.replace('_', " "))
    });
    judge(&Values::from_given(FLAGS, given).unwrap())
}

fn on(line: &str) -> (Options, Vec<String>) {
    match verdict(&format!("--allocate-node-cidrs=true {line}")) {
        Ok(Judged::On { options, warnings, .. }) => (*options, warnings),
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(line: &str) -> Vec<String> {
    match verdict(&format!("--allocate-node-cidrs=true {line}")) {
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
        other => panic!("{line}: {other:?}"),
    }
}

/// `cidr/mask` of each pool.
fn pools(line: &str) -> Vec<String> {
    let (options, _) = on(line);
    options.pools.iter().map(|pool| format!("{} {}", pool.cidr(), pool.mask())).collect()
}

#[test]
fn nothing_is_judged_while_allocation_is_off() {
    let garbage = "--allocate-node-cidrs=false --cluster-cidr=x --cidr-allocator-type=y";
    assert!(matches!(verdict(garbage), Ok(Judged::Off)));
    assert!(matches!(verdict("--cluster-cidr=garbage"), Ok(Judged::Off)));
}

#[test]
fn a_node_selector_is_read_as_kubectl_reads_it_and_nothing_selects_all() {
    let line = |selector: &str| format!("--cluster-cidr=10.0.0.0/16 --node-selector={selector}");
    let selector = |text: &str| on(&line(text)).0.node_selector.map(|it| it.to_string());
    assert_eq!(selector(""), None);
    assert_eq!(selector("_"), None);
    assert_eq!(selector("!spot,tier_in_(web)"), Some("!spot,tier in (web)".to_owned()));
    let found = refused(&line("tier_in_web"));
    let expected = "--node-selector: cannot parse \"tier in web\": found \"web\", expected an opening \
                    parenthesis";
    assert_eq!(found, [expected]);
}

#[test]
fn a_proof_counts_with_a_warm_standby_only() {
    let line = |more: &str| format!("--cluster-cidr=10.0.0.0/16 {more}");
    let proof = |more: &str| on(&line(more)).0.warm_proof;
    assert_eq!(proof(""), None);
    assert_eq!(proof("--warm-proof=bookmark"), None);
    assert_eq!(proof("--warm-standby=true"), Some(WarmProof::Beacon));
    assert_eq!(proof("--warm-standby=true --warm-proof=bookmark"), Some(WarmProof::Bookmark));
    let found = refused(&line("--warm-proof=list"));
    assert_eq!(found, [r#"--warm-proof: "list" is not beacon or bookmark"#]);
}

#[test]
fn every_row_of_the_mask_table_holds() {
    let v4 = "--cluster-cidr=10.0.0.0/16";
    let v6 = "--cluster-cidr=fd00::/56";
    let dual = "--cluster-cidr=10.0.0.0/16,fd00::/60";
    let m = "--node-cidr-mask-size";
    let accepted: &[(&str, String, &[&str])] = &[
        ("v4, nothing set", v4.into(), &["10.0.0.0/16 24"]),
        ("v6, nothing set", v6.into(), &["fd00::/56 64"]),
        ("v4, size", format!("{v4} {m}=26"), &["10.0.0.0/16 26"]),
        ("v6, size", format!("--cluster-cidr=fd00::/64 {m}=80"), &["fd00::/64 80"]),
        ("v4, own size", format!("{v4} {m}-ipv4=25"), &["10.0.0.0/16 25"]),
        ("v6, own size", format!("{v6} {m}-ipv6=72"), &["fd00::/56 72"]),
        ("dual, nothing set", dual.into(), &["10.0.0.0/16 24", "fd00::/60 64"]),
        (
            "dual, both sizes",
            format!("{dual} {m}-ipv4=25 {m}-ipv6=72"),
            &["10.0.0.0/16 25", "fd00::/60 72"],
        ),
        (
            "dual, the order of the flag is kept",
            "--cluster-cidr=fd00::/60,10.0.0.0/16".into(),
            &["fd00::/60 64", "10.0.0.0/16 24"],
        ),
        ("a mask equal to the prefix is one block", format!("{v4} {m}=16"), &["10.0.0.0/16 16"]),
    ];
    for (name, line, expected) in accepted {
        assert_eq!(pools(line), *expected, "{name}");
    }
    let none = "cannot be used: --cluster-cidr holds no";
    let (together, two) = ("cannot be used together with", "cannot be used with two cluster CIDRs");
    let errors = [
        ("v4 with the v6 size", format!("{v4} {m}-ipv6=72"), "-ipv6", vec![none]),
        ("v6 with the v4 size", format!("{v6} {m}-ipv4=25"), "-ipv4", vec![none]),
        ("v4, size and own size", format!("{v4} {m}=26 {m}-ipv4=26"), "", vec![together]),
        ("v4, size and other size", format!("{v4} {m}=26 {m}-ipv6=72"), "", vec![together, none]),
        ("dual with a single size", format!("{dual} {m}=26"), "", vec![two]),
    ];
    for (name, line, flag, causes) in errors {
        let found = refused(&line);
        assert!(found[0].starts_with(&format!("{m}{flag}: {}", causes[0])), "{name}: {found:?}");
        assert_eq!(found.len(), causes.len(), "{name}: {found:?}");
    }
}

#[test]
fn cluster_cidrs_that_cannot_be_used_name_the_flag_and_the_cause() {
    let rows = [
        ("", "must be set"),
        ("--cluster-cidr=10.0.0.0/33", "10.0.0.0/33"),
        ("--cluster-cidr=nonsense", "cannot read CIDR \"nonsense\""),
        ("--cluster-cidr=10.0.0.0/16,", "empty element"),
        ("--cluster-cidr=10.0.0.0/16,fd00::/60,10.2.0.0/16", "at most two"),
        ("--cluster-cidr=10.0.0.0/16,10.1.0.0/16", "two IPv4"),
        ("--cluster-cidr=fd00::/60,fd01::/60", "two IPv6"),
    ];
    for (line, cause) in rows {
        let found = refused(line);
        assert!(found[0].starts_with("--cluster-cidr: "), "{line}: {found:?}");
        assert!(found[0].contains(cause), "{line}: {found:?}");
    }
}

#[test]
fn further_ranges_have_blocks_of_the_size_of_their_family_and_come_behind() {
    let dual = "--cluster-cidr=fd00::/60,10.0.0.0/16 --node-cidr-mask-size-ipv4=25";
    assert_eq!(
        pools(&format!("{dual} --additional-cluster-cidrs=10.9.0.0/16,_fd01::/63,10.8.0.0/24")),
        ["fd00::/60 64", "10.0.0.0/16 25", "10.9.0.0/16 25", "fd01::/63 64", "10.8.0.0/24 25"]
    );
    for (line, cause) in [
        ("10.0.0.0/15", "10.0.0.0/15 overlaps 10.0.0.0/16"),
        ("10.9.0.0/16,10.9.128.0/17", "10.9.128.0/17 overlaps 10.9.0.0/16"),
        ("fd00::/60", "--cluster-cidr holds no IPv6 CIDR"),
        ("10.9.0.0/26", "shorter than the prefix"),
        ("10.9.0.0/16,", "cannot read CIDR \"\""),
    ] {
        let line = format!("--cluster-cidr=10.0.0.0/16 --additional-cluster-cidrs={line}");
        let found = refused(&line);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("--additional-cluster-cidrs: "), "{found:?}");
        assert!(found[0].contains(cause), "{found:?}");
    }
    let multi = "--cidr-allocator-type=MultiCIDRRangeAllocator";
    let (_, warnings) = on(&format!("{multi} --additional-cluster-cidrs=10.9.0.0/16"));
    assert!(warnings[0].contains("--additional-cluster-cidrs: no effect"), "{warnings:?}");
}

/// `rule:draining-pool-gives-nothing`
#[test]
fn ranges_that_are_drained_are_pools_and_leave_one_of_each_family() {
    let two = "--cluster-cidr=10.0.0.0/16,fd00::/60 --additional-cluster-cidrs=10.9.0.0/16";
    let (options, warnings) = on(&format!("{two} --drain-cluster-cidrs=10.0.0.1/16"));
    assert_eq!(options.drained, ["10.0.0.0/16".parse::<IpNet>().unwrap()]);
    assert!(warnings.is_empty(), "{warnings:?}");
    for (line, cause) in [
        ("10.0.0.0/16,10.9.0.0/16", "no IPv4 range is left to assign blocks"),
        ("fd00::/60", "no IPv6 range is left to assign blocks"),
        (
            "10.0.0.0/17",
            "10.0.0.0/17 is not a range of --cluster-cidr or --additional-cluster-cidrs",
        ),
        ("junk", "cannot read CIDR \"junk\""),
    ] {
        let found = refused(&format!("{two} --drain-cluster-cidrs={line}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("--drain-cluster-cidrs: "), "{found:?}");
        assert!(found[0].contains(cause), "{found:?}");
    }
    let multi = "--cidr-allocator-type=MultiCIDRRangeAllocator --drain-cluster-cidrs=10.0.0.0/16";
    let (options, warnings) = on(multi);
    assert!(warnings[0].contains("--drain-cluster-cidrs: no effect with Multi"), "{warnings:?}");
    assert!(options.drained.is_empty());
}

/// `rule:freed-blocks-rest`
#[test]
fn blocks_rest_for_a_day_at_most() {
    let line = |delay| format!("--cluster-cidr=10.0.0.0/16 --pod-cidr-reuse-delay={delay}");
    assert_eq!(on("--cluster-cidr=10.0.0.0/16").0.reuse_delay, Duration::ZERO);
    for (delay, seconds) in [("0", 0), ("90s", 90), ("24h", 86_400)] {
        assert_eq!(on(&line(delay)).0.reuse_delay, Duration::from_secs(seconds), "{delay}");
    }
    for delay in ["-1s", "24h0m1s"] {
        let found = refused(&line(delay));
        assert!(found[0].starts_with("--pod-cidr-reuse-delay: "), "{found:?}");
    }
}

#[test]
fn sloppy_but_clear_cluster_cidrs_are_accepted() {
    assert_eq!(
        pools("--cluster-cidr=_10.1.2.3/16_,_fd00::1/60_"),
        ["10.1.0.0/16 24", "fd00::/60 64"]
    );
    assert_eq!(pools("--cluster-cidr=010.000.0.0/16"), ["10.0.0.0/16 24"]);
    assert_eq!(pools("--cluster-cidr=x --cluster-cidr=10.0.0.0/16"), ["10.0.0.0/16 24"]);
}

#[test]
fn masks_outside_their_range_are_refused() {
    let v4 = "--cluster-cidr=10.0.0.0/16";
    let (short, range) = ("shorter than the prefix", "is not between 1 and");
    for (line, flag, cause) in [
        (format!("{v4} --node-cidr-mask-size=15"), "node-cidr-mask-size", short),
        (format!("{v4} --node-cidr-mask-size=33"), "node-cidr-mask-size", range),
        (format!("{v4} --node-cidr-mask-size=-1"), "node-cidr-mask-size", range),
        (format!("{v4} --node-cidr-mask-size-ipv4=8"), "node-cidr-mask-size-ipv4", short),
        ("--cluster-cidr=10.0.0.0/28".into(), "node-cidr-mask-size-ipv4", short),
        ("--cluster-cidr=fd00::/56 --node-cidr-mask-size=129".into(), "node-cidr-mask-size", range),
    ] {
        let found = refused(&line);
        assert!(found[0].starts_with(&format!("--{flag}: ")), "{line}: {found:?}");
        assert!(found[0].contains(cause), "{line}: {found:?}");
    }
}

#[test]
fn ipv6_pools_over_sixteen_bits_need_the_flag() {
    assert_eq!(pools("--cluster-cidr=beef:1234::/32 --node-cidr-mask-size=48").len(), 1);
    let found = refused("--cluster-cidr=beef:1234::/32 --node-cidr-mask-size=49");
    assert!(found[0].contains("--node-cidr-max-ipv6-bits"), "{found:?}");
    let line = "--cluster-cidr=fd00::/32 --node-cidr-mask-size=96 --node-cidr-max-ipv6-bits=64";
    assert_eq!(pools(line), ["fd00::/32 96"]);
    for bits in ["0", "65", "-1"] {
        let line = format!("--cluster-cidr=10.0.0.0/16 --node-cidr-max-ipv6-bits={bits}");
        assert!(refused(&line)[0].starts_with("--node-cidr-max-ipv6-bits: "), "{bits}");
    }
}

#[test]
fn service_ranges_are_checked_but_garbage_only_warns() {
    let cluster = "--cluster-cidr=10.0.0.0/16";
    let service = "--service-cluster-ip-range";
    for (line, cause) in [
        (format!("{cluster} {service}=10.96.0.0/12,fd00::/108,10.97.0.0/16"), "at most two"),
        (format!("{cluster} {service}=10.96.0.0/12,10.97.0.0/16"), "two IPv4"),
    ] {
        let found = refused(&line);
        assert!(found[0].starts_with("--service-cluster-ip-range: "), "{found:?}");
        assert!(found[0].contains(cause), "{found:?}");
    }
    let (options, warnings) = on(&format!("{cluster} {service}=10.0.3.0/24,junk"));
    assert_eq!(options.service_ranges.len(), 1);
    assert!(warnings[0].starts_with("--service-cluster-ip-range: "), "{warnings:?}");
    assert!(on(cluster).0.service_ranges.is_empty());
    let (options, _) = on(&format!("{cluster} {service}=fd00::/108,10.96.0.0/12"));
    assert_eq!(options.service_ranges.len(), 2, "any order of families");
}

#[test]
fn any_number_of_ranges_can_be_excluded_and_one_that_is_none_is_refused() {
    let cluster = "--cluster-cidr=10.0.0.0/16 --node-cidr-exclude";
    for (given, ranges) in [
        ("", &[][..]),
        ("10.0.3.0/24", &["10.0.3.0/24"]),
        ("10.0.3.7/24,_fd00::/64,10.0.9.0/30", &["10.0.3.0/24", "fd00::/64", "10.0.9.0/30"]),
    ] {
        let (options, warnings) = on(&format!("{cluster}={given}"));
        let excluded: Vec<String> = options.excluded.iter().map(ToString::to_string).collect();
        assert_eq!(excluded, ranges, "{given}");
        assert!(warnings.is_empty(), "{warnings:?}");
    }
    let found = refused(&format!("{cluster}=10.0.3.0/24,junk,"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("--node-cidr-exclude: ") && found[0].contains("junk"),
        "{found:?}"
    );
    let (_, warnings) = on(&format!("{cluster}=10.0.0.0/8"));
    assert!(
        warnings[0].contains("completely inside --node-cidr-exclude 10.0.0.0/8"),
        "{warnings:?}"
    );
}

#[test]
fn an_unknown_allocator_lists_the_known_ones() {
    let cluster = "--cluster-cidr=10.0.0.0/16";
    let found = refused(&format!("{cluster} --cidr-allocator-type=rangeallocator"));
    assert!(found[0].contains("MultiCIDRRangeAllocator"), "lists the valid ones: {found:?}");
    assert_eq!(
        pools(&format!("{cluster} --cidr-allocator-type=")).len(),
        1,
        "empty is the default"
    );
}

#[test]
fn all_problems_are_reported_together() {
    let found = refused(
        "--cidr-allocator-type=Bogus --cluster-cidr=junk \
         --service-cluster-ip-range=10.0.0.0/8,10.1.0.0/16 --concurrent-node-cidr-patches=0",
    );
    for flag in [
        "--cidr-allocator-type: ",
        "--cluster-cidr: ",
        "--service-cluster-ip-range: ",
        "--concurrent-node-cidr-patches: ",
    ] {
        assert!(found.iter().any(|line| line.starts_with(flag)), "{flag}: {found:?}");
    }
}

#[test]
fn a_pool_that_the_service_range_fills_is_legal() {
    let (options, warnings) =
        on("--cluster-cidr=10.0.0.0/23 --service-cluster-ip-range=10.0.0.0/21");
    assert_eq!(options.pools[0].blocks(), 2);
    assert!(warnings[0].starts_with("--cluster-cidr: 10.0.0.0/23"), "{warnings:?}");
    let (_, warnings) = on("--cluster-cidr=10.0.0.0/20 --service-cluster-ip-range=10.0.0.0/21");
    assert!(warnings.is_empty(), "{warnings:?}");
}

fn of_objects(line: &str) -> (ClusterCidrOptions, Vec<String>) {
    let line =
        format!("--allocate-node-cidrs=true --cidr-allocator-type=MultiCIDRRangeAllocator {line}");
    match verdict(&line) {
        Ok(Judged::On { cluster_cidrs: Some(of), warnings, options, .. }) => {
            assert!(options.pools.is_empty(), "{line}");
            (of, warnings)
        }
        other => panic!("{line}: {other:?}"),
    }
}

fn refused_of_objects(line: &str) -> String {
    refused(&format!("--cidr-allocator-type=MultiCIDRRangeAllocator {line}")).join("\n")
}

#[test]
fn with_objects_the_cluster_cidr_may_be_left_out_and_else_becomes_one() {
    assert_eq!(of_objects("").0.default, None);
    let bits = |line: &str| of_objects(line).0.default.map(|spec| spec.per_node_host_bits);
    assert_eq!(bits("--cluster-cidr=10.0.0.0/16"), Some(8));
    assert_eq!(bits("--cluster-cidr=10.0.0.0/16 --node-cidr-mask-size=26"), Some(6));
    let further = "--cluster-cidr=10.0.0.0/16 --additional-cluster-cidrs=10.9.0.0/16";
    assert_eq!(of_objects(further).0.default, of_objects("--cluster-cidr=10.0.0.0/16").0.default);
    let dual = of_objects("--cluster-cidr=10.0.0.0/16,fd00::/56").0.default.unwrap();
    assert_eq!((dual.per_node_host_bits, dual.per_node_host_bits_ipv4), (8, None));
    assert_eq!(dual.per_node_host_bits_ipv6, Some(64));
    let small = refused_of_objects("--cluster-cidr=10.0.0.0/30 --node-cidr-mask-size=30");
    for part in ["--cluster-cidr: ", "default-cluster-cidr from it", "10.0.0.0/30 is smaller than"]
    {
        assert!(small.contains(part), "{small}");
    }
    assert!(refused_of_objects("--cluster-cidr=junk").contains("junk"));
}

#[test]
fn the_flags_of_objects_are_judged_and_reported_where_they_have_no_effect() {
    let (of, warnings) =
        of_objects("--cluster-cidr-selector-terms=and --cluster-cidr-label-wait=0s");
    assert_eq!((of.rules.terms, of.label_wait), (Terms::And, Duration::ZERO));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(refused_of_objects("--cluster-cidr-selector-terms=xor").contains("\"xor\""));
    assert!(refused_of_objects("--cluster-cidr-label-wait=2m").contains("more than 60s"));
    let (_, warnings) = of_objects("--node-cidr-mask-size=26");
    assert!(warnings[0].starts_with("--node-cidr-mask-size: "), "{warnings:?}");
    let range = "--cluster-cidr=10.0.0.0/16 --cluster-cidr-selector-terms=and \
                 --cluster-cidr-label-wait=5s";
    let (_, warnings) = on(range);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let both = ["--cluster-cidr-selector-terms: ", "--cluster-cidr-label-wait: "];
    for (flag, warning) in both.into_iter().zip(warnings) {
        assert!(warning.starts_with(flag), "{warning}");
    }
}
