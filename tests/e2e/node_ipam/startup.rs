//! Bad flags: exit code 1 before anything is contacted, and a message that names the flag and the
//! cause.

use std::time::Duration;

use tests::control_plane::MANAGER_USER;
use tests::{FaultProxy, Match, Process, mk_node, poll};

/// An error comes at once; this is for a busy machine.
const AT_ONCE: Duration = tests::PATIENCE;

/// Starts with these flags and no API server anywhere; returns what was printed after exit 1.
async fn refused(args: &str) -> String {
    let manager = Process::bare()
        .args(["--allocate-node-cidrs=true", "--kubeconfig=/nonexistent"])
        .args(args.split_whitespace())
        .start();
    let status = manager.exit(AT_ONCE).await;
    assert_eq!(status.code(), Some(1), "{args}: {:?}", manager.lines());
    manager.lines().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_error_names_its_flag_and_its_cause() {
    const V4: &str = "--cluster-cidr=10.0.0.0/16";
    const V6: &str = "--cluster-cidr=fd00::/56";
    const DUAL: &str = "--cluster-cidr=10.0.0.0/16,fd00::/60";
    let rows: &[(&str, String, &str, &str)] = &[
        ("no cluster CIDR", String::new(), "--cluster-cidr", "must be set"),
        ("unparsable", "--cluster-cidr=10.0.0.0".into(), "--cluster-cidr", "10.0.0.0"),
        ("empty element", "--cluster-cidr=10.0.0.0/16,".into(), "--cluster-cidr", "empty"),
        (
            "three",
            "--cluster-cidr=10.0.0.0/16,fd00::/60,10.1.0.0/16".into(),
            "--cluster-cidr",
            "at most two",
        ),
        (
            "one family twice",
            "--cluster-cidr=10.0.0.0/16,10.1.0.0/16".into(),
            "--cluster-cidr",
            "different IP families",
        ),
        (
            "three service ranges",
            format!("{V4} --service-cluster-ip-range=10.96.0.0/12,fd00::/108,10.1.0.0/16"),
            "--service-cluster-ip-range",
            "at most two",
        ),
        (
            "one family twice in the service ranges",
            format!("{V4} --service-cluster-ip-range=10.96.0.0/12,10.1.0.0/16"),
            "--service-cluster-ip-range",
            "different IP families",
        ),
        (
            "single size with two CIDRs",
            format!("{DUAL} --node-cidr-mask-size=26"),
            "--node-cidr-mask-size",
            "two cluster CIDRs",
        ),
        (
            "size and family size",
            format!("{V4} --node-cidr-mask-size=26 --node-cidr-mask-size-ipv4=26"),
            "--node-cidr-mask-size",
            "together",
        ),
        (
            "IPv4 size on IPv6",
            format!("{V6} --node-cidr-mask-size-ipv4=24"),
            "--node-cidr-mask-size-ipv4",
            "no IPv4",
        ),
        (
            "IPv6 size on IPv4",
            format!("{V4} --node-cidr-mask-size-ipv6=64"),
            "--node-cidr-mask-size-ipv6",
            "no IPv6",
        ),
        (
            "mask shorter than prefix",
            format!("{V4} --node-cidr-mask-size=15"),
            "--node-cidr-mask-size",
            "/16",
        ),
        ("mask over 32", format!("{V4} --node-cidr-mask-size=33"), "--node-cidr-mask-size", "33"),
        ("mask negative", format!("{V4} --node-cidr-mask-size=-1"), "--node-cidr-mask-size", "-1"),
        (
            "17 bits of IPv6",
            "--cluster-cidr=beef:1234::/32 --node-cidr-mask-size=49".into(),
            "--node-cidr-mask-size",
            "--node-cidr-max-ipv6-bits",
        ),
        (
            "an allocator that asks a cloud, and none",
            format!("{V4} --cidr-allocator-type=CloudAllocator"),
            "--cidr-allocator-type",
            "--cloud-provider=gce",
        ),
        (
            "an unknown allocator lists the valid ones",
            format!("{V4} --cidr-allocator-type=range"),
            "--cidr-allocator-type",
            "RangeAllocator, CloudAllocator",
        ),
        ("unknown cloud", format!("{V4} --cloud-provider=acme"), "--cloud-provider", "acme"),
    ];
    for (name, args, flag, cause) in rows {
        let output = refused(args).await;
        let line = output.lines().find(|line| line.contains(&format!("{flag}: ")));
        let line = line.unwrap_or_else(|| panic!("{name}: no line names {flag}: {output}"));
        assert!(line.contains(cause), "{name}: {cause:?} is missing in {line:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_errors_are_reported_together() {
    let output = refused(
        "--cluster-cidr=10.0.0.0/16 --node-cidr-mask-size=8 --cidr-allocator-type=x \
         --service-cluster-ip-range=10.0.0.0/8,10.1.0.0/16 --kube-api-qps=0 \
         --leader-elect-lease-duration=1s --controllers=nonsense",
    )
    .await;
    for flag in [
        "--node-cidr-mask-size: ",
        "--cidr-allocator-type: ",
        "--service-cluster-ip-range: ",
        "--kube-api-qps: ",
        "--leader-elect-lease-duration: ",
        "--controllers: ",
    ] {
        assert!(output.contains(flag), "{flag} is missing in {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unparsable_service_range_only_warns() {
    let story = crate::story::Story::begin(
        "--cluster-cidr=10.0.0.0/16 --service-cluster-ip-range=10.0.0.0/24,junk",
    )
    .await;
    let line = story.manager.line("--service-cluster-ip-range").await;
    assert!(line.starts_with('W') || line.contains("FLAG"), "{line}");
    story
        .manager
        .line_where("the warning", |line| {
            line.starts_with('W')
                && line.contains("--service-cluster-ip-range")
                && line.contains("junk")
        })
        .await;
    assert_eq!(story.add("a").await, ["10.0.1.0/24"], "the other range is kept out");
    story.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_allocate_node_cidrs_nothing_is_checked_and_no_node_is_served() {
    let cluster = tests::cluster().await;
    let proxy = FaultProxy::start(&cluster, MANAGER_USER, &[]).await;
    mk_node("a").create(&cluster.client().await).await;
    let manager = Process::with_kubeconfig(proxy.kubeconfig())
        .args(["--cluster-cidr=nonsense", "--cidr-allocator-type=none", "--leader-elect=false"])
        .start();
    manager.line("--allocate-node-cidrs is false").await;
    let ready = async || manager.get("/readyz").await.ok().filter(|(code, _)| *code == 200);
    poll("it is ready", ready).await;
    assert!(manager.is_running());
    let running = manager.metric("running_managed_controllers", &[("name", "nodeipam")]).await;
    assert_eq!(running, None, "as of a controller that was never started");
    let about_nodes = proxy.requests_like(&Match::any().path_prefix("/api/v1/nodes"));
    assert!(about_nodes.is_empty(), "{about_nodes:?}");
}
