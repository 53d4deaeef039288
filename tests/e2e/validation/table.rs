//! One table for the library, the command and the API server.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Arc;
use std::time::SystemTime;

use cluster_health::admission::Review;
use http::StatusCode;
use kube::Client;
use kube::api::{DeleteParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use serving::{Access, Page, PageRequest, Pages, reply};
use tests::dynamic::api;
use tests::kubectl::Kubectl;
use tests::poll::poll;
use tests::programs::product;
use tests::temp_dir::TempDir;
use validation::{Environment, Findings, Operation, validate};

use crate::row::{Row, environment_of, lines};
use crate::scene::{Call, Webhook, register, registration};
use crate::server::{Cause, as_a_schema_says, causes, comparable, dry_run};

pub(crate) fn rows() -> Vec<Row> {
    [
        crate::aws_cluster::rows(),
        crate::cluster::rows(),
        crate::cluster_cidr::rows(),
        crate::cluster_network::rows(),
        crate::cluster_updates::rows(),
        crate::kubefed::rows(),
        crate::licence::rows(),
        crate::machine::rows(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The environment by which the test's webhook validates; with `None` it accepts everything.
#[derive(Clone, Default)]
pub(crate) struct Surroundings(Arc<Mutex<Option<Environment>>>);

impl Surroundings {
    pub(crate) fn set(&self, environment: Option<Environment>) {
        *self.0.lock() = environment;
    }

    fn findings(&self, review: &Review) -> Findings {
        let (Some(environment), Some(subject)) = (self.0.lock().clone(), &review.subject) else {
            return Findings::default();
        };
        let operation = match &subject.old {
            Some(old) => Operation::Update { old },
            None => Operation::Create,
        };
        validate(subject.kind, &subject.object, operation, &environment)
    }
}

/// A webhook that reads and answers as the product's, for all kinds and any surroundings.
pub(crate) async fn judging(kubectl: &Kubectl) -> (Webhook, Surroundings) {
    let surroundings = Surroundings::default();
    let judge = surroundings.clone();
    let page = Page::new("/validate", Access::Authorized, move |request: PageRequest| {
        let review = Review::read(&request.body).expect("it is a review");
        let answer = review.answer(&judge.findings(&review));
        async move { reply::json(StatusCode::OK, answer) }
    });
    let pages = Pages::new();
    pages.add(page.with_body_limit(4 << 20));
    let webhook = Webhook::start(pages, SystemTime::now()).await;
    let call = Call {
        port: webhook.port,
        path: "/validate",
        bundle: Some(&webhook.bundle),
        policy: "Fail",
        timeout: 10,
    };
    let mut everything = registration(&call);
    let hooks = everything["webhooks"].as_array_mut().unwrap();
    hooks.truncate(1);
    let hook = hooks[0].as_object_mut().unwrap();
    hook.remove("matchConditions");
    hook.insert("sideEffects".to_owned(), json!("None"));
    let groups = [
        "platform.tkestack.io",
        "core.kubefed.io",
        "networking.x-k8s.io",
        "infrastructure.cluster.x-k8s.io",
    ];
    let resources = [
        "clusters",
        "machines",
        "clustercredentials",
        "kubefedclusters",
        "kubefedconfigs",
        "clustercidrs",
        "awsclusters",
    ];
    hook.insert(
        "rules".to_owned(),
        json!([{"apiGroups": groups, "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
            "resources": resources, "scope": "*"}]),
    );
    register(kubectl, &everything);
    surroundings.set(Some(Environment::default()));
    let mut odd = crate::objects::imported();
    odd["spec"]["type"] = json!("Odd");
    let (clusters, odd) = api(&kubectl.plane.client().await, &odd).await;
    poll("the API server asks the webhook", async || {
        clusters.create(&dry_run(), &odd).await.is_err().then_some(())
    })
    .await;
    (webhook, surroundings)
}

/// Errors of lines as the rows have them.
fn expected(row: &Row) -> BTreeSet<Cause> {
    let said = lines(&row.judge());
    let errors = said.iter().filter(|line| !line.starts_with("warning: "));
    let cause = |line: &String| {
        let mut parts = line.splitn(3, ": ");
        let (field, kind) = (parts.next().unwrap(), parts.next().unwrap());
        as_a_schema_says(field, &format!("FieldValue{kind}"))
    };
    errors.map(cause).collect()
}

/// The command's errors and warnings.
fn by_command(row: &Row, folder: &TempDir) -> Vec<String> {
    let file = |name: &str, content: &Value| {
        let path = folder.join(name);
        std::fs::write(&path, content.to_string()).unwrap();
        path
    };
    let mut command = Command::new(product());
    command.args(["validate", "-ojson", "-f"]).arg(file("object.json", &row.object()));
    command.arg("--environment").arg(file("environment.json", &row.known()));
    if let Some(old) = row.stored() {
        command.arg("--old").arg(file("old.json", &old));
    }
    let output = command.output().unwrap();
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
        panic!("{}: {}", row.rule, String::from_utf8_lossy(&output.stderr));
    });
    let judged = &printed["objects"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let errors = judged["errors"].as_array().unwrap().iter().map(|error| {
        format!("{}: {}: {}", text(&error["field"]), text(&error["type"]), text(&error["detail"]))
    });
    let warnings = judged["warnings"].as_array().unwrap().iter();
    let said: Vec<String> =
        errors.chain(warnings.map(|warning| format!("warning: {}", text(warning)))).collect();
    let is_valid = judged["errors"].as_array().unwrap().is_empty();
    assert_eq!(output.status.success(), is_valid, "{}", row.rule);
    said
}

/// The API server's causes; `None` where it cannot be asked: it drops the status of what is made,
/// and takes no object as stored that its schema refuses.
async fn by_server(
    client: &Client,
    surroundings: &Surroundings,
    row: &Row,
) -> Option<BTreeSet<Cause>> {
    let (object, stored) = (row.object(), row.stored());
    if !object["status"].is_null() {
        return None;
    }
    let environment = Some(environment_of(row.known()));
    let Some(stored) = stored else {
        let (api, sent) = api(client, &object).await;
        surroundings.set(environment);
        return Some(causes(api.create(&dry_run(), &sent).await));
    };
    let (api, sent) = api(client, &stored).await;
    surroundings.set(None);
    let made = api.create(&PostParams::default(), &sent).await.ok()?;
    let name = made.metadata.name.clone().unwrap();
    let mut changed: kube::api::DynamicObject = serde_json::from_value(object).unwrap();
    changed.metadata.resource_version.clone_from(&made.metadata.resource_version);
    surroundings.set(environment);
    let answer = causes(api.replace(&name, &dry_run(), &changed).await);
    surroundings.set(None);
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    Some(answer)
}

/// The results of the rows of a rule.
#[derive(Default)]
struct Tally {
    accepted: usize,
    refused: usize,
    asked: usize,
    /// Number of rows for which the server names only some causes, because it checks the schema first.
    in_part: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn library_command_and_api_server_refuse_the_same_fields_for_the_same_causes() {
    let kubectl = Kubectl::with_crds().await;
    kubectl.run("create namespace fed");
    let client = kubectl.plane.client().await;
    let (_webhook, surroundings) = judging(&kubectl).await;
    let folder = TempDir::new("rows").unwrap();
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut wrong = Vec::new();
    for row in rows() {
        let (object, expected) = (row.object(), expected(&row));
        let tally = tallies.entry(row.rule).or_default();
        *(if row.is_refusal() { &mut tally.refused } else { &mut tally.accepted }) += 1;
        row.holds();
        let (said, library) = (by_command(&row, &folder), lines(&row.judge()));
        if said != library {
            wrong.push(format!("command: {} of {object}: {said:?}, not {library:?}", row.rule));
        }
        let Some(found) = by_server(&client, &surroundings, &row).await else { continue };
        let found = comparable(found, &expected);
        tally.asked += 1;
        if !found.is_subset(&expected) || found.is_empty() != expected.is_empty() {
            wrong.push(format!("server: {} of {object}: {found:?}, not {expected:?}", row.rule));
        }
        tally.in_part += usize::from(found != expected);
    }
    println!(
        "| rule | accepted | refused | library and command | API server |\n|---|---|---|---|---|"
    );
    for (rule, Tally { accepted, refused, asked, in_part }) in &tallies {
        let part = if *in_part > 0 { format!(", {in_part} in part") } else { String::new() };
        println!(
            "| {rule} | {accepted} | {refused} | {} equal | {asked} asked{part} |",
            accepted + refused
        );
    }
    assert!(wrong.is_empty(), "{} of them\n{}", wrong.len(), wrong.join("\n"));
    surroundings.set(Some(Environment::default()));
    println!("{}", crate::shipped::are_judged_alike(&kubectl, &client).await.join("\n"));
    // One rule is about a status that the server drops.
    let unasked: Vec<_> =
        tallies.iter().filter(|(_, it)| it.asked == 0).map(|(rule, _)| *rule).collect();
    assert!(unasked.is_empty(), "the server was not asked about {unasked:?}");
}
