//! [`Members`]: member clusters, which answer probes in memory, or do not; and what their objects may say
//! of them (C8).

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Uri};
use rand::RngExt as _;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Instant, sleep, sleep_until};
use transport::{Duplex, dial_by};

use crate::store::Key;
use crate::world::{State, World, digest};

/// Number of members.
pub(crate) const MEMBERS: usize = 2;
pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Namespace of their objects.
const NAMESPACE: &str = "kube-federation-system";
/// Flags of cluster-health, with a threshold of three failures.
pub(crate) const FLAGS: [&str; 10] = [
    "--controllers=node-ipam-controller,cluster-health-controller",
    "--cluster-health-flavours=kubefed",
    "--cluster-health-kubefed-config=",
    "--cluster-health-zones=false",
    "--cluster-health-objective=0",
    "--cluster-health-guard=false",
    "--allow-plaintext-endpoints=true",
    "--cluster-health-period=4s",
    "--cluster-health-confirm-interval=2s",
    // The first heartbeat of a process comes at a random time within this hour.
    "--cluster-health-heartbeat-interval=1h",
];
/// Least time between the starts of the first and the last of three failed probes: two confirmations, each a
/// tenth shorter.
const THREE_PROBES: Duration = Duration::from_millis(3_600);
/// For so long a status may wait for the throttle and be on its way.
const LATEST_WRITE: Duration = Duration::from_secs(10);
/// A member that is well is ready after this time: a period and a tenth, the limit of a probe, and a second
/// for the write.
const READY_AFTER: Duration = Duration::from_millis(4_400 + 3_000 + 1_000);

/// What a member does with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Well,
    /// Refuses connections.
    Refusing,
    /// Accepts connections and never answers.
    Silent,
    /// Answers after this time.
    Slow(Duration),
    /// Answers 500.
    Failing,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    condition: Condition,
    /// The first request or connection that failed since the last good answer.
    failing_since: Option<Instant>,
    /// The first failure before that answer, and the time of the answer.
    failed: Option<(Instant, Instant)>,
    /// Since when its object exists.
    named_since: Option<Instant>,
}

impl Member {
    /// Gives a good answer.
    fn answer(&mut self) {
        if let Some(since) = self.failing_since.take() {
            self.failed = Some((since, Instant::now()));
        }
    }

    /// For how long it has failed, or had failed when a status was decided that comes late.
    fn has_failed_for(&self) -> Option<Duration> {
        let now = Instant::now();
        let before = self.failed.filter(|(_, end)| now - *end < LATEST_WRITE);
        let (since, end) = self.failing_since.map(|since| (since, now)).or(before)?;
        // What failed before the object existed counts for no threshold of it.
        let since = since.max(self.named_since.unwrap_or(since));
        Some(end.saturating_duration_since(since))
    }
}

/// All members.
pub(crate) struct Members([Member; MEMBERS]);

