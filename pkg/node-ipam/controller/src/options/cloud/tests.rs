//! Every rule of the start that concerns a cloud.

use super::*;
use crate::flags::FLAGS;
use crate::options::{Judged, judge};

fn verdict(line: &str) -> Result<Judged, Vec<String>> {
    let given = line.split_whitespace().map(|arg| {
        let (name, value) = arg.trim_start_matches("--").split_once('=').unwrap();
        (name, value)
    });
    let given = [("allocate-node-cidrs", "true")].into_iter().chain(given);
    let judged = judge(&Values::from_given(FLAGS, given).unwrap());
    judged.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

fn on(line: &str) -> (Option<CloudOptions>, Vec<String>) {
    match verdict(line) {
        Ok(Judged::On { cloud, warnings, .. }) => (cloud.map(|cloud| *cloud), warnings),
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(line: &str) -> Vec<String> {
    verdict(line).map(|judged| format!("{judged:?}")).expect_err(line)
}

const GCE: &str = "--cloud-provider=gce --configure-cloud-routes=false";
const CLUSTER: &str = "--cluster-cidr=10.0.0.0/16";

#[test]
fn an_allocator_that_asks_a_cloud_needs_one_and_both_flags_are_named() {
    for kind in ["CloudAllocator", "IPAMFromCluster", "IPAMFromCloud"] {
        for provider in ["", "--cloud-provider=external"] {
            let found = refused(&format!("{CLUSTER} {provider} --cidr-allocator-type={kind}"));
            assert!(
                found[0].starts_with("--cidr-allocator-type: ")
                    && found[0].contains(kind)
                    && found[0].contains("--cloud-provider=gce"),
                "{found:?}"
            );
        }
        assert!(on(&format!("{CLUSTER} {GCE} --cidr-allocator-type={kind}")).0.is_some());
    }
}

#[test]
fn other_allocators_ask_no_cloud_whatever_the_provider_is() {
    for provider in [GCE, "--cloud-provider=external", ""] {
        let (cloud, warnings) = on(&format!("{CLUSTER} {provider}"));
        assert!(cloud.is_none() && warnings.is_empty(), "{provider}: {warnings:?}");
    }
    let found = refused(&format!("{CLUSTER} --cloud-provider=aws"));
    assert!(found[0].starts_with("--cloud-provider: \"aws\" is not a"), "{found:?}");
}

#[test]
fn the_cloud_allocator_needs_no_range_and_says_that_it_ignores_those_that_are_given() {
    let kind = "--cidr-allocator-type=CloudAllocator";
    let (cloud, warnings) = on(&format!("{GCE} {kind} --service-cluster-ip-range=fd00::/112"));
    let Some(CloudOptions { mode: Mode::Copy(families), .. }) = cloud else { panic!("{cloud:?}") };
    assert_eq!(families, Families::of_services(&["fd00::/112".parse().unwrap()]));
    assert!(warnings.is_empty(), "{warnings:?}");
    let (_, warnings) =
        on(&format!("{GCE} {kind} --cluster-cidr=nonsense --node-cidr-mask-size=99"));
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[test]
fn a_reuse_delay_is_for_those_that_choose_blocks() {
    for (kind, is_warned) in
        [("CloudAllocator", true), ("IPAMFromCloud", true), ("IPAMFromCluster", false)]
    {
        let pool = if kind == "CloudAllocator" { "" } else { CLUSTER };
        let (_, warnings) =
            on(&format!("{GCE} {pool} --cidr-allocator-type={kind} --pod-cidr-reuse-delay=1m"));
        let told = warnings.iter().any(|it| it.starts_with("--pod-cidr-reuse-delay: no effect"));
        assert_eq!(told, is_warned, "{kind}: {warnings:?}");
    }
}

#[test]
fn ipam_gives_out_the_first_range_only() {
    for (kind, expected) in
        [("IPAMFromCluster", Direction::FromCluster), ("IPAMFromCloud", Direction::FromCloud)]
    {
        let line =
            format!("{GCE} --cluster-cidr=10.0.0.0/16,fd00::/60 --cidr-allocator-type={kind}");
        let (cloud, warnings) = on(&line);
        let Some(CloudOptions { mode: Mode::Sync { direction, pool, .. }, .. }) = cloud else {
            panic!("{cloud:?}")
        };
        assert_eq!((direction, pool.cidr().to_string()), (expected, "10.0.0.0/16".to_owned()));
        assert!(warnings[0].contains("not fd00::/60"), "{warnings:?}");
        let found = refused(&format!("{GCE} --cidr-allocator-type={kind}"));
        assert!(found[0].contains("must be set"), "{found:?}");
    }
}

#[test]
fn ipam_is_refused_when_no_block_is_left_and_needs_no_service_range() {
    let kind = "--cidr-allocator-type=IPAMFromCluster";
    let full = format!("{GCE} {kind} {CLUSTER} --service-cluster-ip-range=10.0.0.0/15");
    assert!(refused(&full)[0].contains("no block of 10.0.0.0/16 is left"));
    let half = format!("{GCE} {kind} {CLUSTER} --service-cluster-ip-range=10.0.0.0/17");
    let excluded = format!("{half} --node-cidr-exclude=10.0.128.0/17");
    assert!(refused(&excluded)[0].contains("no block of 10.0.0.0/16 is left"));
    assert!(on(&half).0.is_some());
    assert!(on(&format!("{GCE} {kind} {CLUSTER}")).0.is_some());
}

#[test]
fn an_invalid_file_is_refused_and_an_unused_file_is_a_warning() {
    let kind = "--cidr-allocator-type=CloudAllocator --cloud-config=/nowhere/cloud.conf";
    let found = refused(&format!("{GCE} {kind}"));
    assert!(found[0].starts_with("--cloud-config: cannot read /nowhere/cloud.conf"), "{found:?}");
    let (_, warnings) = on(&format!("{CLUSTER} --cloud-config=/nowhere/cloud.conf"));
    assert!(warnings[0].starts_with("--cloud-config: no effect"), "{warnings:?}");
}

#[test]
fn routes_that_no_program_creates_are_a_warning() {
    let with = "--cloud-provider=gce";
    let (_, warnings) = on(&format!("{CLUSTER} {with}"));
    assert!(warnings[0].contains("this program creates no routes"), "{warnings:?}");
    let (_, warnings) = on(&format!("{with} --cidr-allocator-type=CloudAllocator"));
    assert!(warnings[0].contains("the cloud routes the alias ranges"), "{warnings:?}");
}
