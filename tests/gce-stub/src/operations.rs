//! Changes that have begun: some calls pass by before one is done, and only then it is found out
//! whether it can be.

use std::collections::BTreeMap;

use ipnet::IpNet;
use serde_json::{Value, json};

/// Number of reads before an operation is done.
const CALLS: usize = 2;

/// Aliases for a VM.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) zone: String,
    pub(crate) vm: String,
    pub(crate) aliases: Vec<Value>,
}

#[derive(Clone, Debug)]
struct Operation {
    change: Change,
    calls: usize,
    outcome: Option<Result<(), &'static str>>,
    fails_with: Option<&'static str>,
}

/// All operations.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    all: BTreeMap<String, Operation>,
    by_request: BTreeMap<String, String>,
}

impl Operations {
    /// Begins a change; a request that came before has begun already.
    pub(crate) fn begin(
        &mut self,
        request: &str,
        change: Change,
        fails_with: Option<&'static str>,
    ) -> Value {
        if let Some(name) = self.by_request.get(request).filter(|_| !request.is_empty()) {
            return self.show(&name.clone());
        }
        let name = format!("operation-{}", self.all.len());
        self.by_request.insert(request.to_owned(), name.clone());
        let operation = Operation { change, calls: CALLS, outcome: None, fails_with };
        self.all.insert(name.clone(), operation);
        self.show(&name)
    }

    /// A call has come: those that are due are carried out by `apply`, or it says why not.
    pub(crate) fn go_on(&mut self, mut apply: impl FnMut(&Change) -> Result<(), &'static str>) {
        for operation in self.all.values_mut().filter(|operation| operation.outcome.is_none()) {
            operation.calls = operation.calls.saturating_sub(1);
            if operation.calls == 0 {
                operation.outcome = Some(match operation.fails_with {
                    Some(code) => Err(code),
                    None => apply(&operation.change),
                });
            }
        }
    }

    /// An operation, if there is one of this name.
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.all.contains_key(name).then(|| self.show(name))
    }

    fn show(&self, name: &str) -> Value {
        let operation = &self.all[name];
        let mut shown = json!({
            "kind": "compute#operation", "name": name, "zone": operation.change.zone,
            "status": if operation.outcome.is_some() { "DONE" } else { "RUNNING" },
        });
        if let Some(Err(code)) = operation.outcome {
            let cause =
                json!({"code": code, "message": format!("cannot change {}", operation.change.vm)});
            shown["error"] = json!({"errors": [cause]});
            shown["httpErrorStatusCode"] = json!(400);
        }
        shown
    }
}

/// Whether two alias ranges have an address in common.
pub(crate) fn overlap(one: &Value, other: &Value) -> bool {
    let range = |alias: &Value| alias["ipCidrRange"].as_str().and_then(|text| text.parse().ok());
    match (range(one), range(other)) {
        (Some(one), Some(other)) => contains(&one, &other) || contains(&other, &one),
        _ => false,
    }
}

fn contains(outer: &IpNet, inner: &IpNet) -> bool {
    outer.contains(inner)
}
