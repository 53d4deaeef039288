use super::*;
use crate::Tags;

fn all(codes: &[&str], action: &Action) -> Vec<Refusal> {
    codes.iter().map(|code| classify(code, action)).collect()
}

fn create() -> Action {
    Action::CreateInternetGateway { tags: Tags::new() }
}

fn delete() -> Action {
    Action::DeleteSubnet { subnet: "subnet-1".to_owned() }
}

#[test]
fn what_is_not_there_is_deleted() {
    for code in [
        "InvalidVpcID.NotFound",
        "InvalidSubnetID.NotFound",
        "InvalidInternetGatewayID.NotFound",
        "Gateway.NotAttached",
        "InvalidRouteTableID.NotFound",
        "InvalidAssociationID.NotFound",
        "InvalidRoute.NotFound",
        "InvalidGroup.NotFound",
        "InvalidAllocationID.NotFound",
        "InvalidAddress.NotFound",
        "NatGatewayNotFound",
        "InvalidInstanceID.NotFound",
        "LoadBalancerNotFound",
        "LoadBalancerNotFoundException",
        "TargetGroupNotFound",
        "TargetGroupNotFoundException",
        "ListenerNotFound",
    ] {
        assert_eq!(classify(code, &delete()), Refusal::Gone, "{code}");
        assert_eq!(classify(code, &create()), Refusal::NotVisibleYet, "{code}");
    }
}

#[test]
fn what_is_there_already_is_read_again() {
    for code in [
        "Resource.AlreadyAssociated",
        "RouteAlreadyExists",
        "InvalidGroup.Duplicate",
        "InvalidPermission.Duplicate",
        "InvalidSubnet.Conflict",
        "DuplicateLoadBalancerName",
        "DuplicateTargetGroupName",
        "DuplicateListener",
    ] {
        assert_eq!(classify(code, &create()), Refusal::Outdated, "{code}");
    }
    let (group, rules) = ("sg-1".to_owned(), Vec::new());
    let revoke = Action::RevokeIngress { group, rules };
    assert_eq!(
        classify("InvalidPermission.NotFound", &revoke),
        Refusal::Outdated,
        "some of them may be left"
    );
    let target = crate::Target::NatGateway("nat-1".to_owned());
    let replace = Action::ReplaceRoute { table: "rtb-1".to_owned(), target };
    assert_eq!(
        classify("InvalidParameterValue", &replace),
        Refusal::Outdated,
        "there is no route to replace"
    );
}

#[test]
fn codes_are_classified_by_what_they_ask_for() {
    let in_use = [
        "DependencyViolation",
        "InvalidIPAddress.InUse",
        "InvalidGroup.InUse",
        "ResourceInUse",
        "IncorrectState",
    ];
    assert_eq!(all(&in_use, &delete()), [Refusal::InUse; 5]);
    let release = Action::ReleaseAddress { allocation: "eipalloc-1".to_owned() };
    assert_eq!(classify("AuthFailure", &release), Refusal::InUse, "a NAT gateway has it");
    assert_eq!(classify("AuthFailure", &delete()), Refusal::Permission);
    assert_eq!(all(&THROTTLED, &create()), [Refusal::Throttled; 5]);
    assert_eq!(all(&FAILED, &create()), [Refusal::Failed; 4]);
    assert_eq!(classify("", &create()), Refusal::Failed, "no code of AWS's");
    assert_eq!(all(&QUOTA, &create()), [Refusal::Quota; 12]);
    assert_eq!(all(&PERMISSION[3..], &create()), [Refusal::Permission; 4]);
    assert_eq!(
        all(&["UnauthorizedOperation", "AccessDenied"], &create()),
        [Refusal::Permission; 2]
    );
    let terminal =
        ["InvalidVpc.Range", "InvalidSubnet.Range", "InvalidParameterValue", "SomethingNew"];
    assert_eq!(all(&terminal, &create()), [Refusal::Invalid; 4]);
    assert_eq!(classify("IdempotentParameterMismatch", &create()), Refusal::TokenReused);
    assert_eq!(classify("InvalidSubnet", &create()), Refusal::NotVisibleYet);
    assert_eq!(classify("InvalidNatGatewayID.NotFound", &create()), Refusal::NotVisibleYet);
}

#[test]
fn a_key_pair_or_an_image_that_is_not_there_never_comes() {
    let launch = crate::BastionLaunch {
        image: String::new(),
        instance_type: String::new(),
        key: None,
        subnet: String::new(),
        group: String::new(),
        token: String::new(),
        tags: Tags::new(),
    };
    let run = Action::RunBastion { vpc: String::new(), attempt: 0, launch };
    let codes = ["InvalidKeyPair.NotFound", "InvalidAMIID.NotFound"];
    assert_eq!(all(&codes, &run), [Refusal::Invalid; 2]);
    assert_eq!(classify("InvalidSubnetID.NotFound", &run), Refusal::NotVisibleYet);
}
