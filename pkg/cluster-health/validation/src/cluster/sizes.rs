//! Numbers of Pods and Services.

use crate::findings::Findings;
use crate::place::Place;

const PODS_OF_A_NODE: [i64; 5] = [16, 32, 64, 128, 256];
const SERVICES: [i64; 11] = [32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768];

pub(super) fn check(spec: &Place<'_>, findings: &mut Findings) {
    let properties = spec.field("properties");
    one_of(&properties.field("maxNodePodNum"), &PODS_OF_A_NODE, findings);
    let services = properties.field("maxClusterServiceNum");
    one_of(&services, &SERVICES, findings);
    if !services.is_absent() && spec.field("serviceCIDR").word().is_some() {
        findings.forbidden(&services, "spec.serviceCIDR says how many Services there are");
    }
}

fn one_of(at: &Place<'_>, sizes: &[i64], findings: &mut Findings) {
    if at.number().is_some_and(|number| !sizes.contains(&number)) {
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        findings.not_supported(at, &at.shown(), sizes.iter().map(String::as_str));
    }
}
