//! The API server of `tests/simulation` answers random requests as the real one does.

use std::collections::BTreeMap;

use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use rand::RngExt as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use simulation::api::{Answer, answer};
use simulation::call::Call;
use simulation::store::Store;
use tests::cluster;

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const NAMES: [&str; 3] = ["o0", "o1", "o2"];
/// Requests of a sequence, after which all objects are removed.
const REQUESTS: u32 = 60;
const SEQUENCES: u32 = 15;
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A request in which `UID`, `NEWEST` and `OLDER` stand for what a server said of the object, and `LISTED` for the version
/// of its last list.
#[derive(Clone, Debug)]
struct Template {
    method: Method,
    collection: &'static str,
    /// Empty for the collection.
    name: String,
    query: String,
    accept: &'static str,
    content_type: &'static str,
    body: String,
}

/// What a server has said so far.
#[derive(Default)]
struct Said {
    /// UID, newest and older version of the objects, by path.
    objects: BTreeMap<String, [String; 3]>,
    version: String,
}

/// An answer as far as it is compared.
#[derive(Debug, PartialEq, Eq)]
struct Compared {
    code: u16,
    reason: String,
    fields: Vec<String>,
    kind: String,
    /// The object after the request, or the list.
    object: Value,
    /// Whether the request changed its UID, and its version.
    changed: [bool; 2],
}

impl Template {
    fn path(&self) -> String {
        let slash = if self.name.is_empty() { "" } else { "/" };
        format!("{}{slash}{}", self.collection, self.name)
    }

    fn request(&self, said: &Said) -> http::Request<Vec<u8>> {
        let [uid, newest, older] = said.objects.get(&self.path()).cloned().unwrap_or_default();
        let fill = |text: &str| {
            let text = text.replace("UID", &uid).replace("NEWEST", &newest);
            text.replace("OLDER", &older).replace("LISTED", &said.version)
        };
        http::Request::builder()
            .method(self.method.clone())
            .uri(format!("{}?{}", self.path(), fill(&self.query)))
            .header(ACCEPT, self.accept)
            .header(CONTENT_TYPE, self.content_type)
            .body(fill(&self.body).into_bytes())
            .unwrap()
    }
}

fn pick<'a>(rng: &mut StdRng, from: &[&'a str]) -> &'a str {
    from[rng.random_range(0..from.len())]
}

fn spec(rng: &mut StdRng, collection: &str) -> Value {
    if collection == LEASES {
        return json!({"holderIdentity": pick(rng, &["a", "b", ""])});
    }
    let cidrs = [
        json!([]),
        json!(["10.0.0.0/24"]),
        json!(["10.0.1.0/24"]),
        json!(["10.0.0.0/24", "fd00::/64"]),
        json!(["10.0.0.0/24", "10.0.1.0/24"]),
        json!(["nonsense"]),
    ];
    let all = cidrs[rng.random_range(0..cidrs.len())].clone();
    let one = match rng.random_range(0..6) {
        0 => json!("10.0.1.0/24"),
        1 => Value::Null,
        _ => all[0].clone(),
    };
    match rng.random_range(0..3) {
        0 => json!({}),
        1 => json!({"podCIDR": one}),
        _ => json!({"podCIDR": one, "podCIDRs": all}),
    }
}

fn object(rng: &mut StdRng, collection: &str, name: &str, is_new: bool) -> Value {
    let mut object = json!({"metadata": {"name": name}, "spec": spec(rng, collection)});
    if rng.random_range(0..4) == 0 {
        object["metadata"]["labels"] = json!({"a": pick(rng, &["1", "2"])});
    }
    if rng.random_range(0..5) == 0 {
        let all = [json!([]), json!(["example.com/f"])];
        object["metadata"]["finalizers"] = all[rng.random_range(0..2)].clone();
    }
    if is_new {
        return object;
    }
    let uids = ["UID", "UID", "", "00000000-0000-4000-8000-000000000000"];
    for (field, values) in [("uid", &uids), ("resourceVersion", &["NEWEST", "NEWEST", "OLDER", ""])]
    {
        match pick(rng, values) {
            "" => {}
            value => object["metadata"][field] = value.into(),
        }
    }
    object
}

