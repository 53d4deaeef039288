mod findings;

use aws_network::{Goal, Memory, Query, Refused, Reply, Spec, Step};
use serde_json::{Value, json};

use super::*;
use crate::api::aws_cluster::VpcStatus;
use crate::aws_spec::{self, Circumstances};

fn desired(spec: &Value) -> Desired {
    let spec = serde_json::from_value(spec.clone()).unwrap();
    let given = Circumstances {
        identity: aws_network::Identity {
            cluster: "c".to_owned(),
            owner_id: "u".to_owned(),
            owner_tag: "owner".to_owned(),
            adopt: false,
        },
        namespace: "ns".to_owned(),
        owner: crate::api::Dialect::V1Beta2,
        zones: vec!["us-east-2a".to_owned()],
        known_zones: Vec::new(),
        api_port: 6443,
        pods_in_vpc: false,
        applied_tags: std::collections::BTreeSet::new(),
        default_nat_mode: aws_network::NatMode::None,
        keep_foreign_rules: false,
        prune_subnets: false,
        allow_load_balancer_recreate: false,
        created_load_balancer: None,
    };
    let spec: Spec = aws_spec::read(&spec, &given).unwrap().spec;
    Desired::from_spec(&spec).unwrap()
}

fn object() -> Object<AwsCluster> {
    Object::read(json!({"metadata": {"name": "a", "namespace": "ns", "uid": "u",
        "resourceVersion": "1", "generation": 3}, "spec": {"region": "us-east-2"}}))
    .unwrap()
}

fn published(report: &Report, status: &mut AwsClusterStatus) {
    let now = Timestamp::from_second(10).unwrap();
    report.publish(&object(), status, now, Contract::V1Beta2);
}

fn condition<'a>(status: &'a AwsClusterStatus, kind: &str) -> &'a Condition {
    status.conditions.iter().find(|it| it.kind == kind).unwrap()
}

/// A reconciliation that has planned nothing has nothing to do.
fn settled(desired: &Desired) -> Reconciliation {
    Reconciliation::new(Goal::Present(Box::new(desired.clone())), Memory::default())
}

#[test]
fn what_is_complete_and_published_is_ready_in_the_words_of_both_dialects_and_stays_so() {
    let desired = desired(&json!({"region": "us-east-2"}));
    let mut report = Report::of_a_pass(None);
    assert!(report.judge(&desired, &settled(&desired), &[]));
    let endpoint = Endpoint { host: "h".to_owned(), port: 6443 };
    (report.is_ready, report.endpoint) = (true, Some(endpoint.clone()));
    report.findings.vpc = Some(VpcStatus { id: "vpc-1".to_owned(), managed: true });
    report.sum_up();
    let mut status = AwsClusterStatus::default();
    published(&report, &mut status);
    assert!(status.ready == Some(true) && status.was_ready());
    assert_eq!(status.initialization, Some(ProvisionedOnce { provisioned: Some(true) }));
    assert_eq!(
        (status.observed_generation, status.api_endpoints.clone()),
        (Some(3), vec![endpoint])
    );
    assert_eq!(condition(&status, "Ready").reason, "Ready");
    assert_eq!(condition(&status, "NatGatewaysReady").reason, "Disabled");
    assert_eq!(condition(&status, "PrincipalCredentialRetrieved").status, "True");
    assert_eq!(status.resources.as_ref().unwrap().vpc.as_ref().unwrap().id, "vpc-1");
    assert!(
        status.conditions.iter().all(|it| it.kind != "BastionHostReady"),
        "no bastion is wanted"
    );

    let mut report = Report::default();
    report.invalid("no good");
    published(&report, &mut status);
    assert!(status.was_ready());
    assert_eq!(condition(&status, "Ready").reason, "InvalidConfiguration");
    assert_eq!(status.error_reason.as_deref(), Some("InvalidConfiguration"));
    assert_eq!(status.failure_message.as_deref(), Some("no good"));
    assert_eq!(status.resources.as_ref().unwrap().vpc.as_ref().unwrap().id, "vpc-1");
}

