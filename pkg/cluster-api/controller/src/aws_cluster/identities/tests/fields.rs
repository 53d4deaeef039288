//! Each field of the identities of an AWSCluster, set, changed, reverted and refused: the credentials with which AWS is
//! called in the end are those of an AWSCluster whose identities always were so. STS is a server on a port.
//!
//! The objects are one document: `cluster` is the AWSCluster, which uses the role `role`, which the keys `static` assume;
//! `controller` stands for the credentials of this program.

use api_server_double::fields::{Crd, End, Field, World, play};
use api_server_double::{ApiServer, Asked, Loopback, Reply, Store};
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use kube_api::Resource;
use manager::{Host, feed};
use prometheus::Registry;
use workqueue::{Backoff, Jitter};

use super::*;
use crate::api::AWS_CLUSTERS;
use crate::aws_cluster::report::denial;
use crate::tests::{context, server};

/// More than any wake-up takes.
const LIMIT: Duration = Duration::from_secs(60);
const REGION: &str = "us-east-2";
/// Parts of the document, in the order in which they are stored.
const PARTS: [&str; 5] = ["cluster", "namespace", "controller", "static", "role"];

/// Sessions of roles. The number of one is in its access key.
type Sessions = Arc<Mutex<Vec<String>>>;

/// Whose credentials a request is signed with.
fn signer(asked: &Asked, sessions: &[String]) -> String {
    let (_, rest) = asked.header("authorization").split_once("Credential=").unwrap();
    let key = rest.split('/').next().unwrap();
    let number = key.strip_prefix("ASIA").map(|number| number.parse::<usize>().unwrap());
    number.map_or_else(|| key.to_owned(), |number| sessions[number].clone())
}

fn xml(operation: &str, result: &str) -> Reply {
    let text = format!(
        "<{operation}Response><{operation}Result>{result}</{operation}Result></{operation}Response>"
    );
    Reply::Body("text/xml", stream::iter([Ok(Bytes::from(text))]).boxed())
}

/// An STS that knows each role whose name is not `refused`.
fn sts(asked: &Asked, sessions: &Sessions, caller: &Mutex<String>) -> Reply {
    let mut sessions = sessions.lock();
    let by = signer(asked, &sessions);
    let mut form: Vec<_> = form_urlencoded::parse(&asked.body).into_owned().collect();
    form.retain(|(name, _)| name != "Version");
    if form.iter().any(|(name, value)| name == "Action" && value == "GetCallerIdentity") {
        *caller.lock() = by;
        return xml("GetCallerIdentity", "<Account>1</Account>");
    }
    if form.iter().any(|(_, value)| value.ends_with("/refused")) {
        let error = json!({"Error": {"Code": "AccessDenied", "Message": "refused"}});
        return Reply::Json(403, error);
    }
    sessions.push(format!("{form:?} by {by}"));
    let number = sessions.len() - 1;
    xml(
        "AssumeRole",
        &format!(
            "<Credentials><AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
             <SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>"
        ),
    )
}

/// One AWSCluster, from the watches of its identities to a call to AWS.
struct OneCluster {
    store: Arc<Store>,
    identities: Identities,
    clusters: Informer<Object<AwsCluster>>,
    queue: WorkQueue<Arc<str>>,
    /// Who called AWS last.
    caller: Arc<Mutex<String>>,
    told: HashMap<&'static str, Value>,
    version: u64,
    end: Option<End>,
    _feed: Subscription<Object<AwsCluster>>,
    _sts: Loopback,
    _host: Host,
}

/// The kind of a part of the document, and its key.
fn place(part: &str) -> (Resource, &'static str) {
    match part {
        "cluster" => (AWS_CLUSTERS, "ns/a"),
        "namespace" => (NAMESPACES, "ns"),
        "controller" => (IdentityKind::Controller.resource(), "default"),
        "static" => (IdentityKind::Static.resource(), "keys"),
        _ => (IdentityKind::Role.resource(), "role"),
    }
}

