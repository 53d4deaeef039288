use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use aws_network::Identity;
use aws_smithy_runtime_api::client::http::HttpConnectorFuture;
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use prometheus::Registry;
use resilience::Fence;

use super::*;
use crate::connections::interposed;
use crate::{Executor, Rates};

fn keys(id: &str) -> Credentials {
    Credentials::new(id, "secret", None, None, "test")
}

async fn account(credentials: Option<Credentials>) -> Account {
    let options = Options {
        controller: "test",
        endpoint: None,
        region_endpoints: BTreeMap::new(),
        credentials,
        request_timeout: Duration::from_secs(30),
        rates: Rates::default(),
        sync_period: Duration::from_secs(600),
    };
    Account::load(options, Metrics::new(&Registry::new()).unwrap()).await
}

#[tokio::test]
async fn clusters_share_reads_only_with_the_same_credentials_in_the_same_account_and_region() {
    let account = account(Some(keys("key"))).await;
    let shares = |one: &Region, other: &Region| std::ptr::eq(one.sweep(), other.sweep());
    let here = account.region_of("us-east-2", "1");
    assert!(shares(&here, &account.region_of("us-east-2", "1").counting()));
    assert!(!shares(&here, &account.region_of("us-west-2", "1")));
    assert!(!shares(&here, &account.region_of("us-east-2", "2")));
    let role = account.assuming(Role::default(), "us-east-2");
    for other in [account.with_keys(keys("other")), role] {
        assert!(!shares(&here, &other.region_of("us-east-2", "1")));
    }
}

/// rule:a-throttle-slows-everybody
#[tokio::test]
async fn a_region_of_an_account_has_one_set_of_rates_whether_the_account_is_checked_or_not() {
    let account = account(Some(keys("key"))).await;
    account.0.callers.note(None, "1");
    let same = |one: &Region, other: &Region| std::ptr::eq(one.limits(), other.limits());
    let checked = account.region_of("us-east-2", "1");
    assert!(same(&checked, &account.region("us-east-2")));
    assert!(!same(&checked, &account.region("us-west-2")));
    assert!(!same(&checked, &account.region_of("us-east-2", "2")));
    // Whatever credentials reach the account.
    let keys = account.with_keys(keys("other"));
    let role = account.assuming(Role::default(), "us-east-2");
    for other in [keys, role] {
        assert!(same(&checked, &other.region_of("us-east-2", "1")));
    }
}

/// Where the cluster is.
const REGION: &str = "eu-central-1";

/// Helper process of the other tests, which start it with an environment. It asks AWS once.
#[tokio::test]
#[ignore = "the tests of this file start it"]
async fn child() {
    let account = account(None).await;
    let identity = Identity {
        cluster: "c".to_owned(),
        owner_id: "o".to_owned(),
        owner_tag: "t".to_owned(),
        adopt: false,
    };
    let executor = Executor::new(account.region(REGION), &identity, Fence::closed());
    for _ in 0..2 {
        let error = executor.zones().await.unwrap_err();
        assert!(
            std::env::var("EXPECTED").is_ok_and(|it| error.to_string().contains(&it)),
            "{error}"
        );
    }
}

/// Runs a helper process with this profile and environment and no other. What it says.
fn child_says(name: &str, profile: &str, environment: &[(&str, String)]) -> String {
    let folder = std::env::temp_dir().join(format!("icm-aws-{}", uuid()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config");
    std::fs::write(&file, profile).unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([&*format!("account::tests::{name}"), "--exact", "--ignored", "--nocapture"])
        .env_clear()
        .envs(std::env::var("PATH").map(|path| ("PATH", path)))
        .env("AWS_CONFIG_FILE", &file)
        .env("AWS_SHARED_CREDENTIALS_FILE", folder.join("none"))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    said
}

/// Starts the child with this profile, and gives the first request that it sends, if it sends one.
/// `URL` in the environment stands for that of the server. The error has to contain `expected`.
fn first_request(profile: &str, environment: &[(&str, &str)], expected: &str) -> Option<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (send, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _receiver_is_gone = send.send(answer(stream.unwrap()));
        }
    });
    let of_server = ["AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_ENDPOINT_URL"];
    let of_server = of_server.map(|name| (name, url.clone()));
    let given = environment.iter().map(|(name, value)| (*name, value.replace("URL", &url)));
    let all: Vec<_> =
        of_server.into_iter().chain([("EXPECTED", expected.to_owned())]).chain(given).collect();
    child_says("child", profile, &all);
    requests.try_recv().ok()
}

fn uuid() -> String {
    format!("{}-{:?}", std::process::id(), std::thread::current().id())
}

