//! Answers of the API server, as a function of the store: reads, lists and watches. Writes are in
//! [`crate::writes`].

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::call::{Call, Kind, Refusal, Target};
use crate::plan::Breach;
use crate::store::{Change, Object, Store};
use crate::writes;

/// An event out of order comes that late, unless another one comes before.
const LATE: Duration = Duration::from_secs(1);

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Answers with this status code and object.
    Whole(u16, Value),
    /// Sends events until the end.
    Watch(Watch),
}

/// A watch that was opened.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The kind.
    pub kind: Kind,
    namespace: String,
    wants_metadata: bool,
    /// Events after this version are sent.
    pub after: u64,
    /// Version of the objects that come first, and are followed by a bookmark.
    pub initial: Option<u64>,
    /// The server ends the watch after this time.
    pub lifetime: Duration,
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::Whole(refusal.code, refusal.status())
    }
}

/// Answers a request on a server that has in its cache what the store had at the version `cached`.
pub fn answer(store: &mut Store, call: &Call, cached: u64) -> Answer {
    let Some(target) = call.target() else { return other(call) };
    let answer = match (call.method.clone(), target.key.name.is_empty()) {
        (Method::GET, true) if call.is_watch() => open_watch(store, call, &target, cached),
        (Method::GET, true) => list(store, call, &target, cached),
        (Method::GET, false) => read(store, call, &target, cached),
        _ => writes::write(store, call, &target),
    };
    answer.unwrap_or_else(Answer::from)
}

fn other(call: &Call) -> Answer {
    if call.path.ends_with("selfsubjectaccessreviews") {
        let mut review = call.json();
        review["status"] = json!({"allowed": true});
        return Answer::Whole(201, review);
    }
    if let Some(version) = Kind::version_at(&call.path) {
        let version = json!({"version": version});
        let group = json!({"kind": "APIGroup", "preferredVersion": version, "versions": [version]});
        return Answer::Whole(200, group);
    }
    if let Some(kinds) = Kind::served_at(&call.path) {
        let resource = |it: &Kind| {
            let verbs = ["get", "list", "watch"];
            json!({"name": it.resource, "kind": it.kind, "namespaced": it.is_namespaced, "verbs": verbs})
        };
        let resources: Vec<_> = kinds.iter().map(resource).collect();
        return Answer::Whole(200, json!({"kind": "APIResourceList", "resources": resources}));
    }
    if matches!(&*call.path, "/livez" | "/readyz") {
        return Answer::Whole(200, "ok".into());
    }
    let message = "the server could not find the requested resource";
    Refusal::new(404, "NotFound", message).into()
}

fn read(store: &Store, call: &Call, target: &Target, cached: u64) -> Result<Answer, Refusal> {
    // A version lets the server answer from its cache.
    let found = match version(call, "resourceVersion")? {
        None => store.get(&target.key),
        Some(at) => store.get_at(&target.key, cached.max(at)),
    };
    let found = found.ok_or_else(|| Refusal::about(target, 404, "NotFound", ""))?;
    Ok(whole(200, call, found))
}

/// An object in the form that was asked for.
pub(crate) fn whole(code: u16, call: &Call, object: &Object) -> Answer {
    Answer::Whole(code, shown(object, call.wants_metadata()))
}

