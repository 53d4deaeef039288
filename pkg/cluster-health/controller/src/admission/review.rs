//! [`Review`]: an AdmissionReview of `admission.k8s.io/v1`, in and out. Pure. It has no printable
//! form: the objects in it hold secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use validation::{FieldError, Findings, Kind};

const VERSION: &str = "admission.k8s.io/v1";
/// The most mistakes that the refusal of a request lists.
const MOST_CAUSES: usize = 100;

/// The request of a review.
pub struct Review {
    uid: String,
    /// `None` of what no rule is about: another kind, a status, a deletion.
    pub subject: Option<Subject>,
}

/// An object that is about to be stored.
pub struct Subject {
    /// Kind of the object.
    pub kind: Kind,
    /// The new object.
    pub object: Value,
    /// The stored object, in an update.
    pub old: Option<Value>,
    /// Whether the request is a dry run: nothing is stored, and the review must have no side effect.
    pub is_dry_run: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    api_version: String,
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    operation: String,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    dry_run: Option<bool>,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
}

impl Review {
    /// Reads it.
    ///
    /// # Errors
    /// In words that hold nothing of it.
    pub fn read(body: &[u8]) -> Result<Self, &'static str> {
        let read: Result<Wire, _> = serde_json::from_slice(body);
        let Wire { api_version, request } =
            read.map_err(|_| "the body is not an AdmissionReview")?;
        if api_version != VERSION {
            return Err("the body is not an AdmissionReview of admission.k8s.io/v1");
        }
        let Request { uid, operation, sub_resource, dry_run, object, old_object } = request;
        let is_main = sub_resource.is_none_or(|name| name.is_empty());
        let old = match &*operation {
            "CREATE" if is_main => Some(None),
            "UPDATE" if is_main => Some(Some(old_object)),
            // rule:the-webhook-helps-and-never-hurts
            _ => None,
        };
        let subject = old.zip(Kind::of(&object)).map(|(old, kind)| {
            let is_dry_run = dry_run.unwrap_or_default();
            Subject { kind, object, old, is_dry_run }
        });
        Ok(Self { uid, subject })
    }

    /// The answer to it.
    pub fn answer(&self, findings: &Findings) -> String {
        let mut response = json!({"uid": self.uid, "allowed": findings.errors.is_empty()});
        if !findings.errors.is_empty() {
            response["status"] = status(self.subject.as_ref(), &findings.errors);
        }
        if !findings.warnings.is_empty() {
            response["warnings"] = json!(findings.warnings);
        }
        json!({"apiVersion": VERSION, "kind": "AdmissionReview", "response": response}).to_string()
    }

    /// The answer that lets the object pass, with a JSON patch if there is one.
    pub fn patched(&self, patch: Option<&Value>) -> String {
        let mut response = json!({"uid": self.uid, "allowed": true});
        if let Some(patch) = patch {
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(patch.to_string()));
        }
        json!({"apiVersion": VERSION, "kind": "AdmissionReview", "response": response}).to_string()
    }
}

/// Refusal in the form that the API server uses for its own schemas.
fn status(subject: Option<&Subject>, errors: &[FieldError]) -> Value {
    let kind = subject.map(|subject| subject.kind);
    let (group, kind) = kind.map_or(("", ""), |kind| {
        (kind.api_version().split('/').next().unwrap_or_default(), kind.name())
    });
    let name = subject.and_then(|it| it.object["metadata"]["name"].as_str()).unwrap_or_default();
    let name = kube_api::printable(name);
    let said = errors.iter().take(MOST_CAUSES);
    let texts: Vec<String> =
        said.clone().map(|error| format!("{}: {}", error.field, error.detail)).collect();
    let all = if let [one] = &texts[..] { one.clone() } else { format!("[{}]", texts.join(", ")) };
    let causes = said.map(|error| {
        json!({"reason": error.error_type.reason(), "message": error.detail, "field": error.field})
    });
    json!({
        "status": "Failure", "reason": "Invalid", "code": 422,
        "message": format!("{kind}.{group} \"{name}\" is invalid: {all}"),
        "details": {"name": name, "group": group, "kind": kind,
            "causes": causes.collect::<Vec<_>>()},
    })
}

/// The JSON patch for a new Cluster whose status alone has addresses, as TKEStack's own users make it.
pub(super) fn patch(subject: &Subject) -> Option<Value> {
    let Subject { kind: Kind::Cluster, object, old: None, .. } = subject else { return None };
    let list = |part: &str| object[part]["addresses"].as_array().filter(|list| !list.is_empty());
    if !object["spec"].is_object() || list("spec").is_some() {
        return None;
    }
    let addresses = list("status")?;
    Some(json!([{"op": "add", "path": "/spec/addresses", "value": addresses}]))
}

#[cfg(test)]
mod tests {
    use validation::{Environment, Operation, validate};

    use super::*;

