use super::*;

fn warned(args: &[&str]) -> Vec<String> {
    warnings(&values(args))
}

#[test]
fn a_flag_without_effect_warns_even_with_its_default() {
    let expected = "flags accepted without effect: --concurrent-gc-syncs";
    assert_eq!(warned(&["--concurrent-gc-syncs=20"]), [expected]);
}

#[test]
fn implemented_flags_do_not_warn() {
    let implemented = ["--kube-api-qps=5", "--secure-port=0", "--v=2", "--cluster-cidr=10.0.0.0/8"];
    assert_eq!(warned(&implemented), [""; 0]);
    assert_eq!(warned(&["--enable-leader-migration=false"]), [""; 0]);
}

#[test]
fn a_deprecated_flag_warns_on_its_own_line() {
    let expected = "--node-sync-period is deprecated: the in-tree cloud providers were removed; \
                    omit this flag";
    assert_eq!(warned(&["--node-sync-period=10s"]), [expected]);
}

#[test]
fn tls_settings_that_cannot_be_had_warn_and_the_others_do_not() {
    let served = ["--tls-min-version=VersionTLS13", "--tls-curve-preferences=29,23"];
    assert_eq!(warned(&served), [""; 0]);
    let lines = warned(&["--tls-min-version=VersionTLS11", "--tls-curve-preferences=4588,29"]);
    let expected = [
        "--tls-min-version: VersionTLS11 is not served; the oldest version is TLS 1.2",
        "--tls-curve-preferences: 4588 (X25519MLKEM768) is not supported and ignored",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn health_paths_that_probes_cannot_reach_are_named() {
    let lines = warned(&["--authorization-always-allow-paths=/metrics,livez"]);
    let expected = "--authorization-always-allow-paths does not contain /readyz, /healthz: \
                    probes of the kubelet, which send no credentials, are refused there";
    assert_eq!(lines, [expected]);
    assert_eq!(warned(&["--authorization-always-allow-paths=/*"]), [""; 0]);
}

#[test]
fn a_ca_that_is_both_for_clients_and_for_proxies_is_reported_unless_names_are_given() {
    let same = ["--client-ca-file=/pki/ca.crt", "--requestheader-client-ca-file=/pki/ca.crt"];
    let expected = "--requestheader-client-ca-file is --client-ca-file, and \
                    --requestheader-allowed-names is empty: every client with a certificate of \
                    this CA can impersonate any user";
    assert_eq!(warned(&same), [expected]);
    let named = [same[0], same[1], "--requestheader-allowed-names=front-proxy-client"];
    assert_eq!(warned(&named), [""; 0]);
    let apart = [same[0], "--requestheader-client-ca-file=/pki/front-proxy-ca.crt"];
    assert_eq!(warned(&apart), [""; 0]);
    assert_eq!(warned(&["--v=2"]), [""; 0]);
}

#[test]
fn feature_gates_without_effect_share_one_line() {
    let lines = warned(&["--feature-gates=Foo=true,other:LoggingBetaOptions=true,AllBeta=true"]);
    let expected = "feature gates without effect in this program: Foo=true, \
                    other:LoggingBetaOptions=true";
    assert_eq!(lines, [expected]);
}

#[test]
fn coordinated_leader_election_is_ignored_aloud() {
    let lines = warned(&["--feature-gates=CoordinatedLeaderElection=true"]);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("feature gate CoordinatedLeaderElection is ignored"));
    assert_eq!(warned(&["--feature-gates=CoordinatedLeaderElection=false"]), [""; 0]);
}

#[test]
fn an_upstream_controller_turned_off_does_not_warn() {
    assert_eq!(warned(&["--controllers=*,-tokencleaner"]), [""; 0]);
    let expected = "controllers not hosted by this program: ttl-controller";
    assert_eq!(warned(&["--controllers=*,ttl-controller"]), [expected]);
}
