//! Any command line: it is read, refused in words, or judged to the last value.

use std::ffi::OsString;
use std::sync::LazyLock;

use ::flags::argv::normalise;
use ::flags::controllers::Known;
use ::flags::{Spec, Values};
use infra_controller_manager::flags::{Parsed, parse};
use infra_controller_manager::settings::{ProcessSettings, controller_flags, known};
use infra_controller_manager::{build, controllers};

static SPECS: LazyLock<Vec<&'static Spec>> = LazyLock::new(|| {
    let groups = infra_controller_manager::flags::table::GROUPS.iter().chain(&CONTROLLERS.1);
    groups.flat_map(|group| group.iter()).collect()
});

static CONTROLLERS: LazyLock<(Known, Vec<&'static [Spec]>)> = LazyLock::new(|| {
    (known(controllers::ALL).expect("no name twice"), controller_flags(controllers::ALL))
});

/// Arguments stand on lines of their own, after a byte that selects how they are read: now and then as a whole, whose
/// refusal repeats the help of hundreds of flags.
pub(crate) fn are_read_or_refused(data: &[u8]) {
    let Some((select, data)) = crate::selected(data) else { return };
    let text = String::from_utf8_lossy(data);
    let (known, flags) = &*CONTROLLERS;
    let values = if select == 0 {
        let arguments = std::iter::once("fuzz").chain(text.lines()).map(OsString::from);
        match parse(arguments, flags, known, &build::INFO) {
            Err(error) => {
                let message = error.message();
                assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
                return;
            }
            Ok(Parsed::Print(text)) => return assert!(text.ends_with('\n')),
            Ok(Parsed::Run(values)) => values,
        }
    } else {
        let Some(values) = values(&text) else { return };
        values
    };
    for (name, value) in values.effective() {
        assert!(!format!("--{name}={value:?}").is_empty());
    }
    if let Err(problems) = ProcessSettings::new(&values, known, controllers::ALL) {
        assert!(problems.iter().all(|problem| !problem.to_string().is_empty()));
    }
}

/// The values of flags as `parse` reads them, without clap and help.
fn values(text: &str) -> Option<Values> {
    let kind_of = |name: &str| SPECS.iter().find(|spec| spec.name == name).map(|spec| spec.kind);
    let argv = normalise(text.lines().map(str::to_owned), kind_of).ok()?;
    let given = argv.flags.iter().map(|flag| {
        let flag = flag.trim_start_matches('-');
        flag.split_once('=').unwrap_or((flag, "")) // of a flag that is not known
    });
    match Values::from_given(SPECS.iter().copied(), given) {
        Ok(values) => Some(values),
        Err(problem) => {
            assert!(!problem.to_string().is_empty());
            None
        }
    }
}

/// Every flag with its default, and what people write.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let names: Vec<_> = SPECS.iter().map(|spec| spec.name).collect();
    let mut seeds: Vec<Vec<u8>> = names
        .chunks(6)
        .map(|names| format!("\x01--{}=1", names.join("=1\n--")).into_bytes())
        .collect();
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
    for select in [0, 1] {
        seeds.extend(written.map(|text| [&[select][..], text.as_bytes()].concat()));
    }
    seeds
}
