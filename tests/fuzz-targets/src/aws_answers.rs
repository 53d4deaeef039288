//! Any answer of AWS to each of our reads, through the SDK and what we make of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use aws::{Account, Credentials, Executor, Metrics, Options, Rate, Rates};
use aws_network::{Lookup, Query, Scope};
use bytes::Bytes;
use http::StatusCode;
use prometheus::Registry;
use resilience::Fence;
use tokio::runtime::Runtime;
use tokio::time::{advance, timeout};

use crate::canned_answer::CannedAnswer;

const UNHURRIED: Rate = Rate { per_second: 1e9, burst: 1_000_000 };

/// Shorter than almost every wait before a repetition.
const ANSWERED: Duration = Duration::from_millis(5);

/// After this time the buckets of a region have their full rate again.
const RECOVERED: Duration = Duration::from_secs(600);

struct State {
    runtime: Runtime,
    server: CannedAnswer,
    account: Account,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(start());
}

fn start() -> State {
    let runtime = crate::paused_runtime();
    let server = runtime.block_on(CannedAnswer::start());
    let options = Options {
        controller: "fuzz",
        endpoint: Some(format!("http://127.0.0.1:{}", server.port)),
        region_endpoints: BTreeMap::new(),
        credentials: Some(Credentials::new("AKIATEST", "secret", None, None, "fuzz")),
        request_timeout: Duration::from_secs(60),
        rates: Rates { read: UNHURRIED, write: UNHURRIED },
        sync_period: Duration::from_secs(600),
    };
    let account = runtime.block_on(Account::load(options, Metrics::new(&Registry::new()).unwrap()));
    State { runtime, server, account }
}

fn queries() -> [Query; 20] {
    let vpc = || Scope::Vpc("vpc-1".to_owned());
    let lookup = || Lookup { names: vec!["a".to_owned()], vpc: Some("vpc-1".to_owned()) };
    [
        Query::TaggedVpcs,
        Query::Vpc("vpc-1".to_owned()),
        Query::VpcAttributes("vpc-1".to_owned()),
        Query::Subnets(Scope::Tagged),
        Query::InternetGateways(vpc()),
        Query::Addresses,
        Query::NatGateways(Scope::Tagged),
        Query::RouteTables(vpc()),
        Query::SecurityGroups(vpc()),
        Query::Bastions(Some("i-1".to_owned())),
        Query::BastionImage,
        Query::ClassicLoadBalancers(lookup()),
        Query::ClassicAttributes("a".to_owned()),
        Query::ClassicTags(vec!["a".to_owned()]),
        Query::NetworkLoadBalancers(lookup()),
        Query::NetworkAttributes {
            load_balancer: "arn:1".to_owned(),
            target_groups: vec!["arn:2".to_owned()],
        },
        Query::NetworkInterfaces("vpc-1".to_owned()),
        Query::Residents("vpc-1".to_owned()),
        Query::Subnets(vpc()),
        Query::SecurityGroups(Scope::Tagged),
    ]
}

/// The first byte selects the read, the second the status of the answer.
pub(crate) fn are_read(data: &[u8]) {
    let Some((select, data)) = crate::selected(data) else { return };
    let Some((status, body)) = crate::selected(data) else { return };
    let status = [200, 400, 403, 404][status % 4];
    let query = queries()[select % 20].clone();
    STATE.with_borrow(|State { runtime, server, account }| {
        let mut pages = body.to_vec();
        // A page that names a next one would be given for ever.
        blank(&mut pages, b"nextToken");
        blank(&mut pages, b"NextMarker");
        let (status, body) = (StatusCode::from_u16(status).unwrap(), Bytes::from(pages));
        server.set(move |_| (status, body.clone()));
        let region = account.region("us-east-2");
        let executor = Executor::new(region, &aws_fixtures::identity(), Fence::always_open());
        runtime.block_on(async {
            match timeout(ANSWERED, executor.read(&query)).await {
                Ok(Err(error)) => assert!(!error.to_string().is_empty()),
                // The answer was read, and the call waits to be repeated. After a throttle the next call would wait, too.
                Err(_) if !status.is_success() => advance(RECOVERED).await,
                Ok(Ok(_)) | Err(_) => {}
            }
        });
    });
}

