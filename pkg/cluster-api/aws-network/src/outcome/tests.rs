use super::*;
use crate::action::ElbV2Action;
use crate::{BastionLaunch, LogicalId, Scheme, Tags, Target};

/// A write of each kind, by what a code may mean to it.
fn writes() -> [(&'static str, Action); 9] {
    let (id, tags) = (|| "x-1".to_owned(), Tags::new);
    let launch = BastionLaunch {
        image: id(),
        instance_type: id(),
        key: None,
        subnet: id(),
        group: id(),
        token: id(),
        tags: tags(),
    };
    let balancer = ElbV2Action::Create {
        logical: LogicalId::LoadBalancer,
        vpc: id(),
        name: id(),
        scheme: Scheme::Internal,
        dualstack: false,
        subnets: Vec::new(),
        groups: Vec::new(),
        tags: tags(),
    };
    let (destination, target) = (crate::DEFAULT_ROUTE, Target::NatGateway(id()));
    [
        ("create", Action::CreateInternetGateway { tags: tags() }),
        ("create with a token", Action::RunBastion { vpc: id(), attempt: 0, launch }),
        ("create of a load balancer", Action::ElbV2(balancer)),
        ("change", Action::SetMapPublicIp { subnet: id(), enabled: true }),
        ("change of a route", Action::ReplaceRoute { table: id(), destination, target }),
        ("tags", Action::CreateTags { resources: Vec::new(), tags: tags() }),
        ("delete", Action::DeleteSubnet { subnet: id() }),
        ("release", Action::ReleaseAddress { allocation: id() }),
        ("revoke", Action::RevokeIngress { group: id(), rules: Vec::new() }),
    ]
}

/// Codes with one meaning for most writes, and the writes for which they mean something else.
type Row = (Refusal, &'static [&'static str], &'static [(&'static str, Refusal)]);

const MEANINGS: [Row; 15] = [
    (
        Refusal::NotVisibleYet,
        &[
            "InvalidVpcID.NotFound",
            "InvalidSubnetID.NotFound",
            "InvalidInternetGatewayID.NotFound",
            "Gateway.NotAttached",
            "InvalidRouteTableID.NotFound",
            "InvalidAssociationID.NotFound",
            "InvalidRoute.NotFound",
            "InvalidGroup.NotFound",
            "InvalidPermission.NotFound",
            "InvalidAllocationID.NotFound",
            "InvalidAddress.NotFound",
            "InvalidElasticIpID.NotFound",
            "InvalidNatGatewayID.NotFound",
            "NatGatewayNotFound",
            "InvalidInstanceID.NotFound",
            "AccessPointNotFound",
            "SubnetNotFound",
            "LoadBalancerNotFound",
            "LoadBalancerNotFoundException",
            "TargetGroupNotFound",
            "TargetGroupNotFoundException",
            "ListenerNotFound",
            "NewKind.NotFound",
        ],
        &[
            ("delete", Refusal::Gone),
            ("release", Refusal::Gone),
            // Some of what they name may be left.
            ("revoke", Refusal::Outdated),
            ("change of a route", Refusal::Outdated),
        ],
    ),
    (Refusal::NotVisibleYet, &["InvalidSubnet", "InvalidSecurityGroup"], &[]),
    (
        Refusal::Outdated,
        &[
            "Resource.AlreadyAssociated",
            "RouteAlreadyExists",
            "InvalidGroup.Duplicate",
            "InvalidPermission.Duplicate",
            "InvalidSubnet.Conflict",
            "DuplicateLoadBalancerName",
            "DuplicateTargetGroupName",
            "DuplicateListenerException",
        ],
        &[],
    ),
    (
        Refusal::InUse,
        &[
            "DependencyViolation",
            "InvalidIPAddress.InUse",
            "InvalidGroup.InUse",
            "ResourceInUse",
            "IncorrectState",
        ],
        &[],
    ),
    (
        Refusal::Throttled,
        &[
            "RequestLimitExceeded",
            "Client.RequestLimitExceeded",
            "Throttling",
            "ThrottlingException",
            "Throttled",
            "RequestThrottledException",
            "EC2ThrottledException",
            "TooManyRequestsException",
            "DependencyThrottle",
            "PriorRequestNotComplete",
            "BandwidthLimitExceeded",
            "SlowDown",
        ],
        &[],
    ),
    (
        Refusal::Failed,
        &["InternalError", "InternalFailure", "Unavailable", "ServiceUnavailable", ""],
        &[],
    ),
    (
        Refusal::Quota,
        &[
            "VpcLimitExceeded",
            "AddressLimitExceeded",
            "RulesPerSecurityGroupLimitExceeded",
            "TooManyLoadBalancers",
            "TooManyTargetGroups",
            "TooManyTags",
            "InsufficientInstanceCapacity",
            "InsufficientFreeAddressesInSubnet",
            "NewThingLimitExceeded",
        ],
        &[],
    ),
    (Refusal::Clock, &["RequestExpired", "RequestTimeTooSkewed"], &[]),
    (
        Refusal::Permission,
        &[
            "UnauthorizedOperation",
            "AccessDenied",
            "AccessDeniedException",
            "InvalidClientTokenId",
            "UnrecognizedClientException",
            "ExpiredToken",
            "ExpiredTokenException",
            "OptInRequired",
            "UnauthorizedAccess",
            "RegionDisabledException",
            "PendingVerification",
            "Blocked",
            "MissingAuthenticationToken",
            "SignatureDoesNotMatch",
            "InvalidSignatureException",
        ],
        &[],
    ),
    // An address that a NAT gateway has is refused as if it were another account's.
    (Refusal::Permission, &["AuthFailure"], &[("release", Refusal::InUse)]),
    (Refusal::TokenReused, &["IdempotentParameterMismatch", "IdempotentInstanceTerminated"], &[]),
    (Refusal::Unexpected, &["DuplicateTagKeys", "UnknownParameter", "InvalidAction"], &[]),
    (
        Refusal::Invalid,
        &[
            "InvalidVpc.Range",
            "InvalidVpcRange",
            "InvalidSubnet.Range",
            "CidrConflict",
            "InvalidParameter",
            "InvalidParameterCombination",
            "MissingParameter",
            "ValidationError",
            "InvalidVpcID.Malformed",
            "InvalidKeyPair.NotFound",
            "InvalidAMIID.NotFound",
            "UnsupportedOperation",
            "Unsupported",
            "OperationNotPermittedException",
            "InvalidConfigurationRequest",
            "InvalidSchemeException",
            "AvailabilityZoneNotSupportedException",
        ],
        &[],
    ),
    // There is no route to replace.
    (Refusal::Invalid, &["InvalidParameterValue"], &[("change of a route", Refusal::Outdated)]),
    (Refusal::Unknown, &["NewFangled", "NewFangledException", "InvalidNewFangled"], &[]),
];