    fn machine() -> Value {
        json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Machine",
            "metadata": {"name": "mc-1"}, "spec": {"password": "planted", "port": 22}})
    }

    fn review(request: Value) -> Result<Review, &'static str> {
        let mut whole = json!({"apiVersion": VERSION, "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE", "object": machine()}});
        for (name, value) in request.as_object().unwrap() {
            whole["request"][name] = value.clone();
        }
        Review::read(whole.to_string().as_bytes())
    }

    /// rule:the-webhook-helps-and-never-hurts
    #[test]
    fn only_new_and_changed_main_objects_of_known_kinds_are_judged() {
        let is_judged = |request: Value| review(request).unwrap().subject.is_some();
        assert!(is_judged(json!({})));
        assert!(is_judged(json!({"operation": "UPDATE", "oldObject": machine()})));
        assert!(is_judged(json!({"subResource": "", "dryRun": true})));
        assert!(!is_judged(json!({"operation": "UPDATE", "subResource": "status"})));
        assert!(!is_judged(json!({"operation": "DELETE", "object": null, "oldObject": machine()})));
        assert!(!is_judged(json!({"operation": "CONNECT"})));
        assert!(!is_judged(json!({"object": {"apiVersion": "v1", "kind": "Pod"}})));
        assert!(!is_judged(json!({"object": null})));
    }

    #[test]
    fn what_is_no_review_is_refused_without_what_it_holds() {
        for body in [&b""[..], b"planted", b"{}", br#"{"apiVersion":"planted","request":{}}"#] {
            let why = Review::read(body).err().unwrap();
            assert!(!why.contains("planted"), "{why}");
        }
        let beta = br#"{"apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"u","operation":"CREATE"}}"#;
        let why = Review::read(beta).err().unwrap();
        assert_eq!(why, "the body is not an AdmissionReview of admission.k8s.io/v1");
    }

    #[test]
    fn a_refusal_reads_as_one_of_the_api_server_and_shows_no_secret() {
        let review = review(json!({})).unwrap();
        let object = &review.subject.as_ref().unwrap().object;
        let environment = Environment::default();
        let mut findings = validate(Kind::Machine, object, Operation::Create, &environment);
        findings.warnings.push("spec: odd".to_owned());
        let answer = review.answer(&findings);
        assert!(!answer.contains("planted"), "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let response = &answer["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u"), &json!(false)));
        assert_eq!(response["warnings"], json!(["spec: odd"]));
        assert_eq!(response["status"]["code"], 422);
        let message = response["status"]["message"].as_str().unwrap();
        let begin = "Machine.platform.tkestack.io \"mc-1\" is invalid: [";
        assert!(message.starts_with(begin), "{message}");
        assert!(message.contains("spec.ip: Required value"), "{message}");
        let causes = response["status"]["details"]["causes"].as_array().unwrap();
        let required = json!({"reason": "FieldValueRequired", "message": "Required value: the IP address of the machine", "field": "spec.ip"});
        assert!(causes.contains(&required), "{causes:?}");
    }

    #[test]
    fn what_nothing_is_wrong_with_is_allowed_with_nothing_else() {
        let answer: Value =
            serde_json::from_str(&review(json!({})).unwrap().answer(&Findings::default())).unwrap();
        assert_eq!(answer["response"], json!({"uid": "u", "allowed": true}));
    }
}

#[cfg(test)]
mod addresses_tests {
    use super::*;

    fn patched(object: &Value, old: Option<Value>) -> Option<Value> {
        let (kind, object) = (Kind::of(object).unwrap(), object.clone());
        patch(&Subject { kind, object, old, is_dry_run: false })
    }

    #[test]
    fn addresses_that_only_the_status_of_a_new_cluster_has_are_copied_to_its_spec() {
        let addresses = json!([{"type": "Real", "host": "10.0.0.1", "port": 6443}]);
        let cluster = |spec: Value, status: Value| {
            json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
                "spec": spec, "status": status})
        };
        let in_status = json!({"addresses": addresses});
        let expected = json!([{"op": "add", "path": "/spec/addresses", "value": addresses}]);
        for spec in [json!({}), json!({"addresses": []}), json!({"addresses": null})] {
            let made = patched(&cluster(spec, in_status.clone()), None);
            assert_eq!(made.as_ref(), Some(&expected));
        }
        for (spec, status) in [
            (json!({"addresses": addresses}), json!({"addresses": [{"type": "Real"}]})),
            (json!({}), json!({})),
            (json!({}), json!({"addresses": []})),
            (json!({}), json!({"addresses": "x"})),
            (Value::Null, in_status.clone()),
        ] {
            assert_eq!(patched(&cluster(spec, status), None), None);
        }
        let changed = cluster(json!({}), in_status.clone());
        assert_eq!(patched(&changed, Some(json!({}))), None);
        let machine = json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Machine",
            "spec": {}, "status": in_status});
        assert_eq!(patched(&machine, None), None);
    }
}