fn shown(object: &Value, metadata_only: bool) -> Value {
    if !metadata_only {
        return object.clone();
    }
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// A version in a parameter; `None` when it is absent.
fn version(call: &Call, name: &str) -> Result<Option<u64>, Refusal> {
    let text = call.parameter(name);
    if text.is_empty() {
        return Ok(None);
    }
    let bad = |_| {
        let message = format!("resourceVersion: Invalid value: {text:?}: invalid syntax");
        Refusal::new(400, "BadRequest", message)
    };
    text.parse().map(Some).map_err(bad)
}

fn expired(message: &str) -> Refusal {
    Refusal::new(410, "Expired", message)
}

/// The version of a list, the key after which it goes on, and whether it has all objects in one page.
fn start(store: &Store, call: &Call, cached: u64) -> Result<(u64, String, bool), Refusal> {
    let (given, exact) =
        (version(call, "resourceVersion")?, call.parameter("resourceVersionMatch"));
    let token = call.parameter("continue");
    if !token.is_empty() {
        if !exact.is_empty() {
            let why = "resourceVersionMatch is forbidden when continue is provided";
            return Err(forbidden_option(why));
        }
        if given.is_some_and(|it| it != 0) {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Refusal::new(400, "BadRequest", why));
        }
        let text =
            BASE64_URL_SAFE_NO_PAD.decode(token).ok().and_then(|it| String::from_utf8(it).ok());
        let parts = text.as_deref().and_then(|text| text.split_once(' '));
        let parts = parts.and_then(|(at, after)| Some((at.parse().ok()?, after.to_owned())));
        let bad = || Refusal::new(400, "BadRequest", "continue key is not valid");
        let (at, after) = parts.ok_or_else(bad)?;
        if at < store.compacted() {
            return Err(expired("The provided continue parameter is too old"));
        }
        return Ok((at, after, false));
    }
    match (given, exact) {
        (None, "") => Ok((store.revision(), String::new(), false)),
        (None, _) => Err(forbidden_option(
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        )),
        (Some(0), "Exact") => Err(forbidden_option(
            "resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"",
        )),
        (Some(at), _) if at > store.revision() => {
            Err(Refusal::new(504, "Timeout", format!("Too large resource version: {at}")))
        }
        (Some(at), "Exact") if at < store.compacted() => {
            Err(expired("The resourceVersion for the provided list is too old"))
        }
        (Some(at), "Exact") => Ok((at, String::new(), false)),
        // From the cache, which knows no pages.
        (Some(0), "" | "NotOlderThan") => Ok((cached, String::new(), true)),
        (Some(at), "" | "NotOlderThan") => Ok((cached.max(at), String::new(), false)),
        (_, other) => Err(forbidden_option(&format!("resourceVersionMatch {other:?} is unknown"))),
    }
}

fn forbidden_option(why: &str) -> Refusal {
    let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {why}");
    let mut refusal = Refusal::new(422, "Invalid", message);
    refusal.causes.push(("resourceVersionMatch", why.to_owned()));
    refusal
}

fn list(store: &Store, call: &Call, target: &Target, cached: u64) -> Result<Answer, Refusal> {
    let limit = match call.parameter("limit") {
        "" => 0,
        text => text.parse().map_err(|_| Refusal::new(400, "BadRequest", "limit is no number"))?,
    };
    let (at, after, is_whole) = start(store, call, cached)?;
    let objects = store.list(target.kind.resource, &target.key.namespace, at);
    let key = |object: &Value| {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
        format!("{}/{}", text("namespace"), text("name"))
    };
    let left: Vec<_> = objects.into_iter().filter(|object| key(object) > after).collect();
    let limit = if limit == 0 || is_whole { usize::MAX } else { limit };
    let (page, rest) = left.split_at(left.len().min(limit));
    let mut metadata = json!({"resourceVersion": at.to_string()});
    if let (Some(last), false) = (page.last(), rest.is_empty()) {
        let token = BASE64_URL_SAFE_NO_PAD.encode(format!("{at} {}", key(last)));
        metadata["continue"] = token.into();
        metadata["remainingItemCount"] = rest.len().into();
    }
    let metadata_only = call.wants_metadata();
    let items: Vec<_> = page.iter().map(|object| shown(object, metadata_only)).collect();
    let (kind, api_version) = if metadata_only {
        ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1")
    } else {
        (format!("{}List", target.kind.kind), target.kind.api_version)
    };
    let list =
        json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items});
    Ok(Answer::Whole(200, list))
}

