//! Rules of KubeFed's KubeFedConfig, of which the block about health is read

use kube_api::go::GoDuration;

use crate::findings::Findings;
use crate::place::Place;

pub(crate) fn check(object: &Place<'_>, findings: &mut Findings) {
    let spec = object.field("spec");
    if spec.is_absent() {
        return findings.required(&spec, "the settings of the federation");
    }
    let health = spec.field("clusterHealthCheck");
    if health.is_absent() {
        return findings.required(&health, "how members are probed");
    }
    for name in ["period", "timeout"] {
        let at = health.field(name);
        match at.word().map(str::parse::<GoDuration>) {
            None => findings.required(&at, "a duration, such as 10s"),
            Some(Ok(duration)) if !duration.to_std().is_zero() => {}
            Some(_) => findings.invalid(&at, "must be a duration above 0, such as 10s"),
        }
    }
    for name in ["failureThreshold", "successThreshold"] {
        let at = health.field(name);
        match at.number() {
            None => findings.required(&at, "a number of probes, such as 3"),
            Some(number) if number < 1 => findings.invalid(&at, "must be greater than 0"),
            Some(_) => {}
        }
    }
}