/// Refuses a request, whole.
fn answer(mut stream: TcpStream) -> String {
    let (mut taken, mut piece) = (String::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut piece).unwrap();
        taken.push_str(&String::from_utf8_lossy(&piece[..length]));
        let body = taken.split_once("\r\n\r\n").map(|(_, body)| body.len());
        let wanted = taken.to_lowercase().split("content-length: ").nth(1).map(|rest| {
            rest.split("\r\n").next().unwrap_or_default().parse::<usize>().unwrap_or_default()
        });
        if length == 0 || body.is_some_and(|body| body >= wanted.unwrap_or_default()) {
            break;
        }
    }
    let error = "<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>";
    let head =
        format!("HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: {}", error.len());
    write!(stream, "{head}\r\n\r\n{error}").unwrap();
    taken
}

/// A source of keys for a role, so that they are exchanged at STS first.
const WITH_ROLE: &str = "role_arn = arn:aws:iam::123456789012:role/r\nsource_profile = keys\n\
    [profile keys]\naws_access_key_id = AKIAKEYS\naws_secret_access_key = s\n";

#[test]
fn a_credential_process_of_the_profile_gives_the_credentials() {
    let process = r#"credential_process = echo '{"Version":1,"AccessKeyId":"AKIAPROCESS","SecretAccessKey":"s"}'"#;
    let request = first_request(&format!("[default]\n{process}\n"), &[], "").unwrap();
    assert!(request.contains("Credential=AKIAPROCESS/"), "{request}");
    assert!(request.contains(&format!("/{REGION}/ec2/")), "{request}");
}

#[test]
fn each_source_of_credentials_outside_of_a_profile_is_asked() {
    let key = ("AWS_ACCESS_KEY_ID", "AKIAENVIRONMENT");
    let token = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let role = ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/r");
    for (environment, wanted) in [
        (&[key, ("AWS_SECRET_ACCESS_KEY", "s")][..], "Credential=AKIAENVIRONMENT/"),
        (&[role, ("AWS_WEB_IDENTITY_TOKEN_FILE", token)], "Action=AssumeRoleWithWebIdentity"),
        (&[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "URL/keys")], "GET /keys "),
        (&[("AWS_EC2_METADATA_DISABLED", "false")], "PUT /latest/api/token "),
    ] {
        let request = first_request("", environment, "").unwrap();
        assert!(request.contains(wanted), "{environment:?}: {request}");
    }
}

#[test]
fn without_a_region_the_metadata_service_is_not_asked_for_one() {
    let keys = "[default]\naws_access_key_id = AKIAKEYS\naws_secret_access_key = s\n";
    let request = first_request(keys, &[("AWS_EC2_METADATA_DISABLED", "false")], "").unwrap();
    assert!(request.contains("Credential=AKIAKEYS/"), "{request}");
}

#[test]
fn a_role_is_asked_for_in_the_region_of_the_environment_then_of_the_profile_then_of_the_cluster() {
    let home = |region: &str, environment: &[(&str, &str)]| {
        let profile = format!("[default]\n{region}{WITH_ROLE}");
        let request = first_request(&profile, environment, "").unwrap();
        assert!(request.contains("Action=AssumeRole"), "{request}");
        let scope = request.split("Credential=AKIAKEYS/").nth(1).unwrap();
        scope.split('/').nth(1).unwrap().to_owned()
    };
    let of_profile = "region = cn-north-1\n";
    let both = [("AWS_REGION", "us-gov-west-1"), ("AWS_DEFAULT_REGION", "us-west-2")];
    assert_eq!(home(of_profile, &both), "us-gov-west-1");
    assert_eq!(home(of_profile, &both[1..]), "us-west-2");
    assert_eq!(home(of_profile, &[]), "cn-north-1");
    assert_eq!(home("", &[]), REGION);
}

#[test]
fn a_profile_with_sso_is_refused_with_its_name_each_time() {
    let profile = "[profile dev]\nsso_session = s\nsso_account_id = 123456789012\nsso_role_name = r\n\
        [sso-session s]\nsso_region = us-east-1\nsso_start_url = https://example.org/start\n";
    let message = "profile dev: sso_session is not in this build";
    assert_eq!(first_request(profile, &[("AWS_PROFILE", "dev")], message), None);
}

/// Requests to STS, each with its action, host, region and key of the signature, and role.
type Asked = Arc<Mutex<Vec<String>>>;

