//! Any command line: it is read, refused in words, or judged to the last value.

use std::ffi::OsString;
use std::sync::LazyLock;

use ::flags::Spec;
use ::flags::controllers::Known;
use infra_controller_manager::flags::{Parsed, parse};
use infra_controller_manager::settings::{ProcessSettings, controller_flags, known};
use infra_controller_manager::{build, controllers};

static CONTROLLERS: LazyLock<(Known, Vec<&'static [Spec]>)> = LazyLock::new(|| {
    (known(controllers::ALL).expect("no name twice"), controller_flags(controllers::ALL))
});

/// Arguments stand on lines of their own.
pub(crate) fn are_read_or_refused(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let arguments = std::iter::once("fuzz").chain(text.lines()).map(OsString::from);
    let (known, flags) = &*CONTROLLERS;
    match parse(arguments, flags, known, &build::INFO) {
        Err(error) => {
            let message = error.message();
            assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
        }
        Ok(Parsed::Print(text)) => assert!(text.ends_with('\n')),
        Ok(Parsed::Run(values)) => {
            for (name, value) in values.effective() {
                assert!(!format!("--{name}={value:?}").is_empty());
            }
            if let Err(problems) = ProcessSettings::new(&values, known, controllers::ALL) {
                assert!(problems.iter().all(|problem| !problem.to_string().is_empty()));
            }
        }
    }
}

/// Every flag with its default, and what people write.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let (_, flags) = &*CONTROLLERS;
    let groups = infra_controller_manager::flags::table::GROUPS.iter().chain(flags);
    let names: Vec<_> = groups.flat_map(|group| group.iter()).map(|spec| spec.name).collect();
    let mut seeds: Vec<Vec<u8>> =
        names.chunks(6).map(|names| format!("--{}=1", names.join("=1\n--")).into_bytes()).collect();
    let written = [
        "--allocate-node-cidrs\n--cluster-cidr=10.0.0.0/16,fd00::/48\n--node-cidr-mask-size-ipv4=24",
        "--controllers=*,-node-ipam-controller\n--v=2\n--vmodule=a=1,b*=2",
        "--leader-elect-lease-duration=1h2m3.5s\n--leader-elect-renew-deadline\n10s",
        "--feature-gates=A=true,B=false\n--tls-cipher-suites=TLS_AES_128_GCM_SHA256\n--tls-min-version=VersionTLS12",
        "--controller-qps=node-ipam-controller=5/10\n--kube-api-qps=1e2\n--secure-port=0",
        "--cidr-allocator-type=MultiCIDRRangeAllocator\n--service-cluster-ip-range=10.96.0.0/12",
        "--tls-sni-cert-key=a,b:*.example.com\n--bind-address=::\n--allow-metric-labels=a,b='c,d'",
        "--help",
        "--version=raw",
        "-v\n3\n--\nstray",
    ];
    seeds.extend(written.map(|text| text.as_bytes().to_vec()));
    seeds
}
