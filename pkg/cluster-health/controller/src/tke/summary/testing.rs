//! A member cluster of the tests: lists cut into pages; some expire while they are read.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::list_nodes;
use super::nodes::{NodeList, Roster};
use crate::paging::{Member, Unread};

/// Pages by path.
type Lists = BTreeMap<&'static str, Vec<Vec<Value>>>;

pub(crate) struct Paged {
    lists: Lists,
    /// Numbers of requests that are answered 410, if they have a token.
    expiries: BTreeSet<usize>,
    asked: Mutex<Vec<String>>,
    expired: Mutex<BTreeMap<String, usize>>,
}

impl Paged {
    pub(crate) fn of(path: &'static str, pages: Vec<Vec<Value>>) -> Self {
        Self::with_expiries(BTreeMap::from([(path, pages)]), BTreeSet::new())
    }

    pub(crate) fn with_expiries(lists: Lists, expiries: BTreeSet<usize>) -> Self {
        Self { lists, expiries, asked: Mutex::default(), expired: Mutex::default() }
    }

    /// Every request, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }

    /// How often each path was answered 410.
    pub(crate) fn expired(&self) -> BTreeMap<String, usize> {
        self.expired.lock().clone()
    }

    fn answer(&self, asked: &str) -> (StatusCode, Value) {
        let number = self.asked.lock().len();
        self.asked.lock().push(asked.to_owned());
        let (path, query) = asked.split_once('?').unwrap();
        let token = form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "continue");
        if token.is_some() && self.expiries.contains(&number) {
            *self.expired.lock().entry(path.to_owned()).or_default() += 1;
            return (StatusCode::GONE, json!({"kind": "Status", "reason": "Expired"}));
        }
        let page: usize = token.map_or(0, |(_, token)| {
            token.trim_start_matches("page/").trim_end_matches("=&").parse().unwrap()
        });
        let pages = &self.lists[path];
        // Empty pages in the middle of a list are legal, as with selectors.
        let next = (page + 1 < pages.len()).then(|| format!("page/{}=&", page + 1));
        (
            StatusCode::OK,
            json!({"metadata": {"continue": next.unwrap_or_default()}, "items": pages[page]}),
        )
    }
}

impl Member for Paged {
    fn get<'a>(
        &'a mut self,
        path: &'a str,
        take: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> BoxFuture<'a, Result<StatusCode, Unread>> {
        let (status, body) = self.answer(path);
        if status == StatusCode::OK {
            // As it may come from the wire.
            body.to_string().into_bytes().chunks(7).all(take);
        }
        async move { Ok(status) }.boxed()
    }
}

pub(crate) fn pod(node: Option<&str>, cpu: &str, memory: &str) -> Value {
    let requests = json!({"cpu": cpu, "memory": memory});
    json!({
        "metadata": {"name": "p"}, "status": {"phase": "Running"},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]},
    })
}

pub(crate) fn node(name: &str, cpu: &str, ready: bool, cordoned: bool) -> Value {
    let ready = if ready { "True" } else { "False" };
    json!({
        "metadata": {"name": name}, "spec": {"unschedulable": cordoned},
        "status": {
            "capacity": {"cpu": cpu, "memory": "1Gi", "pods": "110"},
            "allocatable": {"cpu": cpu, "memory": "1000Mi"},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
            "addresses": [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "machineID": "m", "odd": 1},
        },
    })
}

/// A list of these Nodes, in which all Machines of the tests are looked for.
pub(crate) fn list_of(given: Vec<Value>) -> NodeList {
    let machines: Vec<_> = (0..10).map(|number| format!("10.0.0.{number}")).collect();
    let roster = Roster::wanting(machines.iter().map(String::as_str));
    list_for(&roster, given)
}

/// A list of these Nodes, in which these Machines are looked for.
pub(crate) fn list_for(roster: &Roster, given: Vec<Value>) -> NodeList {
    let mut member = Paged::of("/api/v1/nodes", vec![given]);
    list_nodes(&mut member, 500, roster)
        .now_or_never()
        .expect("the server answers at once")
        .unwrap()
}