#[test]
fn the_first_part_that_lacks_something_says_why_it_is_not_ready_and_its_end_is_reported() {
    let desired = desired(&json!({"region": "us-east-2"}));
    let mut reconciliation = settled(&desired);
    let Step::Read(queries) = reconciliation.next(aws_network::Timestamp(0)) else {
        panic!("it reads")
    };
    for query in queries {
        match query {
            Query::TaggedVpcs => {
                reconciliation
                    .unanswered(query, Some(&Refused::with_code("UnauthorizedOperation")));
            }
            query => reconciliation.answer(
                query,
                Reply::ClassicLoadBalancers(Vec::new()),
                aws_network::Timestamp(0),
            ),
        }
    }
    let mut report = Report::default();
    assert!(!report.judge(&desired, &reconciliation, &reconciliation.problems()));
    report.sum_up();
    let mut status = AwsClusterStatus {
        error_reason: Some("InvalidConfiguration".to_owned()),
        ..AwsClusterStatus::default()
    };
    published(&report, &mut status);
    let ready = condition(&status, "Ready");
    assert_eq!((&*ready.status, &*ready.reason), ("False", "PermissionDenied"));
    assert!(ready.message.starts_with("VpcReady: "), "{}", ready.message);
    assert_eq!(status.error_reason, None, "that was mended");
    assert_eq!(status.ready, Some(false));
}

#[test]
fn what_cannot_be_read_at_all_for_want_of_credentials_is_not_ready_for_that_reason() {
    let denial = Denial::new("CredentialsNotFound", "none anywhere".to_owned());
    let mut report = Report::of_a_pass(Some(&denial));
    report.sum_up();
    let mut status = AwsClusterStatus::default();
    published(&report, &mut status);
    let ready = condition(&status, "Ready");
    assert_eq!((&*ready.status, &*ready.reason), ("False", "CredentialsNotFound"));
    assert_eq!(ready.message, "PrincipalCredentialRetrieved: none anywhere");
}

#[test]
fn an_identity_that_is_not_permitted_is_told_from_one_without_credentials() {
    let published_for = |denial: &Denial| {
        let mut report = Report::of_a_pass(Some(denial));
        report.sum_up();
        let mut status = AwsClusterStatus::default();
        published(&report, &mut status);
        status
    };
    let reason = "SourcePrincipalUsageUnauthorized";
    let message = "Namespace is not permitted to use k: n".to_owned();
    let refused = published_for(&Denial { reason, message, is_about_usage: true });
    let usage = condition(&refused, "PrincipalUsageAllowed");
    assert_eq!((&*usage.status, &*usage.reason), ("False", reason));
    assert_eq!(condition(&refused, CREDENTIALS).status, "False");
    let ready = condition(&refused, "Ready");
    assert_eq!(ready.message, "PrincipalUsageAllowed: Namespace is not permitted to use k: n");

    let missing = published_for(&Denial::of_credentials("no Secret".to_owned()));
    assert_eq!(condition(&missing, CREDENTIALS).reason, "PrincipalCredentialRetrievalFailed");
    assert!(missing.conditions.iter().all(|it| it.kind != "PrincipalUsageAllowed"));

    let error = Box::new(AwsError::Refused(Refused::with_code("AccessDenied")));
    let refused = denial(&AwsError::NotAssumed { role: "r".to_owned(), error }).unwrap();
    assert_eq!(refused.reason, "CredentialProviderBuildFailed");
    assert!(refused.message.ends_with("AccessDenied"), "{refused:?}");
    assert_eq!(condition(&published_for(&refused), "PrincipalUsageAllowed").status, "True");
}

#[test]
fn fields_that_are_not_acted_upon_are_named_as_long_as_they_are_set() {
    let mut status = AwsClusterStatus::default();
    let mut report = Report::default();
    report.unsupported(&["spec.network.vpc.ipv6".to_owned()]);
    published(&report, &mut status);
    assert_eq!(
        condition(&status, "SpecSupported").message,
        "not supported and ignored: spec.network.vpc.ipv6"
    );
    let mut report = Report::default();
    report.unsupported(&[]);
    published(&report, &mut status);
    assert!(status.conditions.is_empty());
}

#[test]
fn an_unreachable_region_is_reported_and_the_credentials_are_not_blamed() {
    let error = AwsError::Unanswered { reason: "no such host".to_owned() };
    let mut status = AwsClusterStatus::default();
    published(&Report::without_zones("us-est-2", &error), &mut status);
    let ready = condition(&status, "Ready");
    assert_eq!((&*ready.status, &*ready.reason), ("False", "Unavailable"));
    assert!(ready.message.contains("zones of region us-est-2"), "{}", ready.message);
    assert!(status.conditions.iter().all(|it| it.kind != CREDENTIALS));

    let error = AwsError::Refused(Refused::with_code("AuthFailure"));
    let mut status = AwsClusterStatus::default();
    published(&Report::without_zones("us-east-2", &error), &mut status);
    assert_eq!(condition(&status, "Ready").reason, "PermissionDenied");
}