/// STS of all regions. The key of a session is the name of its role.
fn sts(asked: &Asked) -> SharedHttpClient {
    let asked = Arc::clone(asked);
    interposed(SharedHttpClient::new(Connections::default()), move |request: HttpRequest, _| {
        let body = String::from_utf8_lossy(request.body().bytes().unwrap()).into_owned();
        let field = |name: &str| {
            let found = body.split('&').find_map(|pair| pair.strip_prefix(name));
            found.unwrap_or_default().replace("%3A", ":").replace("%2F", "/")
        };
        let (action, role) = (field("Action="), field("RoleArn="));
        let scope =
            request.headers().get("authorization").and_then(|it| it.split("Credential=").nth(1));
        let scope: Vec<_> = scope.map_or_else(Vec::new, |scope| scope.split('/').collect());
        let [key, region] = [0, 2].map(|place| scope.get(place).copied().unwrap_or("unsigned"));
        asked.lock().push(format!("{action} {} {region} {key} {role}", request.uri()));
        let session = role.rsplit('/').next().unwrap();
        let answer = format!(
            "<{action}Response><{action}Result><Account>123456789012</Account><Credentials>\
             <AccessKeyId>{session}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
             <SessionToken>t</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration>\
             </Credentials></{action}Result></{action}Response>"
        );
        let ok = StatusCode::try_from(200).unwrap();
        HttpConnectorFuture::ready(Ok(HttpResponse::new(ok, SdkBody::from(answer))))
    })
}

/// Partition, a region of it, and its STS.
const PARTITIONS: [(&str, &str, &str); 3] = [
    ("aws-cn", "cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn/"),
    ("aws-us-gov", "us-gov-west-1", "https://sts.us-gov-west-1.amazonaws.com/"),
    ("aws", REGION, "https://sts.eu-central-1.amazonaws.com/"),
];

#[tokio::test]
async fn each_role_of_a_chain_is_assumed_at_the_sts_of_the_region_in_its_partition() {
    for (partition, region, url) in PARTITIONS {
        let (asked, loaded) = (Asked::default(), account(Some(keys("own"))).await);
        let (inner, http) = (Arc::into_inner(loaded.0).unwrap(), sts(&asked));
        let config = inner.config.to_builder().http_client(http.clone()).build();
        let account = Account(Arc::new(Inner { config, http, ..inner }));
        let role = |name: &str| Role {
            arn: format!("arn:{partition}:iam::123456789012:role/{name}"),
            session_name: "s".to_owned(),
            seconds: 900,
            ..Role::default()
        };
        let end = account.assuming(role("first"), region).assuming(role("second"), region);
        assert_eq!(end.caller(region, None).await.unwrap(), "123456789012");
        let (first, second) = (role("first").arn, role("second").arn);
        let wanted = [
            format!("AssumeRole {url} {region} own {first}"),
            format!("AssumeRole {url} {region} first {second}"),
            format!("GetCallerIdentity {url} {region} second "),
        ];
        assert_eq!(*asked.lock(), wanted);
    }
}

/// Helper process of the next test. It tells what the usual places ask STS, without a region but that
/// of a cluster.
#[tokio::test]
#[ignore = "the tests of this file start it"]
async fn child_in_a_partition() {
    let asked = Asked::default();
    let region = aws_config::Region::new(std::env::var("OF_CLUSTER").unwrap());
    assert_eq!(home_region().await, None);
    let found = DefaultChain::new(sts(&asked), region).credentials().await.unwrap();
    println!("\n{}\nkey {}", asked.lock().join("\n"), found.access_key_id());
}

#[test]
fn a_chain_of_the_usual_places_asks_the_sts_of_the_region_in_its_partition() {
    let token = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (partition, region, url) in PARTITIONS {
        let arn = |name: &str| format!("arn:{partition}:iam::123456789012:role/{name}");
        let (first, second) = (arn("first"), arn("second"));
        let profile = format!(
            "[default]\nrole_arn = {second}\nsource_profile = middle\n[profile middle]\n\
             role_arn = {first}\nsource_profile = keys\n\
             [profile keys]\naws_access_key_id = AKIAKEYS\naws_secret_access_key = s\n"
        );
        let of_cluster = ("OF_CLUSTER", region.to_owned());
        let said = child_says("child_in_a_partition", &profile, std::slice::from_ref(&of_cluster));
        let wanted = format!(
            "\nAssumeRole {url} {region} AKIAKEYS {first}\nAssumeRole {url} {region} first {second}\n\
             key second\n"
        );
        assert!(said.contains(&wanted), "{said}");

        let of_pod =
            [("AWS_ROLE_ARN", first.clone()), ("AWS_WEB_IDENTITY_TOKEN_FILE", token.into())];
        let environment = [&of_pod[..], &[of_cluster]].concat();
        let said = child_says("child_in_a_partition", "", &environment);
        let wanted =
            format!("\nAssumeRoleWithWebIdentity {url} unsigned unsigned {first}\nkey first\n");
        assert!(said.contains(&wanted), "{said}");
    }
}
