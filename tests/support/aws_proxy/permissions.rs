//! Permissions of the caller: the policy document that the project ships, because moto checks none.

use std::collections::BTreeSet;

use serde_json::Value;

use super::call::Call;
use crate::programs::workspace;

/// Names of actions, such as `ec2:CreateVpc`.
pub(super) struct Permissions(BTreeSet<String>);

impl Permissions {
    /// The permissions of `config/iam`.
    pub(super) fn shipped() -> Self {
        let files = ["controller.json", "identities.json"];
        Self(files.into_iter().flat_map(Self::of).collect())
    }

    fn of(file: &str) -> BTreeSet<String> {
        let path = workspace().join("config/iam").join(file);
        let text = std::fs::read_to_string(path).expect("the policy can be read");
        let policy: Value = serde_json::from_str(&text).expect("the policy is JSON");
        let mut allowed = BTreeSet::new();
        for statement in policy["Statement"].as_array().expect("a list of statements") {
            assert_eq!(statement["Effect"], "Allow", "{statement}");
            for action in statement["Action"].as_array().expect("a list of actions") {
                let action = action.as_str().expect("a name of an action");
                assert!(!action.contains('*'), "{action}: no more than is needed");
                allowed.insert(action.to_owned());
            }
        }
        allowed
    }

    pub(super) fn take_away(&mut self, action: &str) {
        assert!(self.0.remove(action), "{action} was never allowed");
    }

    pub(super) fn give(&mut self, action: &str) {
        self.0.insert(action.to_owned());
    }

    /// The code that AWS would refuse a call with. Tags in a create need the right to tag as well.
    pub(super) fn refuses(&self, call: &Call) -> Option<&'static str> {
        // AWS asks for no right to this.
        if call.action == "GetCallerIdentity" {
            return None;
        }
        let may = |action: &str| self.0.contains(&format!("{}:{action}", call.service));
        let has = |start: &str| call.parameters.keys().any(|name| name.starts_with(start));
        let (may_tag, code) = match call.service.as_str() {
            "ec2" => (!has("TagSpecification.") || may("CreateTags"), "UnauthorizedOperation"),
            _ => (!has("Tags.") || may("AddTags"), "AccessDenied"),
        };
        let is_allowed = may(&call.action) && (may_tag || !call.action.starts_with("Create"));
        (!is_allowed).then_some(code)
    }
}