fn blank(body: &mut [u8], word: &[u8]) {
    while let Some(at) = body.windows(word.len()).position(|part| part == word) {
        body[at..at + word.len()].fill(b'x');
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    const ANSWERS: [(u8, &str); 14] = [
        (
            0,
            "<R><vpcSet><item><vpcId>vpc-1</vpcId><state>available</state><cidrBlock>10.0.0.0/16</cidrBlock><tagSet><item><key>k</key><value>v</value></item></tagSet></item></vpcSet></R>",
        ),
        (
            2,
            "<R><vpcId>vpc-1</vpcId><enableDnsSupport><value>true</value></enableDnsSupport><enableDnsHostnames><value>false</value></enableDnsHostnames></R>",
        ),
        (
            3,
            "<R><subnetSet><item><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId><state>available</state><cidrBlock>10.0.0.0/24</cidrBlock><availabilityZone>us-east-2a</availabilityZone><mapPublicIpOnLaunch>true</mapPublicIpOnLaunch></item></subnetSet></R>",
        ),
        (
            4,
            "<R><internetGatewaySet><item><internetGatewayId>igw-1</internetGatewayId><attachmentSet><item><vpcId>vpc-1</vpcId><state>available</state></item></attachmentSet></item></internetGatewaySet></R>",
        ),
        (
            5,
            "<R><addressesSet><item><allocationId>eipalloc-1</allocationId><publicIp>1.2.3.4</publicIp><associationId>a-1</associationId></item></addressesSet></R>",
        ),
        (
            6,
            "<R><natGatewaySet><item><natGatewayId>nat-1</natGatewayId><subnetId>subnet-1</subnetId><vpcId>vpc-1</vpcId><state>available</state><createTime>2026-01-02T03:04:05.000Z</createTime><natGatewayAddressSet><item><allocationId>eipalloc-1</allocationId></item></natGatewayAddressSet></item></natGatewaySet></R>",
        ),
        (
            7,
            "<R><routeTableSet><item><routeTableId>rtb-1</routeTableId><vpcId>vpc-1</vpcId><routeSet><item><destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><gatewayId>igw-1</gatewayId><state>active</state></item></routeSet><associationSet><item><routeTableAssociationId>a</routeTableAssociationId><subnetId>subnet-1</subnetId><main>false</main></item></associationSet></item></routeTableSet></R>",
        ),
        (
            8,
            "<R><securityGroupInfo><item><groupId>sg-1</groupId><groupName>g</groupName><vpcId>vpc-1</vpcId><ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>22</fromPort><toPort>22</toPort><ipRanges><item><cidrIp>0.0.0.0/0</cidrIp><description>d</description></item></ipRanges></item></ipPermissions></item></securityGroupInfo></R>",
        ),
        (
            9,
            "<R><reservationSet><item><instancesSet><item><instanceId>i-1</instanceId><instanceState><code>16</code><name>running</name></instanceState><subnetId>subnet-1</subnetId><launchTime>2026-01-02T03:04:05.000Z</launchTime></item></instancesSet></item></reservationSet></R>",
        ),
        (
            10,
            "<R><imagesSet><item><imageId>ami-1</imageId><creationDate>2026-01-02T03:04:05.000Z</creationDate></item></imagesSet></R>",
        ),
        (
            11,
            "<R><DescribeLoadBalancersResult><LoadBalancerDescriptions><member><LoadBalancerName>a</LoadBalancerName><DNSName>d</DNSName><VPCId>vpc-1</VPCId><Scheme>internet-facing</Scheme><HealthCheck><Target>SSL:6443</Target><Interval>10</Interval><Timeout>5</Timeout></HealthCheck></member></LoadBalancerDescriptions></DescribeLoadBalancersResult></R>",
        ),
        (
            14,
            "<R><DescribeLoadBalancersResult><LoadBalancers><member><LoadBalancerArn>arn:1</LoadBalancerArn><LoadBalancerName>a</LoadBalancerName><DNSName>d</DNSName><VpcId>vpc-1</VpcId><State><Code>active</Code></State><Type>network</Type></member></LoadBalancers></DescribeLoadBalancersResult></R>",
        ),
        (
            16,
            "<R><networkInterfaceSet><item><networkInterfaceId>eni-1</networkInterfaceId><status>in-use</status><description>d</description></item></networkInterfaceSet></R>",
        ),
        (
            17,
            "<R><networkAclSet><item><networkAclId>acl-1</networkAclId><default>true</default></item></networkAclSet></R>",
        ),
    ];
    let select = |query: u8, status: u8, body: &str| [&[query, status], body.as_bytes()].concat();
    let mut seeds: Vec<_> = ANSWERS.iter().map(|(query, body)| select(*query, 0, body)).collect();
    let ec2 = "<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>m</Message></Error></Errors><RequestID>r</RequestID></Response>";
    let balancers = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>m</Message></Error></ErrorResponse>";
    seeds.extend([select(0, 1, ec2), select(11, 2, balancers), select(3, 3, "")]);
    seeds
}
