use super::*;

/// A command line and the start of the one problem it must have.
fn assert_refused(args: &[&str], start: &str) {
    let problems = problems(args);
    assert_eq!(problems.len(), 1, "{args:?}: {problems:?}");
    assert!(problems[0].starts_with(start), "{args:?}: {problems:?}");
}

fn assert_fine(args: &[&str]) {
    assert_eq!(problems(args), [""; 0], "{args:?}");
}

#[test]
fn leader_migration_is_refused() {
    assert_refused(&["--enable-leader-migration"], "--enable-leader-migration: leader migration");
    assert_refused(
        &["--leader-migration-config=/x"],
        "--leader-migration-config: leader migration",
    );
    assert_fine(&["--enable-leader-migration=false", "--leader-migration-config="]);
}

#[test]
fn a_master_with_a_password_is_refused_without_a_word_of_it() {
    for address in ["https://me:hunter2@a", "me:hunter2@10.0.0.1:6443", "ftp://a"] {
        let flag = format!("--master={address}");
        assert_refused(&[&flag], "--master: it must be host:port");
        assert!(!problems(&[&flag])[0].contains("hunter2"));
    }
    for address in ["", "10.0.0.1:8080", "https://api.example:6443"] {
        assert_fine(&[&format!("--master={address}")]);
    }
}

#[test]
fn words_and_pairs_that_cannot_be_obeyed_are_refused() {
    let allocating = ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"];
    let second = |word: &str| format!("--on-second-allocator={word}");
    assert_refused(&[allocating[0], allocating[1], &second("go-on")], "--on-second-allocator: ");
    for word in ["pause", "stop", "warn"] {
        assert_fine(&[allocating[0], allocating[1], &second(word)]);
    }
    assert_refused(
        &["--dry-run", "--install-crds"],
        "--install-crds: cannot be combined with --dry-run",
    );
    for rate in ["1", "0:1", "1:0", "nan:1", "1:-1", ""] {
        assert_refused(&[&format!("--controller-qps=nodeipam={rate}")], "--controller-qps: ");
    }
    assert_refused(&["--controller-qps=unknown=1:1"], "--controller-qps: there is no controller");
}

#[test]
fn only_leases_are_locks() {
    for lock in ["endpoints", "configmaps", "endpointsleases", ""] {
        let flag = format!("--leader-elect-resource-lock={lock}");
        assert_refused(&[&flag], "--leader-elect-resource-lock: ");
    }
}

#[test]
fn the_lease_of_the_stock_manager_is_refused_unless_allowed() {
    const NAME: &str = "--leader-elect-resource-name=kube-controller-manager";
    assert_refused(&[NAME], "--leader-elect-resource-name: kube-system/kube-controller-manager");
    assert_fine(&[NAME, "--allow-stock-lease-name"]);
    assert_fine(&[NAME, "--leader-elect-resource-namespace=other"]);
}

#[test]
fn a_lease_must_have_a_name_that_the_server_takes() {
    for name in ["", "Upper", "a_b", "-a", "a-", "a..b", &"a".repeat(254)] {
        let flag = format!("--leader-elect-resource-name={name}");
        assert_refused(&[&flag], "--leader-elect-resource-name: ");
    }
    for namespace in ["", "a.b", "A", &"a".repeat(64)] {
        let flag = format!("--leader-elect-resource-namespace={namespace}");
        assert_refused(&[&flag], "--leader-elect-resource-namespace: ");
    }
    assert_fine(&["--leader-elect-resource-name=a.b-1"]);
}

#[test]
fn lease_timings_must_fit_into_each_other() {
    let lease = "--leader-elect-lease-duration";
    let deadline = "--leader-elect-renew-deadline";
    let retry = "--leader-elect-retry-period";
    let set = |flag: &str, value: &str| format!("{flag}={value}");
    assert_refused(&[&set(lease, "10s")], "--leader-elect-lease-duration: 10s is not greater than");
    assert_refused(&[&set(lease, "0")], "--leader-elect-lease-duration: must be greater than zero");
    assert_refused(
        &[&set(deadline, "-1s")],
        "--leader-elect-renew-deadline: must be greater than zero",
    );
    assert_refused(&[&set(retry, "0s")], "--leader-elect-retry-period: must be greater than zero");
    assert_refused(
        &[&set(deadline, "2.4s")],
        "--leader-elect-renew-deadline: 2.4s is not greater than 1.2 times",
    );
    assert_fine(&[&set(deadline, "2.401s")]);
    let short = [&*set(lease, "900ms"), &*set(deadline, "600ms"), &*set(retry, "100ms")];
    assert_refused(&short, "--leader-elect-lease-duration: 900ms is less than 1s");
    assert_fine(&[&set(lease, "4s"), &set(deadline, "3s"), &set(retry, "500ms")]);
}