fn random(rng: &mut StdRng) -> Template {
    let collection = if rng.random_range(0..4) == 0 { LEASES } else { NODES };
    let name = pick(rng, &NAMES).to_owned();
    let dry = if rng.random_range(0..8) == 0 { "dryRun=All&" } else { "" };
    let timeout = if rng.random_range(0..4) == 0 { "timeout=5000ms" } else { "" };
    let mut template = Template {
        method: Method::GET,
        collection,
        name: name.clone(),
        query: String::new(),
        accept: if rng.random_range(0..4) == 0 { METADATA } else { "application/json" },
        content_type: "application/json",
        body: String::new(),
    };
    match rng.random_range(0..12) {
        0..3 => {
            template.method = Method::POST;
            template.name = String::new();
            template.body = object(rng, collection, &name, true).to_string();
            template.query = format!("{dry}{timeout}");
        }
        3 | 4 => {
            template.method = Method::PUT;
            let mut object = object(rng, collection, &name, false);
            // Always a change: a replacement takes away the taints that the real server adds.
            object["metadata"]["labels"] = json!({"a": rng.random::<u32>().to_string()});
            template.body = object.to_string();
            template.query = format!("{dry}{timeout}");
        }
        5..8 => {
            template.method = Method::PATCH;
            let types = [STRATEGIC, "application/merge-patch+json", STRATEGIC];
            template.content_type = pick(rng, &types);
            template.body = object(rng, collection, &name, false).to_string();
            template.query = format!("{dry}{timeout}");
        }
        8 => {
            template.method = Method::DELETE;
            let all =
                ["{}", r#"{"uid":"UID"}"#, r#"{"uid":"other"}"#, r#"{"resourceVersion":"OLDER"}"#];
            template.body = format!(r#"{{"preconditions":{}}}"#, pick(rng, &all));
            template.query = dry.into();
        }
        9 | 10 => {
            template.name = String::new();
            template.accept =
                if template.accept == METADATA { METADATA_LIST } else { template.accept };
            let queries = [
                "",
                "limit=1",
                "limit=2",
                "resourceVersion=LISTED&resourceVersionMatch=Exact",
                "resourceVersion=LISTED&resourceVersionMatch=Exact&limit=1",
                "resourceVersionMatch=Exact",
                "resourceVersion=nonsense",
                "continue=nonsense",
                "resourceVersion=0&resourceVersionMatch=Exact",
            ];
            template.query = pick(rng, &queries).into();
        }
        _ => {}
    }
    template
}

/// Reduces an object to what both servers must say of it.
fn reduced(object: &Value) -> Value {
    let text = |field: &str| object["metadata"][field].clone();
    json!({
        "kind": object["kind"], "name": text("name"), "labels": text("labels"),
        "finalizers": text("finalizers"), "deleting": !text("deletionTimestamp").is_null(),
        "podCIDR": object["spec"]["podCIDR"], "podCIDRs": object["spec"]["podCIDRs"],
        "holder": object["spec"]["holderIdentity"],
    })
}

fn list_of(list: &Value) -> Value {
    let item =
        |it: &Value| json!({"name": it["metadata"]["name"], "podCIDRs": it["spec"]["podCIDRs"]});
    let items: Vec<_> = list["items"].as_array().into_iter().flatten().map(item).collect();
    json!({
        "items": items, "remaining": list["metadata"]["remainingItemCount"],
        "goes_on": !list["metadata"]["continue"].as_str().unwrap_or_default().is_empty(),
    })
}

/// Notes what a read says of an object, and compares it with what was known.
fn note(said: &mut Said, path: &str, read: &Value) -> [bool; 2] {
    let text = |field: &str| read["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (uid, version) = (text("uid"), text("resourceVersion"));
    let known = said.objects.entry(path.to_owned()).or_default();
    let changed = [known[0] != uid, known[1] != version];
    if version.is_empty() {
        known[0] = uid;
    } else {
        let older = known[if changed[1] { 1 } else { 2 }].clone();
        *known = [uid, version, older];
    }
    changed
}

trait Server {
    async fn send(&mut self, request: http::Request<Vec<u8>>) -> (u16, Value);
}

struct Real(Client);

impl Server for Real {
    async fn send(&mut self, request: http::Request<Vec<u8>>) -> (u16, Value) {
        let response = self.0.send(request.map(Body::from)).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }
}

impl Server for Store {
    async fn send(&mut self, request: http::Request<Vec<u8>>) -> (u16, Value) {
        let (head, body) = request.into_parts();
        let cached = self.revision();
        match answer(self, &Call::new(&head, body.into()), cached) {
            Answer::Whole(code, object) => (code, object),
            Answer::Watch(_) => panic!("no watch was asked for"),
        }
    }
}

async fn compared(server: &mut impl Server, template: &Template, said: &mut Said) -> Compared {
    let (code, body) = server.send(template.request(said)).await;
    let is_list = template.name.is_empty() && template.method == Method::GET;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let mut fields: Vec<_> = causes.iter().map(|it| text(&it["field"])).collect();
    fields.sort_unstable();
    fields.dedup();
    let (mut object, mut changed) = (Value::Null, [false; 2]);
    if is_list && code == 200 {
        object = list_of(&body);
        said.version = text(&body["metadata"]["resourceVersion"]);
    } else if !is_list {
        let mut read = template.clone();
        if read.name.is_empty() {
            let body: Value = serde_json::from_str(&template.body).unwrap();
            read.name = text(&body["metadata"]["name"]);
        }
        let path = read.path();
        let get = http::Request::get(&path).header(ACCEPT, "application/json").body(Vec::new());
        let (found, now) = server.send(get.unwrap()).await;
        object = if found == 200 { reduced(&now) } else { json!(found) };
        changed = note(said, &path, if found == 200 { &now } else { &Value::Null });
    }
    let (reason, kind) = (text(&body["reason"]), text(&body["kind"]));
    Compared { code, reason, fields, kind, object, changed }
}

/// Removes all objects.
async fn clean(server: &mut impl Server) {
    for (collection, name) in [NODES, LEASES].iter().flat_map(|it| NAMES.map(|name| (it, name))) {
        let path = format!("{collection}/{name}");
        let free = br#"{"metadata":{"finalizers":null}}"#.to_vec();
        let patch =
            http::Request::patch(&path).header(CONTENT_TYPE, "application/merge-patch+json");
        server.send(patch.body(free).unwrap()).await;
        server.send(http::Request::delete(&path).body(Vec::new()).unwrap()).await;
    }
}

/// The first difference of the answers to random requests.
async fn difference(rng: &mut StdRng, real: &mut Real, double: &mut Store) -> Option<String> {
    let (mut of_real, mut of_double) = (Said::default(), Said::default());
    for number in 0..REQUESTS {
        let template = random(rng);
        let is = compared(real, &template, &mut of_real).await;
        let answered = compared(double, &template, &mut of_double).await;
        if is != answered {
            return Some(format!("{number}: {template:?}\n  real   {is:?}\n  double {answered:?}"));
        }
    }
    None
}

#[tokio::test]
async fn the_simulated_api_server_answers_as_the_real_one() {
    let cluster = cluster().await;
    let (mut real, mut double) = (Real(cluster.client().await), Store::default());
    let mut rng = tests::seed::random("SIMULATED_API_SEED");
    let mut different = Vec::new();
    for _ in 0..SEQUENCES {
        different.extend(difference(&mut rng, &mut real, &mut double).await);
        clean(&mut real).await;
        clean(&mut double).await;
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