/// What no row changes: Secrets, and further identities that a row may name.
fn others(store: &Store) {
    for name in ["s-1", "s-2", "s-3", "s-4"] {
        let encode = |text: &str| STANDARD.encode(text);
        let data = json!({ACCESS_KEY: encode(&format!("AKIA-{name}")), SECRET_KEY: encode("s")});
        let metadata = json!({"namespace": "kube-system", "name": name});
        store.put(
            &SECRETS.object_path(&format!("kube-system/{name}")),
            json!({"metadata": metadata, "data": data}),
        );
    }
    let of_all = json!({});
    let keys = json!({"secretRef": "s-4", "allowedNamespaces": of_all});
    let source = json!({"kind": PROVIDER, "name": "default"});
    let role = json!({"roleARN": "arn:aws:iam::1:role/other", "sourceIdentityRef": source,
        "allowedNamespaces": of_all});
    for (kind, name, spec) in [
        (IdentityKind::Static, "default", &keys),
        (IdentityKind::Static, "keys-2", &keys),
        (IdentityKind::Role, "default", &role),
        (IdentityKind::Role, "role-2", &role),
    ] {
        let whole = json!({"metadata": {"name": name, "generation": 1}, "spec": spec});
        store.put(&kind.resource().object_path(name), whole);
    }
}

impl OneCluster {
    async fn new() -> Self {
        let store = Arc::<Store>::default();
        others(&store);
        let (context, host) = context(&server(&store)).await;
        let (sessions, caller) = (Sessions::default(), Arc::<Mutex<String>>::default());
        let shown = Arc::clone(&caller);
        let sts = ApiServer::new(move |asked| sts(asked, &sessions, &shown)).listen().await;
        let options = aws::Options {
            controller: "test",
            endpoint: Some(sts.url.clone()),
            region_endpoints: std::collections::BTreeMap::new(),
            credentials: Some(Credentials::new("AKIA-process", "s", None, None, "test")),
            request_timeout: LIMIT,
            rates: aws::Rates::default(),
            sync_period: LIMIT,
        };
        let process = Account::load(options, aws::Metrics::new(&Registry::new()).unwrap()).await;
        let informers = context.informers.of_any_owner();
        let clusters = informers.get_from(informers.source(Kind::Custom(AWS_CLUSTERS)));
        let backoff = Backoff::doubling(LIMIT, LIMIT, Jitter::Above(0.5));
        let queue = context.queue("test", backoff);
        let feed =
            feed(&clusters, &queue, |it: &Object<AwsCluster>| Some(Arc::clone(&it.metadata.key)));
        Self {
            store,
            identities: Identities::new(&context, process, &clusters, &queue, false),
            clusters,
            queue,
            caller,
            told: HashMap::new(),
            version: 0,
            end: None,
            _feed: feed,
            _sts: sts,
            _host: host,
        }
    }

    /// Whether a cache shows a part of the document in this version.
    fn shows(&self, part: &str, version: &Value) -> bool {
        let (resource, key) = place(part);
        let identity = |kind: &&IdentityKind| kind.resource() == resource;
        let found = if part == "cluster" {
            self.clusters.get(key).map(|it| it.metadata.resource_version)
        } else if let Some(kind) = IdentityKind::ALL.iter().find(identity) {
            self.identities.objects[kind].get(key).map(|it| it.metadata.resource_version)
        } else {
            let namespaces = self.identities.namespaces.get();
            namespaces.and_then(|(all, _)| all.get(key)).map(|it| it.resource_version)
        };
        found.map(|found| Value::from(found.to_string())).as_ref() == Some(version)
    }

