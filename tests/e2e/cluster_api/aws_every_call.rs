//! Each call to AWS and each write to the API server meets each fault, from the making of a cluster to its end: STS and the
//! steps in which its account becomes known are among them, because a chain of identities gives its credentials.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tests::aws_proxy::{Call, Fate, Upstream};
use tests::aws_totals::{Totals, totals};
use tests::fault_proxy::{Cut, Fault, FaultProxy, Match, Request};
use tests::kubectl::IDENTITY;

use crate::aws_accounts::keys_of;
use crate::aws_crashes::end;
use crate::aws_identities::{OF_KEYS, OF_ROLE, keys, role, secret, using};
use crate::aws_stage::{REGION, Stage, is_ready, ours, spec};
use crate::scene::{AWS_CLUSTERS, CLUSTERS, cluster, condition};

/// What a call asks for, without what differs when it is sent again.
fn kind(call: &Call) -> String {
    let is_kept = |name: &str| !["Action", "Version", "ClientToken"].contains(&name);
    let kept = call.parameters.iter().filter(|(name, _)| is_kept(name));
    let words = kept.map(|(_, value)| match value.parse::<u64>() {
        // The attempt is a tag of what is made.
        Ok(_) => "#",
        Err(_) => value,
    });
    format!("{} {}", call.action, words.collect::<Vec<_>>().join(" "))
}

/// What a write to the API server changes, if it is one of a controller.
fn change(request: &Request) -> Option<String> {
    let is_write = [Method::POST, Method::PATCH, Method::DELETE].contains(&request.method);
    let is_other =
        ["accessreviews", "/token", "/events"].iter().any(|it| request.path.contains(it));
    let body = request.json();
    let names = |part: &Value| {
        let names = part.as_object().into_iter().flat_map(|it| it.keys().cloned());
        names.filter(|it| !["resourceVersion", "uid"].contains(&&**it)).collect::<Vec<_>>()
    };
    let metadata = &body["metadata"];
    let changed = [names(metadata), names(&metadata["annotations"])].concat().join(" ");
    (is_write && !is_other).then(|| format!("{} {} {changed}", request.method, request.path))
}

const CRASHES: &[Fate] = &[Fate::CrashBefore, Fate::CrashAfter];
/// A write whose sender dies after it is not repeated, so lost answers need a run of their own.
const LOSSES: &[Fate] = &[Fate::AnswerLost];

/// The faults that each call meets, in their order, and how many of them each call has met.
#[derive(Clone)]
struct Met(&'static [Fate], Arc<Mutex<BTreeMap<String, usize>>>);

impl Met {
    /// Whether the call meets this fault now.
    fn meets(&self, call: String, fault: &Fate) -> bool {
        let mut met = self.1.lock();
        let number = met.entry(call).or_default();
        let is_next = self.0.get(*number) == Some(fault);
        *number += usize::from(is_next);
        is_next
    }

    fn fate(&self, call: &Call) -> Fate {
        let next = self.0.iter().find(|fault| self.meets(kind(call), fault));
        next.cloned().unwrap_or(Fate::Pass)
    }

    fn changes(&self, fault: Fate) -> Match {
        let met = self.clone();
        Match::any().and(move |it| change(it).is_some_and(|call| met.meets(call, &fault)))
    }

    /// Asserts that there was a call with this in its description, and that it met all faults.
    fn assert_whole(&self, of: &str) {
        let met = self.1.lock();
        let is_whole =
            |(call, number): (&String, &usize)| call.contains(of) && *number == self.0.len();
        assert!(met.iter().any(is_whole), "{of}: {met:#?}");
    }

    /// Prints a line for each name of a call.
    fn print(&self, what: &str) {
        let mut lines = BTreeMap::<String, Vec<usize>>::new();
        for (call, met) in &*self.1.lock() {
            let is_change = call.contains(" /");
            let name = if is_change { &**call } else { call.split(' ').next().unwrap() };
            let line = lines.entry(name.to_owned()).or_insert_with(|| vec![0; self.0.len()]);
            line.iter_mut().take(*met).for_each(|count| *count += 1);
        }
        println!("{what}: {:?}", self.0);
        for (name, counts) in &lines {
            println!("{counts:3?}  {name}");
        }
        println!("{} points, all right", lines.values().flatten().sum::<usize>());
    }
}

/// The processes that keep one cluster: each lives until a call meets a fault that it does not survive.
struct Lives<'a> {
    stage: &'a Stage,
    api: FaultProxy,
    /// The account of the cluster, and the most that it may have.
    account: Upstream,
    most: Totals,
    faults: &'static [Fate],
}