impl Default for Members {
    fn default() -> Self {
        let condition = Condition::Well;
        let member = Member { condition, failing_since: None, failed: None, named_since: None };
        Self([member; MEMBERS])
    }
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Connections to members lead into this world from now on.
pub(crate) fn connect(world: Option<&World>) {
    WORLD.set(world.cloned());
    dial_by(world.map(|_| dial as _));
}

fn dial(server: &Uri) -> BoxFuture<'static, io::Result<Box<dyn Duplex>>> {
    let host = server.host().and_then(|host| host.rsplit('.').next()?.parse::<usize>().ok());
    let (member, world) = (host.unwrap_or_default() % MEMBERS, WORLD.with_borrow(Clone::clone));
    async move {
        let world = world.ok_or(io::ErrorKind::NotConnected)?;
        if world.with(|state| state.meet(member)) == Condition::Refusing {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (ours, theirs) = duplex(16 * 1024);
        tokio::spawn(async move { serve(&world, member, theirs).await });
        Ok(Box::new(ours) as Box<dyn Duplex>)
    }
    .boxed()
}

/// Answers the requests of one connection.
async fn serve(world: &World, member: usize, mut stream: DuplexStream) -> io::Result<()> {
    let mut head = Vec::new();
    loop {
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let (condition, is_known) = world.with(|state| {
            state.note(|| format!("{} is asked {:x}", name_of(member), digest(&head)));
            (state.meet(member), state.has_sent_its_token(member, &head))
        });
        head.clear();
        let answered = if is_known { "200 OK" } else { "401 Unauthorized" };
        let status = match condition {
            Condition::Well => answered,
            Condition::Slow(by) => {
                sleep(by).await;
                answered
            }
            Condition::Failing => "500 Internal Server Error",
            Condition::Refusing => return Ok(()),
            Condition::Silent => return std::future::pending().await,
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
        stream.write_all(answer.as_bytes()).await?;
        if status == "200 OK" {
            world.with(|state| state.members.0[member].answer());
        }
    }
}

fn name_of(member: usize) -> String {
    format!("member-{member}")
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|it| it["type"] == kind)?["status"].as_str()
}

/// Whether a status was written again with other times only.
pub(crate) fn is_heartbeat(before: &Value, after: &Value) -> bool {
    let said = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let of = |it: &Value| ["type", "status", "reason"].map(|field| it[field].clone());
        conditions.iter().map(of).collect::<Vec<_>>()
    };
    before != after && said(before) == said(after)
}

impl State {
    /// Makes the objects of all members, and their kind.
    pub(crate) fn register_members(&mut self) {
        let crd = json!({"metadata": {"name": "kubefedclusters.core.kubefed.io"}});
        self.edit_at(Method::POST, CRDS.to_owned(), &crd);
        for member in 0..MEMBERS {
            let metadata = json!({"name": name_of(member), "namespace": NAMESPACE});
            let secret = json!({"metadata": metadata, "data": {"token": "dG9rZW4="}});
            self.edit_at(Method::POST, path_of_secrets(), &secret);
            self.add_member(member);
        }
    }

    /// Makes the object of a member.
    pub(crate) fn add_member(&mut self, member: usize) {
        let metadata = json!({"name": name_of(member), "namespace": NAMESPACE});
        let endpoint = format!("http://10.1.0.{}", member + MEMBERS);
        let spec = json!({
            "apiEndpoint": endpoint, "secretRef": {"name": name_of(member)},
            // Else each process reads the certificates of this machine.
            "disabledTLSValidations": ["*"],
        });
        let object = json!({"metadata": metadata, "spec": spec});
        self.edit_at(Method::POST, path_of_clusters(), &object);
        self.members.0[member].named_since = Some(Instant::now());
    }

    /// Deletes the object of a member.
    pub(crate) fn remove_member(&mut self, member: usize) {
        let path = format!("{}/{}", path_of_clusters(), name_of(member));
        self.edit_at(Method::DELETE, path, &Value::Null);
    }

    /// The member accepts another token from now on, which its Secret has.
    pub(crate) fn rotate(&mut self, member: usize) {
        let token = BASE64_STANDARD.encode(format!("token-{}", self.store.revision()));
        let path = format!("{}/{}", path_of_secrets(), name_of(member));
        self.edit_at(Method::PATCH, path, &json!({"data": {"token": token}}));
    }