    /// Stores a part of the document, and looks at the AWSCluster until a look has seen it.
    async fn tell(&mut self, part: &'static str, object: &Value) {
        self.version += 1;
        let (resource, key) = place(part);
        let mut whole = object.clone();
        whole["metadata"]["name"] = key.rsplit('/').next().into();
        if let Some((namespace, _)) = key.split_once('/') {
            whole["metadata"]["namespace"] = namespace.into();
        }
        whole["metadata"]["generation"] = self.version.into();
        let version = self.store.put(&resource.object_path(key), whole);
        if part == "namespace" && self.identities.namespaces.get().is_none() {
            return;
        }
        loop {
            let woken = timeout(LIMIT, self.queue.next()).await;
            let item = woken.unwrap_or_else(|_| panic!("{part} wakes no AWSCluster")).unwrap();
            let is_shown = self.shows(part, &version);
            self.look(&item).await;
            if is_shown {
                return;
            }
        }
    }

    async fn look(&mut self, key: &str) {
        let Some(object) = self.clusters.get(key) else { return };
        let account = self.identities.account(&object).await;
        // An answer of STS is believed for half a minute.
        tokio::time::pause();
        tokio::time::advance(LIMIT).await;
        tokio::time::resume();
        let called = match account {
            Ok(account) => account.caller(REGION, None).await.map_err(|it| denial(&it).unwrap()),
            Err(denial) => Err(denial),
        };
        let by = self.caller.lock().clone();
        self.end = Some(match called {
            Ok(_) => End { effects: vec![format!("calls by {by}")], reports: Vec::new() },
            Err(it) => {
                let about = if it.is_about_usage { "usage" } else { "credentials" };
                let report = format!("{about} {} {}", it.reason, it.message);
                End { effects: Vec::new(), reports: vec![report] }
            }
        });
    }
}

impl World for OneCluster {
    async fn settle(&mut self, objects: &Value, _: bool) -> End {
        for part in PARTS {
            if self.told.get(part) != Some(&objects[part]) {
                self.told.insert(part, objects[part].clone());
                self.tell(part, &objects[part]).await;
            }
        }
        self.end.clone().unwrap()
    }
}

/// Rows of `allowedNamespaces` of the identity of this part: a base, a field of it, a value with which it permits the
/// namespace, one with which it does not.
fn allowed(part: &str) -> Vec<Field> {
    let spec = |rest: &str| -> &'static str { format!("{part}.spec.{rest}").leak() };
    let place = spec("allowedNamespaces");
    let used = |field: Field| match part {
        "controller" => field.given(
            "role.spec.sourceIdentityRef",
            json!({"kind": "AWSClusterControllerIdentity", "name": "default"}),
        ),
        _ => field,
    };
    let a_team = json!([{"key": "team", "operator": "In", "values": ["a"]}]);
    let rows = [
        ("list", json!({"list": ["other"]}), json!(["ns"]), json!(["other", "another"])),
        (
            "selector.matchLabels",
            json!({"selector": {"matchLabels": {"team": "b"}}}),
            json!({"team": "a"}),
            json!({"team": "a", "tier": "front"}),
        ),
        (
            "selector.matchExpressions",
            json!({"selector": {"matchExpressions":
            [{"key": "team", "operator": "Exists"}, {"key": "tier", "operator": "Exists"}]}}),
            a_team.clone(),
            json!([{"key": "team", "operator": "Exists", "values": ["a"]}]),
        ),
    ]
    .into_iter()
    .chain(
        [
            ("key", json!("rank"), json!("team"), json!("tier")),
            ("operator", json!("NotIn"), json!("In"), json!("Like")),
            ("values", json!(["b"]), json!(["b", "a"]), json!([])),
        ]
        .map(|(name, denied, permitted, refused)| {
            let mut requirement = a_team.clone();
            requirement[0][name] = denied;
            let field: &str = format!("selector.matchExpressions[].{name}").leak();
            (field, json!({"selector": {"matchExpressions": requirement}}), permitted, refused)
        }),
    );
    rows.flat_map(|(field, denies, permitted, refused)| {
        let field = spec(&format!("allowedNamespaces.{field}"));
        let permits =
            used(Field::new(field, permitted.clone(), Value::Null)).given(place, denies.clone());
        let refuses =
            used(Field::new(field, Value::Null, Value::Null).refuses(refused)).given(place, denies);
        [permits, refuses.given(field, permitted)]
    })
    .collect()
}