impl Lives<'_> {
    /// Lives until the program reaches this without a crash.
    async fn live(&self, what: &str, is_reached: impl AsyncFn()) -> Met {
        let (met, began) = (Met(self.faults, Arc::default()), Instant::now());
        let mut number = 1;
        while !self.one_life(&met, &is_reached).await {
            number += 1;
            assert!(number < 400, "it does not come to an end: {:#?}", met.1.lock());
            for (kind, number) in totals(&self.account, REGION).await {
                let most = self.most[&kind];
                assert!(number <= most, "{number} {kind} instead of {most}: {:#?}", met.1.lock());
            }
        }
        met.print(&format!("{what}, {number} lives in {:?}", began.elapsed()));
        met
    }

    async fn one_life(&self, met: &Met, is_reached: impl AsyncFn()) -> bool {
        let deciding = met.clone();
        self.stage.proxy.decide(move |_, call| deciding.fate(call));
        let never = Fault::DelayBefore(Duration::from_secs(3600));
        let before = self.api.on(met.changes(Fate::CrashBefore)).then(never);
        let after = self.api.on(met.changes(Fate::CrashAfter)).hold_answer();
        let lost = self.api.on(met.changes(Fate::AnswerLost));
        let lost = lost.then(Fault::LoseAnswer(Cut::Stream));
        let launch = self.stage.launch_by(self.api.kubeconfig(), "--leader-elect=false");
        let manager = launch.start();
        let is_reached = tokio::select! {
            () = self.stage.proxy.died() => false,
            () = before.hit(1) => false,
            () = after.arrived(1) => false,
            () = is_reached() => true,
        };
        end(self.stage, manager).await;
        before.remove();
        drop(after);
        lost.remove();
        is_reached
    }
}

/// The names of the calls since they were last forgotten.
fn names(stage: &Stage) -> BTreeSet<String> {
    stage.proxy.calls().into_iter().map(|call| format!("{} ", call.action)).collect()
}

/// Each call to AWS, and each write to the API server, meets each fault once: the next life repeats the call.
async fn every_call_with_a_chain_of_identities(faults: &'static [Fate], late: Duration) {
    let Some(stage) = Stage::set().await else { return };
    let before = stage.totals().await;
    stage.create_all(&[ours("plain", &spec("10.1.1.0/24")), cluster("plain")]);
    let manager = stage.start_with_aws("");
    stage.until(AWS_CLUSTERS, "plain", "is ready", is_ready).await;
    let (most, of_create) = (stage.totals().await, names(&stage));
    stage.proxy.forget();
    stage.run(&format!("delete {CLUSTERS} plain --wait=false"));
    stage.until_gone(AWS_CLUSTERS, "plain").await;
    let of_delete = names(&stage);
    end(&stage, manager).await;

    let mut last = role();
    last["spec"]["sourceIdentityRef"] = json!({"kind": "AWSClusterStaticIdentity", "name": "keys"});
    stage.run("label namespace default team=a --overwrite");
    stage.create_all(&[keys(), secret(&keys_of(&stage, OF_KEYS).await), last]);
    stage.create_all(&[using("role", "Role"), cluster("role")]);
    let began = Instant::now();
    stage.proxy.shows_late(late, move || began.elapsed());
    let account = stage.proxy.upstream().with_key(&keys_of(&stage, OF_ROLE).await[0]);
    let api = FaultProxy::start(&stage.plane, IDENTITY, &[]).await;
    let lives = Lives { stage: &stage, api, account, most, faults };
    let ready = async || drop(stage.until(AWS_CLUSTERS, "role", "is ready", is_ready).await);
    let created = lives.live("create", ready).await;
    assert_eq!(totals(&lives.account, REGION).await, lives.most, "as without faults");
    let manager = stage.start_with_aws("--plan-only");
    let is_planned = |it: &Value| condition(it, "PlanOnly")["status"] == "True";
    let planned = stage.until(AWS_CLUSTERS, "role", "is planned", is_planned).await;
    let message = condition(&planned, "PlanOnly")["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("planned writes: 0;"), "{message}: {}", planned["status"]["plan"]);
    end(&stage, manager).await;
    let of_account = [
        "AssumeRole ",
        "secrets/aws-keys ownerReferences",
        "awsclusters/role annotations finalizers aws.cluster.x-k8s.io/owner-id",
        "awsclusters/role annotations aws.cluster.x-k8s.io/account-id",
    ];
    of_create.iter().map(String::as_str).chain(of_account).for_each(|it| created.assert_whole(it));

    stage.run(&format!("delete {CLUSTERS} role --wait=false"));
    let gone = async || stage.until_gone(AWS_CLUSTERS, "role").await;
    let deleted = lives.live("delete", gone).await;
    assert_eq!(totals(&lives.account, REGION).await, before, "nothing is left");
    stage.run("delete secret aws-keys -n kube-system");
    let of_account = ["AssumeRole ", "awsclusters/role finalizers"];
    of_delete.iter().map(String::as_str).chain(of_account).for_each(|it| deleted.assert_whole(it));
}

#[ignore = "item aws-faults of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn every_call_with_each_crash_with_a_chain_of_identities() {
    every_call_with_a_chain_of_identities(CRASHES, Duration::ZERO).await;
}

#[ignore = "item aws-faults of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn every_call_with_each_crash_with_a_chain_of_identities_shown_late() {
    every_call_with_a_chain_of_identities(CRASHES, Duration::from_secs(5)).await;
}

#[ignore = "item aws-faults of scripts/nightly"]
#[tokio::test(flavor = "multi_thread")]
async fn every_call_with_its_answer_lost_with_a_chain_of_identities() {
    for late in [Duration::ZERO, Duration::from_secs(5)] {
        every_call_with_a_chain_of_identities(LOSSES, late).await;
    }
}