    /// A member becomes well or falls ill.
    pub(crate) fn turn(&mut self, member: usize, rng: &mut SmallRng) -> &'static str {
        let (condition, what) = match rng.random_range(0..6) {
            0 => (Condition::Refusing, "member refuses"),
            1 => (Condition::Silent, "member is silent"),
            2 => (Condition::Failing, "member fails"),
            3 => (
                Condition::Slow(Duration::from_millis(rng.random_range(1..4_000))),
                "member is slow",
            ),
            _ => (Condition::Well, "member is well"),
        };
        self.set_condition(member, condition);
        what
    }

    /// All members are well.
    pub(crate) fn cure_members(&mut self) {
        (0..MEMBERS).for_each(|member| self.set_condition(member, Condition::Well));
    }

    fn set_condition(&mut self, member: usize, condition: Condition) {
        self.note(|| format!("{} is {condition:?}", name_of(member)));
        self.members.0[member].condition = condition;
    }

    /// A request or a connection comes to a member.
    fn meet(&mut self, member: usize) -> Condition {
        let member = &mut self.members.0[member];
        if member.condition != Condition::Well {
            member.failing_since.get_or_insert_with(Instant::now);
        }
        member.condition
    }

    /// Whether a request has the token that the Secret of the member has now.
    fn has_sent_its_token(&self, member: usize, head: &[u8]) -> bool {
        let (namespace, name) = (NAMESPACE.to_owned(), name_of(member));
        let secret = self.store.get(&Key { resource: "secrets", namespace, name });
        let token =
            secret.and_then(|it| BASE64_STANDARD.decode(it["data"]["token"].as_str()?).ok());
        let head = String::from_utf8_lossy(head);
        let sent = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("authorization").then(|| value.strip_prefix("Bearer "))?
        });
        token.is_some_and(|token| sent.is_some_and(|sent| sent.as_bytes() == token))
    }

    /// What a write of a status says of a member may be written, and to the object that it is about.
    pub(crate) fn judge_status(&mut self, written: &Value, before: &Value, after: &Value) {
        let name = after["metadata"]["name"].as_str().unwrap_or_default();
        let Some(member) = (0..MEMBERS).find(|it| name_of(*it) == name) else { return };
        if before != after && written["metadata"]["uid"] != after["metadata"]["uid"] {
            self.violate(format!(
                "C8: a status of {name} is written without the UID of its object"
            ));
        }
        let was_ready = condition(before, "Ready") == Some("True");
        let turns = was_ready && condition(after, "Offline") == Some("True");
        let member = self.members.0[member];
        // In a script no write comes late: a member that refused only a wrong token stays ready.
        let is_unready = condition(after, "Ready") != Some("True");
        let is_failing = member.failing_since.is_some();
        if was_ready && is_unready && !is_failing && self.plan.script.is_some() {
            self.violate(format!("C8: {name}, which is well, is not ready any more"));
        }
        let failing = member.has_failed_for();
        if turns && failing.is_none_or(|time| time < THREE_PROBES) {
            self.violate(format!("C8: {name} is offline after it failed for {failing:?}"));
        }
    }

    fn is_ready(&self, member: usize) -> bool {
        let clusters = self.store.list("kubefedclusters", "", self.store.revision());
        let object = clusters.iter().find(|it| it["metadata"]["name"] == *name_of(member));
        object.is_some_and(|it| condition(it, "Ready") == Some("True"))
    }
}

fn path_of_secrets() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/secrets")
}

fn path_of_clusters() -> String {
    format!("/apis/core.kubefed.io/v1beta1/namespaces/{NAMESPACE}/kubefedclusters")
}

/// Waits until all members are ready, or until `limit`.
pub(crate) async fn all_ready(world: &World, limit: Instant) {
    await_ready(world, limit, |state| (0..MEMBERS).all(|member| state.is_ready(member))).await;
}

/// A member falls silent and becomes well again: its object follows in time.
pub(crate) async fn follow_one(world: &World) {
    world.with(|state| state.set_condition(0, Condition::Silent));
    sleep(Duration::from_secs(30)).await;
    world.with(|state| {
        if state.is_ready(0) {
            state.violate("C8: a member is ready that has been silent for 30s".to_owned());
        }
        state.cure_members();
    });
    await_ready(world, Instant::now() + READY_AFTER, |state| state.is_ready(0)).await;
}

async fn await_ready(world: &World, limit: Instant, is_ready: impl Fn(&State) -> bool) {
    while !world.with(|state| is_ready(state)) {
        if Instant::now() >= limit {
            world.with(|state| state.violate("C8: a member that is well is not ready".to_owned()));
            return;
        }
        sleep_until(limit.min(Instant::now() + Duration::from_millis(250))).await;
    }
}