#[test]
fn each_code_means_the_same_to_each_kind_of_write_but_where_the_table_says_otherwise() {
    for (usual, codes, exceptions) in MEANINGS {
        for code in codes {
            for (kind, action) in &writes() {
                let other = exceptions.iter().find(|(it, _)| it == kind);
                let wanted = other.map_or(usual, |(_, meaning)| *meaning);
                let refused = Refused::with_code(code);
                assert_eq!(classify(&refused, action), wanted, "{code} of {kind}");
            }
        }
    }
}

#[test]
fn only_a_closed_list_of_codes_is_the_users_mistake_and_ends_in_invalid_configuration() {
    for (meaning, codes, _) in MEANINGS {
        let is_users = meaning.reason() == Reason::InvalidConfiguration;
        assert_eq!(is_users, meaning == Refusal::Invalid, "{codes:?}");
    }
    let unknown = Refusal::Unknown;
    let waits = (unknown.pause(), unknown.longest_pause(), unknown.reason());
    assert_eq!(waits, (5, 300, Reason::Refused));
}

#[test]
fn the_http_status_classifies_an_unknown_code() {
    let read = |code: &str, status| {
        classify_read(&Refused { code: code.to_owned(), status, clock_behind: None })
    };
    assert_eq!(read("NewFangled", 500), Refusal::Failed, "it may have been carried out");
    assert_eq!(read("", 503), Refusal::Failed);
    assert_eq!(read("NewFangled", 429), Refusal::Throttled);
    assert_eq!(read("", 429), Refusal::Throttled);
    assert_eq!(read("RequestLimitExceeded", 503), Refusal::Throttled);
    assert_eq!(read("", 403), Refusal::Failed, "an answer that is not one of AWS's");
}

#[test]
fn codes_about_a_signature_mean_the_clock_when_the_answers_date_says_so() {
    let read = |code: &str, clock_behind| {
        classify_read(&Refused { code: code.to_owned(), status: 403, clock_behind })
    };
    for code in ["AuthFailure", "SignatureDoesNotMatch", "InvalidSignatureException"] {
        assert_eq!(read(code, None), Refusal::Permission, "{code}");
        assert_eq!(read(code, Some(-400)), Refusal::Clock, "{code}");
    }
    assert_eq!(read("UnauthorizedOperation", Some(400)), Refusal::Permission);
    let refused =
        |behind| Refused { clock_behind: Some(behind), ..Refused::with_code("RequestExpired") };
    let said = [refused(400).to_string(), refused(-7).to_string()];
    assert_eq!(
        said[0],
        "RequestExpired (local clock is 400 s behind AWS; correct the time of this machine)"
    );
    assert!(said[1].contains("local clock is 7 s ahead of AWS"), "{said:?}");
}

#[test]
fn mistakes_of_this_program_have_their_own_class() {
    for code in ["IdempotentParameterMismatch", "DuplicateTagKeysException", "InvalidAction"] {
        assert!(is_unexpected(&Refused::with_code(code)), "{code}");
    }
    for code in ["IdempotentInstanceTerminated", "NewFangled", "InvalidParameterValue", ""] {
        assert!(!is_unexpected(&Refused::with_code(code)), "{code}");
    }
}
