//! Rights as RBAC sees them: those that a role grants, and those that a request needs.

use std::fmt;

use http::Method;
use serde_json::Value;
use tests::fault_proxy::Request;

/// One verb on one resource; a granted one may be limited to one object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    pub(crate) verb: String,
    pub(crate) group: String,
    /// Resource with its subresource: `serviceaccounts/token`.
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
}

impl Right {
    /// Every right that a Role or ClusterRole grants.
    pub(crate) fn granted(role: &Value) -> Vec<Self> {
        let mut rights = Vec::new();
        for rule in role["rules"].as_array().unwrap() {
            let list = |field: &str| rule[field].as_array().cloned().unwrap_or_default();
            let names: Vec<_> = match &list("resourceNames")[..] {
                [] => vec![None],
                names => names.iter().map(|name| Some(text(name))).collect(),
            };
            for (group, resource) in pairs(&list("apiGroups"), &list("resources")) {
                for verb in list("verbs") {
                    for name in names.clone() {
                        let (group, resource) = (group.clone(), resource.clone());
                        rights.push(Self { verb: text(&verb), group, resource, name });
                    }
                }
            }
        }
        rights
    }

    /// The permission that a request needs; `None` for paths that are not resources.
    pub(crate) fn needed(request: &Request) -> Option<Self> {
        let mut segments = request.path.split('/').skip(1);
        let group = match segments.next()? {
            "api" => "",
            "apis" => segments.next()?,
            _ => return None,
        };
        let rest: Vec<_> = segments.skip(1).collect();
        let rest = match &rest[..] {
            ["namespaces", _, below @ ..] if !below.is_empty() => below,
            all => all,
        };
        let (resource, name) = (*rest.first()?, rest.get(1));
        let resource = match rest.get(2) {
            Some(sub) => format!("{resource}/{sub}"),
            None => resource.to_owned(),
        };
        let verb = match request.method {
            Method::GET if request.is_watch() => "watch",
            Method::GET if name.is_some() => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            _ => "delete",
        };
        let name = name.map(ToString::to_string);
        Some(Self { verb: verb.to_owned(), group: group.to_owned(), resource, name })
    }

    /// Whether who has this right may do what needs `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let same = |right: &Self| (right.verb.clone(), right.group.clone(), right.resource.clone());
        same(self) == same(other) && (self.name.is_none() || self.name == other.name)
    }

    /// Whether every authenticated user has it.
    pub(crate) fn is_everybodys(&self) -> bool {
        self.group == "authorization.k8s.io" && self.resource.starts_with("selfsubject")
    }
}

impl fmt::Debug for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, name } = self;
        write!(f, "{verb} {resource}.{group} {}", name.as_deref().unwrap_or("*"))
    }
}

fn pairs(groups: &[Value], resources: &[Value]) -> Vec<(String, String)> {
    let of = |group| resources.iter().map(move |resource| (text(group), text(resource)));
    groups.iter().flat_map(of).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