fn of_role() -> Vec<Field> {
    let field = |name: &str| -> &'static str { format!("role.spec.{name}").leak() };
    let role = |name: &str| json!(format!("arn:aws:iam::1:role/{name}"));
    let policy = |effect: &str| json!(format!("{{\"Statement\": \"{effect}\"}}"));
    let source = |kind: &str, name: &str| json!({"kind": kind, "name": name});
    let of_role = source("AWSClusterRoleIdentity", "role-2");
    vec![
        Field::new(field("roleARN"), role("two"), role("three")).refuses(role("refused")),
        Field::new(field("sessionName"), "two", "three"),
        Field::new(field("durationSeconds"), 1800, 7200),
        Field::new(field("durationSeconds"), 1800, 3600)
            .given(field("sourceIdentityRef"), of_role)
            .refuses(3601),
        Field::new(field("inlinePolicy"), policy("two"), policy("three")),
        Field::new(field("policyARNs"), json!(["arn:one"]), json!(["arn:one", "arn:two"])),
        Field::new(field("externalID"), "two", "three"),
        Field::new(
            field("sourceIdentityRef.kind"),
            "AWSClusterRoleIdentity",
            "AWSClusterControllerIdentity",
        )
        .given(field("sourceIdentityRef"), source(PROVIDER, "default"))
        .refuses("Secret"),
        Field::new(field("sourceIdentityRef.name"), "keys-2", Value::Null).refuses("absent"),
    ]
}

#[test]
fn a_field_of_an_identity_that_is_changed_or_reverted_leaves_no_trace() {
    let reference = |kind: &str, name: &str| json!({"kind": kind, "name": name});
    let objects = json!({
        "cluster": {"spec": {
            "region": REGION, "identityRef": reference("AWSClusterRoleIdentity", "role"),
        }},
        "namespace": {"metadata": {"labels": {"team": "a"}}},
        "controller": {"spec": {"allowedNamespaces": {}}},
        "static": {"spec": {"secretRef": "s-1", "allowedNamespaces": {}}},
        "role": {"spec": {
            "roleARN": "arn:aws:iam::1:role/one", "sourceIdentityRef": reference(PROVIDER, "keys"),
            "allowedNamespaces": {},
        }},
    });
    let role = [of_role(), allowed("role")].concat();
    let keys = Field::new("static.spec.secretRef", "s-2", "s-3").refuses("absent");
    let keys = [vec![keys], allowed("static")].concat();
    let controller = allowed("controller");
    for (kind, part, fields) in [
        ("controlleridentities", "controller", &controller),
        ("roleidentities", "role", &role),
        ("staticidentities", "static", &keys),
    ] {
        let crd = format!("config/crd/infrastructure.cluster.x-k8s.io_awscluster{kind}.yaml");
        assert_eq!(Crd::read(&crd).is_complete(&["spec"], part, fields, &[]), []);
    }
    // Fields of other kinds that decide which identity is used, and who may use it.
    let selected = json!({"selector": {"matchLabels": {"team": "a"}}});
    let more = [
        Field::new("cluster.spec.identityRef.name", "role-2", Value::Null).refuses("absent"),
        Field::new("cluster.spec.identityRef.kind", PROVIDER, "AWSClusterControllerIdentity")
            .given("cluster.spec.identityRef.name", "default")
            .refuses("Secret"),
        Field::new("namespace.metadata.labels.team", "b", Value::Null)
            .given("role.spec.allowedNamespaces", selected),
    ];
    let mut deviations = Vec::new();
    for field in [&role[..], &keys, &controller, &more].concat() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        deviations.extend(runtime.block_on(play(OneCluster::new, &objects, &field)));
    }
    assert!(deviations.is_empty(), "{} deviations: {deviations:#?}", deviations.len());
}
