//! Asks the server whether a controller may do what it is going to do, so that a missing right is
//! one clear line in the log instead of a refusal of every write. Asked again now and then: rights
//! are granted, and taken away, while the process runs.

use std::borrow::Cow;
use std::collections::HashSet;
use std::convert::Infallible;
use std::mem;
use std::time::Duration;

use client::AnswerError;
use http::Request;
use kube::client::Body;
use prometheus::IntGauge;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, info};

const TIMEOUT: Duration = Duration::from_secs(10);
const EVERY: Duration = Duration::from_secs(5 * 60);

/// A right that a controller needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Permission {
    /// RBAC verb.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Plural name.
    pub resource: &'static str,
    /// Subresource such as `status`; empty for the resource itself.
    pub subresource: &'static str,
    /// Namespace; empty for all namespaces, and for kinds without one.
    pub namespace: Cow<'static, str>,
    /// Name of the only object; empty for all objects.
    pub name: &'static str,
}

impl Permission {
    /// The right to do `verb` to all objects of a resource.
    pub const fn new(verb: &'static str, group: &'static str, resource: &'static str) -> Self {
        Self { verb, group, resource, subresource: "", namespace: Cow::Borrowed(""), name: "" }
    }

    /// Limits the right to a subresource, such as `status`.
    #[must_use]
    pub const fn subresource(mut self, subresource: &'static str) -> Self {
        self.subresource = subresource;
        self
    }

    /// Limits the right to a namespace.
    #[must_use]
    pub const fn in_namespace(mut self, namespace: &'static str) -> Self {
        // A value with a destructor cannot be dropped in a constant.
        mem::forget(mem::replace(&mut self.namespace, Cow::Borrowed(namespace)));
        self
    }

    /// Limits the right to a namespace that a flag names, if there is one.
    #[must_use]
    pub fn in_namespace_of(self, flag: Option<&str>) -> Self {
        Self { namespace: Cow::Owned(flag.unwrap_or_default().to_owned()), ..self }
    }

    /// Limits the right to the object of this name.
    #[must_use]
    pub const fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }
}

/// The attributes of a review.
impl From<&Permission> for Value {
    fn from(permission: &Permission) -> Self {
        let Permission { verb, group, resource, subresource, namespace, name } = permission;
        json!({
            "verb": verb, "group": group, "resource": resource, "subresource": subresource,
            "namespace": namespace, "name": name,
        })
    }
}

/// Identity whose rights are checked, for the log.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) account: &'static str,
    pub(crate) by_account: bool,
    pub(crate) manifest: Option<&'static str>,
}

/// Checks rights of one controller.
#[derive(Clone)]
pub(crate) struct PermissionCheck {
    /// Acts as the controller, behind no throttle.
    pub(crate) client: kube::Client,
    pub(crate) subject: Subject,
    /// Shows how many rights are missing.
    pub(crate) missing: IntGauge,
}

impl PermissionCheck {
    /// Asks at once and then every few minutes, until `stop`.
    pub(crate) async fn run(self, needed: Vec<Permission>, stop: CancellationToken) {
        let mut missing = HashSet::new();
        let asking = async {
            loop {
                self.ask(&needed, &mut missing).await;
                tokio::time::sleep(EVERY).await;
            }
        };
        let _stopped: Option<Infallible> = stop.run_until_cancelled(asking).await;
        self.missing.sub(count(&missing));
    }

    /// Asks for each right, counts those that are missing, and logs what has changed.
    async fn ask(&self, needed: &[Permission], missing: &mut HashSet<Permission>) {
        let before = count(missing);
        for permission in needed {
            match is_allowed(&self.client, permission, None).await {
                Ok(true) => {
                    if missing.remove(permission) {
                        let Permission { verb, resource, .. } = permission;
                        info!(verb, resource, "Permission is granted now");
                    }
                }
                Ok(false) => {
                    if missing.insert(permission.clone()) {
                        self.report(permission);
                    }
                }
                // The writes themselves will tell; what was known before stays.
                Err(error) => debug!(err = %error, "Cannot check permissions"),
            }
        }
        // Others may count their own, of other kinds.
        self.missing.add(count(missing) - before);
    }

    fn report(&self, permission: &Permission) {
        let Permission { verb, group, resource, subresource, namespace, name } = permission;
        // Most rights are said by verb and resource alone.
        let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        error!(
            verb,
            resource,
            subresource = said(subresource),
            group = said(group),
            namespace = said(namespace),
            name = said(name),
            "{}",
            self.subject.cure(permission)
        );
    }
}

fn count(missing: &HashSet<Permission>) -> i64 {
    i64::try_from(missing.len()).unwrap_or(i64::MAX)
}

impl Subject {
    /// The sentence about a missing right: the account, the right, and how an operator grants it.
    fn cure(&self, permission: &Permission) -> String {
        let account = self.account;
        let identity = if self.by_account {
            format!("service account kube-system/{account}")
        } else {
            "the identity in --kubeconfig".to_owned()
        };
        let cure = if let Some(manifest) = self.manifest {
            format!("apply {manifest}")
        } else if self.by_account {
            format!("restore the ClusterRole system:controller:{account} and its binding")
        } else {
            format!(
                "run with --use-service-account-credentials=true to act as kube-system/{account}, \
                 or grant the right"
            )
        };
        format!("Missing permission: {identity} may not {}; {cure}", in_words(permission))
    }
}

/// A right in the words of the API server's refusals, such as `patch nodes/status` or
/// `list clusters in the API group cluster.x-k8s.io`.
fn in_words(permission: &Permission) -> String {
    let Permission { verb, group, resource, subresource, namespace, name } = permission;
    let part = |before: &str, text: &str| match text {
        "" => String::new(),
        text => format!("{before}{text}"),
    };
    let (subresource, name) = (part("/", subresource), part(" ", name));
    let (group, place) = (part(" in the API group ", group), part(" in the namespace ", namespace));
    format!("{verb} {resource}{subresource}{name}{group}{place}")
}

/// Whether the attributes of a review of access, such as those of a [`Permission`], are allowed to
/// `account` of kube-system, or to the identity of `client` itself. Nothing is stored by it.
pub async fn is_allowed(
    client: &kube::Client,
    attributes: impl Into<Value>,
    account: Option<&str>,
) -> Result<bool, AnswerError> {
    let mut spec = json!({"resourceAttributes": attributes.into()});
    let kind = if let Some(account) = account {
        spec["user"] = json!(format!("system:serviceaccount:kube-system:{account}"));
        let groups = ["serviceaccounts", "serviceaccounts:kube-system", "authenticated"];
        spec["groups"] = groups.iter().map(|group| json!(format!("system:{group}"))).collect();
        "SubjectAccessReview"
    } else {
        "SelfSubjectAccessReview"
    };
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let path = format!("/apis/authorization.k8s.io/v1/{}s", kind.to_lowercase());
    let request = Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string().into_bytes()))?;
    let answer = client::answer(client, request, TIMEOUT).await?;
    Ok(answer.decode::<Review>()?.status.allowed)
}

#[derive(Deserialize)]
struct Review {
    status: ReviewStatus,
}

#[derive(Deserialize)]
struct ReviewStatus {
    allowed: bool,
}

#[cfg(test)]
mod tests;
