use super::*;
use crate::flags::FLAGS;

fn verdict(line: &str) -> Result<Options, Vec<Problem>> {
    let given = line
        .split_whitespace()
        .map(|arg| arg.trim_start_matches("--").split_once('=').expect("every flag has a value"));
    judge(&Values::from_given(FLAGS, given).expect("the syntax is right"))
}

#[test]
fn by_default_all_clusters_are_kept_where_their_crd_is_ours() {
    let wanted = Options {
        mode: Mode::Auto,
        cluster_concurrency: 10,
        sync_period: Duration::from_secs(600),
        namespace: None,
        watch_filter: None,
        generate_ca: true,
        #[cfg(feature = "aws")]
        aws: AwsOptions {
            concurrency: 5,
            deep_check_period: Duration::from_secs(3600),
            default_nat_mode: aws_network::NatMode::PerZone,
            checks_dns: true,
            owner_tag_key: "aws.cluster.x-k8s.io/owner-id".to_owned(),
            keep_foreign_rules: false,
            prune_subnets: false,
            endpoints: std::collections::BTreeMap::new(),
            contract: crate::contract::Contract::V1Beta2,
            mirror_ids: false,
            leak_scan_period: None,
            leak_scan_regions: std::collections::BTreeSet::new(),
            plan_only: false,
            rates: ::aws::Rates::default(),
            idle_read_qps: 2.0,
        },
    };
    assert_eq!(verdict("").unwrap(), wanted);
    let narrow =
        verdict("--namespace=one --watch-filter=mine --generate-cluster-ca=false").unwrap();
    assert_eq!(narrow.namespace.as_deref(), Some("one"));
    assert_eq!(narrow.watch_filter.as_deref(), Some("mine"));
    assert!(!narrow.generate_ca);
}

#[test]
fn every_value_that_cannot_be_is_refused_with_its_flag() {
    let rows = [
        "--capi-mode=core",
        "--cluster-concurrency=0",
        "--sync-period=9s",
        "--namespace=../x",
        "--watch-filter=a,b",
    ];
    for line in rows {
        let problems = verdict(line).expect_err(line);
        assert_eq!(problems.len(), 1, "{line}: {problems:?}");
        assert!(line.starts_with(&format!("--{}=", problems[0].flag)), "{line}: {problems:?}");
    }
    assert_eq!(verdict(&rows.join(" ")).expect_err("all are wrong").len(), rows.len());
}

#[cfg(feature = "aws")]
#[test]
fn an_endpoint_in_the_environment_that_is_no_url_is_refused_by_its_name() {
    for (url, is_refused) in [
        (None, false),
        (Some("http://127.0.0.1:9"), false),
        (Some("https://ec2.example.org/path"), false),
        (Some(""), true),
        (Some("ec2.example.org"), true),
        (Some("https://"), true),
    ] {
        let variable =
            |name: &str| url.filter(|_| name == "AWS_ENDPOINT_URL_STS").map(str::to_owned);
        let problems: Vec<_> = environment(variable).iter().map(ToString::to_string).collect();
        let told =
            "--aws-region-endpoints: the environment variable AWS_ENDPOINT_URL_STS is not a URL";
        assert_eq!(problems.len(), usize::from(is_refused), "{url:?}");
        assert!(problems.iter().all(|it| it.starts_with(told)), "{problems:?}");
    }
}

#[cfg(feature = "aws")]
#[test]
fn every_value_about_aws_that_cannot_be_is_refused_with_its_flag() {
    let rows = [
        "--awscluster-concurrency=1001",
        "--deep-check-period=1s",
        "--default-nat-mode=Many",
        "--dns-resolution-check=Disabled",
        "--owner-tag-key=aws:owner",
        "--infra-contract=v1alpha4",
        "--leak-scan-period=9s",
        "--leak-scan-regions=us-east-2,us/east",
        "--aws-read-qps=0",
        "--aws-read-burst=0",
        "--aws-idle-read-qps=0",
        "--aws-write-qps=-1",
        "--aws-write-burst=10001",
    ];
    for line in rows {
        let problems = verdict(line).expect_err(line);
        assert_eq!(problems.len(), 1, "{line}: {problems:?}");
        assert!(line.starts_with(&format!("--{}=", problems[0].flag)), "{line}: {problems:?}");
    }
    assert_eq!(verdict(&rows.join(" ")).expect_err("all are wrong").len(), rows.len());
    let problems = verdict("--default-nat-mode=Regional").expect_err("it is never a default");
    assert!(problems[0].message.contains("PerAZ, Single, None"), "{problems:?}");
    let single = verdict("--default-nat-mode=Single --dns-resolution-check=None").unwrap().aws;
    assert_eq!(single.default_nat_mode, aws_network::NatMode::Single);
    assert!(!single.checks_dns);
}

#[cfg(feature = "aws")]
#[test]
fn endpoints_of_regions_are_read_and_what_is_none_is_refused_without_being_shown() {
    let read = |text: &str| verdict(&format!("--aws-region-endpoints={text}"));
    let given = "eu-x-1:ec2=https://a:8443,elasticloadbalancing=http://b/c,sts=http://e;us-y-2:ec2=http://d";
    let endpoints = read(given).unwrap().aws.endpoints;
    let of = |region: &str| endpoints[region].clone();
    assert_eq!(of("eu-x-1").ec2.as_deref(), Some("https://a:8443"));
    assert_eq!(of("eu-x-1").sts.as_deref(), Some("http://e"));
    assert_eq!(of("eu-x-1").load_balancing.as_deref(), Some("http://b/c"));
    assert_eq!(
        (of("us-y-2").ec2.as_deref(), of("us-y-2").load_balancing),
        (Some("http://d"), None)
    );
    for wrong in [
        "eu-x-1",
        "eu-x-1:s3=https://a",
        "eu-x-1:ec2=ftp://a",
        "eu-x-1:ec2=https://planted-user:planted-secret@a",
        ":ec2=https://a",
        "eu-x-1:ec2=https://a,ec2=https://b",
        "eu-x-1:ec2=https://",
    ] {
        let problems = read(wrong).expect_err(wrong);
        assert_eq!(problems.len(), 1, "{wrong}: {problems:?}");
        assert!(!format!("{problems:?}").contains("planted"), "{problems:?}");
    }
}

#[cfg(feature = "aws")]
#[test]
fn leaks_are_looked_for_only_where_all_owners_are_known() {
    let options = verdict("--leak-scan-period=1h --leak-scan-regions=us-east-2,eu-west-1").unwrap();
    assert_eq!(options.aws.leak_scan_period, Some(Duration::from_secs(3600)));
    assert_eq!(options.aws.leak_scan_regions.len(), 2);
    for some in ["--namespace=one", "--watch-filter=mine"] {
        let problems = verdict(&format!("--leak-scan-period=1h {some}")).expect_err(some);
        assert_eq!((problems.len(), &*problems[0].flag), (1, "leak-scan-period"), "{some}");
    }
}
