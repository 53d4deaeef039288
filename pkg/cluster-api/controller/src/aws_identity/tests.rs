use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

/// Identities by kind and name.
#[derive(Default)]
struct Objects(BTreeMap<(String, String), Value>);

impl Objects {
    fn with(mut self, kind: &str, name: &str, spec: Value) -> Self {
        self.0.insert((format!("AWSCluster{kind}Identity"), name.to_owned()), spec);
        self
    }

    /// A role that everybody may use.
    fn role(self, name: &str, source: &str, more: Value) -> Self {
        let (kind, name_of_source) = source.split_once('/').unwrap();
        let kind = format!("AWSCluster{kind}Identity");
        let mut spec = json!({"allowedNamespaces": {}, "roleARN": format!("arn:{name}"),
            "sourceIdentityRef": {"kind": kind, "name": name_of_source}});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.with("Role", name, spec)
    }

    fn chain(&self, identity: &str) -> Result<Vec<String>, ChainError> {
        let (kind, name) = identity.split_once('/').unwrap();
        let reference =
            IdentityReference { kind: format!("AWSCluster{kind}Identity"), name: name.to_owned() };
        let chain = chain(Some(&reference), "ns", self)?;
        Ok(chain.iter().map(|link| link.name.clone()).collect())
    }

    fn problem(&self, identity: &str) -> String {
        self.chain(identity).unwrap_err().to_string()
    }
}

impl Known for Objects {
    fn identity(
        &self,
        kind: IdentityKind,
        name: &str,
    ) -> Result<Option<Arc<Object<AwsIdentity>>>, String> {
        let spec = self.0.get(&(kind.as_str().to_owned(), name.to_owned()));
        Ok(spec.map(|spec| {
            let whole = json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "1"}, "spec": spec});
            Arc::new(Object::read(whole).unwrap())
        }))
    }

    fn labels(&self) -> Result<Option<Labels>, String> {
        Err("Namespaces".to_owned())
    }
}

fn no_namespace() -> Value {
    json!({"allowedNamespaces": {"list": []}})
}

#[test]
fn a_chain_begins_with_the_innermost_source() {
    let objects = Objects::default()
        .with("Static", "keys", json!({"allowedNamespaces": {}, "secretRef": "s"}))
        .role("middle", "Static/keys", json!({}))
        .role("outer", "Role/middle", json!({}));
    assert_eq!(objects.chain("Role/outer").unwrap(), ["keys", "middle", "outer"]);
    let own = objects.role("own", "Controller/default", json!({}));
    assert_eq!(own.chain("Role/own").unwrap(), ["default", "own"]);
}

#[test]
fn without_a_reference_the_object_of_the_controller_decides_if_there_is_one() {
    let own = |objects: &Objects| chain(None, "ns", objects).map(|chain| chain.len());
    assert_eq!(own(&Objects::default()), Ok(1));
    let refused =
        own(&Objects::default().with("Controller", "default", no_namespace())).unwrap_err();
    assert_eq!(refused.reason(), "PrincipalUsageUnauthorized");
    let text = "Namespace is not permitted to use AWSClusterControllerIdentity: default";
    assert_eq!(refused.to_string(), text);
    // Upstream's null permits no namespace.
    assert!(own(&Objects::default().with("Controller", "default", json!({}))).is_err());
    let problem = Objects::default().problem("Controller/other");
    assert!(problem.ends_with("its only name is default"), "{problem}");
}

/// rule:an-awscluster-stays-in-its-account
#[test]
fn each_identity_of_a_chain_must_permit_the_namespace() {
    let objects = Objects::default()
        .with("Controller", "default", no_namespace())
        .role("middle", "Controller/default", json!({}))
        .role("outer", "Role/middle", json!({}));
    let refused = objects.chain("Role/outer").unwrap_err();
    assert!(refused.is_about_usage());
    assert_eq!(refused.reason(), "SourcePrincipalUsageUnauthorized");
    let refused =
        objects.role("outer", "Role/middle", no_namespace()).chain("Role/outer").unwrap_err();
    assert_eq!(refused.reason(), "PrincipalUsageUnauthorized");
    assert!(refused.to_string().ends_with("AWSClusterRoleIdentity: outer"), "{refused}");
}

#[test]
fn a_cycle_and_a_long_chain_end() {
    let objects = Objects::default().role("a", "Role/b", json!({})).role("b", "Role/a", json!({}));
    assert!(objects.problem("Role/a").ends_with("sourceIdentityRef cycle at a"));
    let mut objects = Objects::default();
    for (name, source) in
        [("1", "Controller/default"), ("2", "Role/1"), ("3", "Role/2"), ("4", "Role/3")]
    {
        objects = objects.role(name, source, json!({}));
    }
    assert_eq!(objects.chain("Role/4").unwrap().len(), LONGEST);
    let problem = objects.role("5", "Role/4", json!({})).problem("Role/5");
    assert!(problem.contains("more than 5 identities"), "{problem}");
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let objects = Objects::default()
        .with("Role", "alone", json!({"allowedNamespaces": {}, "roleARN": "r"}))
        .role("lost", "Static/keys", json!({}))
        .with(
            "Static",
            "selected",
            json!({"allowedNamespaces": {"selector": {"matchLabels": {"a": "b"}}}}),
        );
    assert!(objects.problem("Role/alone").contains("sourceIdentityRef is not set"));
    let missing = objects.chain("Role/lost").unwrap_err();
    assert!(missing.to_string().contains("AWSClusterStaticIdentity keys"), "{missing}");
    assert_eq!(missing.reason(), "PrincipalCredentialRetrievalFailed");
    assert!(objects.problem("Pod/x").contains("its kind is not one of AWSClusterController"));
    assert_eq!(objects.problem("Static/selected"), "cannot read Namespaces");
}

#[test]
fn only_a_role_that_a_role_assumes_is_limited_to_an_hour() {
    let long = json!({"durationSeconds": 3601});
    let objects = Objects::default().role("first", "Controller/default", long.clone()).role(
        "second",
        "Role/first",
        long,
    );
    assert!(objects.chain("Role/first").is_ok());
    let problem = objects.problem("Role/second");
    assert!(problem.starts_with("cannot use AWSClusterRoleIdentity second: a role"), "{problem}");
}

#[test]
fn a_session_has_the_name_that_the_identity_says_or_its_own() {
    let session = |name: &str, more: Value| {
        let objects = Objects::default().role(name, "Controller/default", more);
        let reference = IdentityReference {
            kind: IdentityKind::Role.as_str().to_owned(),
            name: name.to_owned(),
        };
        chain(Some(&reference), "ns", &objects).unwrap()[1].session_name()
    };
    assert_eq!(session("a", json!({})), "icm-a");
    assert_eq!(session("a", json!({"sessionName": "s"})), "s");
    assert_eq!(session(&"a".repeat(80), json!({})).len(), SESSION_NAME);
}