#[test]
fn without_election_lease_flags_are_not_judged() {
    let unused = ["--leader-elect-resource-lock=endpoints", "--leader-elect-lease-duration=1ns"];
    assert_fine(&["--leader-elect=false", unused[0], unused[1]]);
}

#[test]
fn cloud_providers_other_than_external_and_gce_are_refused() {
    assert_fine(&["--cloud-provider="]);
    assert_fine(&["--cloud-provider=external"]);
    for cloud in ["aws", "azure", "GCE", "vsphere"] {
        let flag = format!("--cloud-provider={cloud}");
        assert_refused(&[&flag], "--cloud-provider: ");
    }
}

#[test]
fn an_allocator_that_asks_a_cloud_is_refused_without_one() {
    let args = ["--allocate-node-cidrs", "--cidr-allocator-type=CloudAllocator"];
    assert_refused(&args, "--cidr-allocator-type: CloudAllocator takes pod CIDRs from a cloud");
    assert_fine(&[args[0], args[1], "--cloud-provider=gce"]);
}

#[test]
fn the_content_type_is_protobuf_or_json() {
    assert_fine(&["--kube-api-content-type=application/json"]);
    assert_fine(&["--kube-api-content-type=application/vnd.kubernetes.protobuf"]);
    for content in ["", "application/cbor", "json"] {
        let flag = format!("--kube-api-content-type={content}");
        assert_refused(&[&flag], "--kube-api-content-type: ");
    }
}

#[test]
fn rates_that_would_stop_all_requests_are_refused() {
    assert_refused(&["--kube-api-qps=0"], "--kube-api-qps: 0 would stop all requests");
    assert_refused(&["--kube-api-burst=0"], "--kube-api-burst: 0 allows no request");
    assert_refused(&["--kube-api-burst=-1"], "--kube-api-burst: -1 allows no request");
    assert_fine(&["--kube-api-qps=-1", "--kube-api-burst=0"]);
    assert_refused(&["--kube-api-qps=nan"], "--kube-api-qps: NaN is not a rate");
    assert_refused(&["--event-qps=inf"], "--event-qps: inf is not a rate");
    assert_refused(&["--event-burst=-1"], "--event-burst: -1 is negative");
    let borrowed = ["--kube-api-qps=-1", "--kube-api-burst=0", "--event-qps=5"];
    assert_refused(&borrowed, "--event-burst: 0 allows no request although --event-qps");
    assert_fine(&["--event-qps=-1", "--event-burst=0"]);
}

#[test]
fn ports_and_counts_have_ranges() {
    for port in ["-1", "65536"] {
        assert_refused(&[&format!("--secure-port={port}")], "--secure-port: ");
    }
    for port in ["0", "1", "65535"] {
        assert_fine(&[&format!("--secure-port={port}")]);
    }
    let streams = "--http2-max-streams-per-connection";
    assert_refused(&[&format!("{streams}=-1")], "--http2-max-streams-per-connection: -1");
}

#[test]
fn certificate_and_key_come_together() {
    assert_refused(&["--tls-cert-file=a"], "--tls-private-key-file: must be set together");
    assert_refused(&["--tls-private-key-file=a"], "--tls-cert-file: must be set together");
    assert_fine(&["--tls-cert-file=a", "--tls-private-key-file=b"]);
}

#[test]
fn tls_versions_are_gos_names() {
    assert_fine(&["--tls-min-version=VersionTLS13"]);
    assert_refused(&["--tls-min-version=1.3"], "--tls-min-version: \"1.3\" is not a TLS version");
}