fn open_watch(store: &Store, call: &Call, target: &Target, cached: u64) -> Result<Answer, Refusal> {
    let given = version(call, "resourceVersion")?;
    let streams = call.parameter("sendInitialEvents") == "true";
    let order = call.parameter("resourceVersionMatch");
    if streams && order != "NotOlderThan" {
        let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
        return Err(forbidden_option(why));
    }
    if !streams && !order.is_empty() {
        let why =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        return Err(forbidden_option(why));
    }
    let bookmarks = call.parameter("allowWatchBookmarks") == "true";
    if streams && !bookmarks {
        let why = "sendInitialEvents requires setting allowWatchBookmarks to true";
        return Err(forbidden_option(why));
    }
    let initial = match given {
        // Consistent: the cache waits until it is as new as the store is now.
        None if streams => Some(store.revision()),
        Some(at) if streams => Some(cached.max(at)),
        None | Some(0) => Some(cached),
        Some(_) => None,
    };
    let seconds = call.parameter("timeoutSeconds").parse().unwrap_or(1800);
    Ok(Answer::Watch(Watch {
        kind: target.kind,
        namespace: target.key.namespace.clone(),
        wants_metadata: call.wants_metadata(),
        after: initial.or(given).unwrap_or_default(),
        initial: initial.filter(|_| streams),
        lifetime: Duration::from_secs(seconds),
    }))
}

impl Watch {
    /// The objects that a streamed list begins with, and its end.
    pub fn initial_events(&self, store: &Store, at: u64) -> Vec<Value> {
        let objects = store.list(self.kind.resource, &self.namespace, at);
        let added = objects.into_iter().map(|object| event("ADDED", self.show(object)));
        let end = json!({"k8s.io/initial-events-end": "true"});
        added.chain([self.bookmark(at, Some(end))]).collect()
    }

    /// The event of a change, if the watch shows it.
    pub fn event(&self, change: &Change) -> Option<Value> {
        let is_within = self.namespace.is_empty() || self.namespace == change.key.namespace;
        if change.key.resource != self.kind.resource || !is_within {
            return None;
        }
        let (kind, object) = change.event();
        Some(event(kind, self.show(&object)))
    }

    /// Whether it shows whole Nodes.
    pub(crate) fn shows_nodes(&self) -> bool {
        self.kind.resource == "nodes" && !self.wants_metadata
    }

    /// A bookmark.
    pub fn bookmark(&self, at: u64, annotations: Option<Value>) -> Value {
        let mut metadata = json!({"resourceVersion": at.to_string()});
        if let Some(annotations) = annotations {
            metadata["annotations"] = annotations;
        }
        let (kind, version) = (self.kind.kind, self.kind.api_version);
        event("BOOKMARK", json!({"kind": kind, "apiVersion": version, "metadata": metadata}))
    }

    /// The error of a watch whose version is forgotten.
    pub fn expiry(&self) -> Value {
        event("ERROR", expired("too old resource version").status())
    }

    fn show(&self, object: &Value) -> Value {
        shown(object, self.wants_metadata)
    }
}

fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

/// The events as a watch sends them that breaks its contract once.
pub(crate) fn breached(
    events: Vec<Value>,
    breach: &mut Option<(u64, Breach)>,
    held_back: &mut Option<(Value, Instant)>,
    mut happens: impl FnMut(Breach),
) -> Vec<Value> {
    let mut sent = Vec::new();
    for event in events {
        match breach {
            Some((0, kind)) if *kind != Breach::Skipped || event["type"] != "MODIFIED" => {
                happens(*kind);
                match kind {
                    Breach::Skipped => {}
                    Breach::Doubled => sent.extend([event.clone(), event]),
                    Breach::Reordered => *held_back = Some((event, Instant::now() + LATE)),
                }
                *breach = None;
                continue;
            }
            Some((left, _)) => *left = left.saturating_sub(1),
            None => {}
        }
        sent.push(event);
        sent.extend(held_back.take().map(|(event, _)| event));
    }
    sent.extend(held_back.take_if(|(_, at)| *at <= Instant::now()).map(|(event, _)| event));
    sent
}
