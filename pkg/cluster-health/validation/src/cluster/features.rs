//! `spec.features`.

use crate::findings::Findings;
use crate::formats;
use crate::place::Place;

const GPU_TYPES: [&str; 2] = ["Physical", "Virtual"];

pub(super) fn check(spec: &Place<'_>, findings: &mut Findings) {
    let features = spec.field("features");
    let gpu = features.field("gpuType");
    if gpu.text().is_some_and(|text| !GPU_TYPES.contains(&text)) {
        findings.not_supported(&gpu, &gpu.shown(), GPU_TYPES);
    }
    let ipvs = features.field("ipvs");
    if ipvs.is_true() && spec.field("serviceCIDR").word().is_none() {
        findings.invalid(&ipvs, "needs spec.serviceCIDR");
    }
    high_availability(&features.field("ha"), findings);
    for file in features.field("files").items() {
        for path in ["src", "dst"].map(|name| file.field(name)) {
            if path.is_absent() {
                findings.required(&path, "a file is copied from src to dst");
            }
        }
    }
}

fn high_availability(ha: &Place<'_>, findings: &mut Findings) {
    let (own, others) = (ha.field("tke"), ha.field("thirdParty"));
    for kind in [&own, &others] {
        let vip = kind.field("vip");
        if !kind.is_absent() && vip.text().and_then(formats::ip).is_none() {
            findings.invalid(&vip, formats::IP);
        }
    }
    let port = others.field("vport");
    if !others.is_absent() && port.is_absent() {
        findings.invalid(&port, formats::PORT);
    }
}