#[test]
fn suites_and_groups_of_which_nothing_can_be_served_are_refused() {
    let (suites, groups) = ("--tls-cipher-suites", "--tls-curve-preferences");
    assert_fine(&[&format!("{suites}=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")]);
    let none = [&*format!("{suites}=TLS_RSA_WITH_AES_128_CBC_SHA")];
    assert_refused(&none, "--tls-cipher-suites: none of these cipher suites is supported");
    let typo = [&*format!("{suites}=TLS_AES_128_GCM_SHA256,TLS_AES")];
    assert_refused(&typo, "--tls-cipher-suites: \"TLS_AES\" is not a cipher suite");
    assert_refused(&[&format!("{groups}=25")], "--tls-curve-preferences: none of these groups");
    assert_refused(&[&format!("{groups}=29,1")], "--tls-curve-preferences: 1 is not a key");
}

#[test]
fn durations_that_mean_nothing_are_refused() {
    for flag in [
        "controller-shutdown-timeout",
        "controller-start-interval",
        "min-resync-period",
        "authentication-token-webhook-cache-ttl",
        "authorization-webhook-cache-authorized-ttl",
        "authorization-webhook-cache-unauthorized-ttl",
    ] {
        assert_refused(&[&format!("--{flag}=-1s")], &format!("--{flag}: -1s is negative"));
        assert_fine(&[&format!("--{flag}=0")]);
    }
    assert_refused(&["--log-flush-frequency=0"], "--log-flush-frequency: 0s is not greater");
}

#[test]
fn log_options_stand_behind_their_gates() {
    assert_fine(&["--logging-format=json"]);
    assert_refused(&["--logging-format=xml"], "--logging-format: \"xml\"");
    let closed = ["--logging-format=json", "--feature-gates=LoggingBetaOptions=false"];
    assert_refused(&closed, "--logging-format: needs the feature gate LoggingBetaOptions");
    assert_refused(&["--logging-format=json", "--feature-gates=AllBeta=false"], "--logging-format");
    assert_refused(&["--logging-format=json", "--vmodule=a=1"], "--vmodule: ");
    for option in [
        "--log-text-split-stream",
        "--log-json-split-stream",
        "--log-text-info-buffer-size=1Ki",
        "--log-json-info-buffer-size=1Ki",
    ] {
        let name = option.split('=').next().unwrap();
        let start = format!("{name}: needs the feature gate LoggingAlphaOptions");
        assert_refused(&[option], &start);
        assert_fine(&[option, "--feature-gates=LoggingAlphaOptions=true"]);
        assert_fine(&[option, "--feature-gates=AllAlpha=true"]);
    }
    assert_fine(&["--log-text-split-stream=false", "--log-json-info-buffer-size=0"]);
}

#[test]
fn all_problems_are_reported_together() {
    let found = problems(&[
        "--enable-leader-migration",
        "--leader-elect-resource-lock=endpoints",
        "--kube-api-qps=0",
        "--cloud-provider=aws",
        "--secure-port=70000",
        "--logging-format=xml",
    ]);
    assert_eq!(found.len(), 6, "{found:?}");
}

#[test]
fn an_additional_address_is_one_that_nothing_listens_on_already() {
    const LOCAL: &str = "--bind-address=127.0.0.1";
    for (address, rule) in [
        ("host", "\"host\" is not an IP address"),
        ("127.0.0.1", "\"127.0.0.1\" is given more than once"),
        ("::", "\"::\" means all addresses"),
        ("10.0.0.1,10.0.0.1", "\"10.0.0.1\" is given more than once"),
    ] {
        let flag = format!("--additional-bind-addresses={address}");
        assert_refused(&[LOCAL, &flag], &format!("--additional-bind-addresses: {rule}"));
    }
    assert_refused(&["--additional-bind-addresses=10.0.0.1"], "--additional-bind-addresses: ");
    assert_fine(&[LOCAL, "--additional-bind-addresses=10.0.0.1,fd00::1"]);
}

#[test]
fn metric_labels_are_named_with_their_metric() {
    assert_refused(&["--allow-metric-labels=metric=a"], "--allow-metric-labels: \"metric\" does");
    assert_fine(&["--allow-metric-labels=metric,label=a,b"]);
}
