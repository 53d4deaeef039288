//! The ClusterCredential of a Cluster: reads it from the management API, and chooses when the Cluster
//! names none. Nothing of it is kept here (`rule:secrets-are-never-shown`).

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::StatusCode;
use objects::Object;
use transport::wipe;

use crate::api::is_name;
use crate::api::tke::{
    CLUSTER_CREDENTIALS, Cluster, ClusterCredential, CredentialError, CredentialMetadata,
    CredentialPage,
};
use crate::credential_policy::{Refusal, Target, is_for};
use crate::engine::{Found, ObjectVersion, ReadCredentials};
use crate::secret_data::{ReadError, find, get};

/// The ClusterCredential for a Cluster, or why it was not found.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The one to use, and how many others there are, which is a mistake.
    Credential { credential: Box<ClusterCredential>, others: usize },
    /// There is no ClusterCredential whose clusterName is the Cluster.
    None,
    /// All ClusterCredentials that name the Cluster belong to other tenants.
    OfOthers,
}

impl Choice {
    /// The message when there is no credential to use.
    pub(crate) fn nothing_for(&self, cluster: &str) -> String {
        let none = format!("there is no ClusterCredential whose clusterName is {cluster}");
        match self {
            Self::OfOthers => format!("{none} and whose tenantID is spec.tenantID of the Cluster"),
            Self::Credential { .. } | Self::None => none,
        }
    }
}

/// The newest of those that are for `target`: users replace a credential by creating another one. Of
/// two that were made in the same second the one whose name comes last, so that all replicas choose
/// alike. One of another tenant does not count, however new it is.
pub(crate) fn choose(found: Vec<ClusterCredential>, target: Target<'_>) -> Choice {
    let mut refused = false;
    let mut fitting = found;
    fitting.retain(|credential| {
        let why = is_for(credential, target).err();
        refused |= why == Some(Refusal::Tenant);
        why.is_none()
    });
    let age = |credential: &ClusterCredential| {
        let metadata = &credential.metadata;
        (metadata.creation_timestamp.clone(), metadata.name.clone())
    };
    fitting.sort_by_cached_key(age);
    match fitting.pop() {
        Some(credential) => {
            Choice::Credential { credential: Box::new(credential), others: fitting.len() }
        }
        None if refused => Choice::OfOthers,
        None => Choice::None,
    }
}

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(5);
/// How the credentials of one cluster are selected: by field, and by upstream's label on servers
/// that cannot select by field.
const FIELD: &str = "fieldSelector";
const LABEL: &str = "labelSelector";
const CLUSTER_LABEL: &str = "tkestack.io/cluster-name";
/// Credentials of one cluster that are read at a time, and how many times.
const PAGE: &str = "50";
const PAGES_MAX: usize = 21;

const RIGHT: &str = "get and list clustercredentials";

fn refused(status: StatusCode) -> ReadError {
    ReadError::Refused { what: CREDENTIAL.to_owned(), status }.of_right(RIGHT)
}

impl From<CredentialError> for ReadError {
    fn from(error: CredentialError) -> Self {
        Self::Unusable(error.to_string())
    }
}

const CREDENTIAL: &str = "a ClusterCredential";
const TOO_MANY: &str = "cannot list the ClusterCredentials of a Cluster: there are more than 1000; name one in spec.clusterCredentialRef";

/// Reads from the management API.
pub(crate) struct Fetch {
    client: kube::Client,
}

impl Fetch {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// The ClusterCredential of this name, which may be none.
    pub(crate) async fn credential(
        &self,
        name: &str,
    ) -> Result<Option<ClusterCredential>, ReadError> {
        if !is_name(name) {
            return Ok(None);
        }
        let found = find(&self.client, &CLUSTER_CREDENTIALS, name, ATTEMPT).await;
        let Some(body) = found.map_err(|error| error.of_right(RIGHT))? else { return Ok(None) };
        let read = ClusterCredential::read(&body);
        wipe(body);
        Ok(Some(read?))
    }

    /// The ClusterCredential to use for a cluster that names none. Those of other tenants are left out by the server, so
    /// that no number of them hides the own one; they are read only to name them when there is no own one.
    pub(crate) async fn credential_of(&self, target: Target<'_>) -> Result<Choice, ReadError> {
        let Target { name, tenant } = target;
        let by_name = format!("clusterName={name}");
        let of_tenant = format!("{by_name},tenantID={}", escaped(tenant));
        let Some(found) = self.all(FIELD, &of_tenant).await? else {
            // A server that cannot select by both fields, or by no field at all.
            let found = match self.all(FIELD, &by_name).await? {
                Some(found) => Some(found),
                None => self.all(LABEL, &format!("{CLUSTER_LABEL}={name}")).await?,
            };
            let found = found.ok_or(refused(StatusCode::BAD_REQUEST))?;
            return Ok(choose(found, target));
        };
        match choose(found, target) {
            Choice::None => {
                let all = self.all(FIELD, &by_name).await?.unwrap_or_default();
                let all = choose(all, target);
                // A credential that was created meanwhile has its own watch event.
                Ok(if matches!(all, Choice::OfOthers) { all } else { Choice::None })
            }
            choice => Ok(choice),
        }
    }

    /// All pages of a list: the newest one may stand on the last page. `None` when the server cannot select so.
    async fn all(
        &self,
        selector: &str,
        by: &str,
    ) -> Result<Option<Vec<ClusterCredential>>, ReadError> {
        let (mut found, mut token) = (Vec::new(), None::<Box<str>>);
        for _ in 0..PAGES_MAX {
            let path = selection(selector, by, token.as_deref());
            let answer = get(&self.client, &path, ATTEMPT).await;
            let answer =
                answer.map_err(|source| ReadError::Call { what: CREDENTIAL.to_owned(), source })?;
            match answer.status {
                StatusCode::OK => {}
                StatusCode::BAD_REQUEST => return Ok(None),
                status => return Err(refused(status)),
            }
            let read = CredentialPage::read(&answer.body);
            wipe(answer.body);
            let page = read?;
            token = page.next().map(Into::into);
            found.extend(page.items);
            if token.is_none() {
                return Ok(Some(found));
            }
        }
        Err(ReadError::Unusable(TOO_MANY.to_owned()))
    }
}

impl ReadCredentials<Cluster, ClusterCredential> for Fetch {
    fn find<'a>(
        &'a self,
        cluster: &'a Object<Cluster>,
    ) -> BoxFuture<'a, Result<Found<ClusterCredential>, ReadError>> {
        Box::pin(async move {
            let (credential, others) = match reference(cluster) {
                Some(name) => match self.credential(&name).await? {
                    Some(credential) => (Box::new(credential), 0),
                    None => {
                        return Ok(Found::Nothing(format!("there is no ClusterCredential {name}")));
                    }
                },
                None => match self.credential_of(target(cluster)).await? {
                    Choice::Credential { credential, others } => (credential, others),
                    none => return Ok(Found::Nothing(none.nothing_for(cluster.metadata.name()))),
                },
            };
            let CredentialMetadata { name, resource_version, .. } = &credential.metadata;
            let version = ObjectVersion { key: Arc::from(&**name), version: *resource_version };
            let warning = (others > 0).then(|| {
                let all = others + 1;
                let text = format!(
                    "{all} ClusterCredentials are for this cluster; the newest, {name}, is used"
                );
                ("SeveralCredentials", text)
            });
            Ok(Found::Credential { version, warning, credential: *credential })
        })
    }

    fn owner<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Arc<str>>, ReadError>> {
        Box::pin(async move {
            let credential = self.credential(name).await?;
            Ok(credential.map(|credential| Arc::from(&*credential.cluster_name)))
        })
    }
}

/// The ClusterCredential that a Cluster names.
pub(crate) fn reference(cluster: &Object<Cluster>) -> Option<Arc<str>> {
    let reference = cluster.body.spec.cluster_credential_ref.as_ref()?;
    (!reference.name.is_empty()).then(|| Arc::from(&*reference.name))
}

/// The Cluster that its credential has to be for.
pub(crate) fn target(cluster: &Object<Cluster>) -> Target<'_> {
    Target { name: cluster.metadata.name(), tenant: &cluster.body.spec.tenant_id }
}

/// A value in a field selector.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

fn selection(selector: &str, by: &str, token: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair(selector, by).append_pair("limit", PAGE);
    query.extend_pairs(token.map(|token| ("continue", token)));
    format!("{}?{}", CLUSTER_CREDENTIALS.collection_path(None), query.finish())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::tke::CredentialPage;

    const OLD: &str = "2026-01-01T00:00:00Z";
    const NEW: &str = "2026-01-02T00:00:00Z";

    /// Chooses from rows of (name, made, cluster, tenant).
    fn choice(found: &[(&str, &str, &str, &str)]) -> Choice {
        let items: Vec<_> = found
            .iter()
            .map(|(name, made, cluster, tenant)| {
                json!({"metadata": {"name": name, "creationTimestamp": made},
                    "clusterName": cluster, "tenantID": tenant})
            })
            .collect();
        let list = json!({ "items": items }).to_string();
        let page = CredentialPage::read(list.as_bytes()).unwrap();
        choose(page.items, Target { name: "cls-1", tenant: "t" })
    }

    fn chosen(found: &[(&str, &str, &str, &str)]) -> Option<(String, usize)> {
        match choice(found) {
            Choice::Credential { credential, others } => {
                Some((credential.metadata.name.to_string(), others))
            }
            Choice::None | Choice::OfOthers => None,
        }
    }

    #[test]
    fn the_newest_credential_of_the_cluster_is_used_and_the_others_are_counted() {
        assert!(matches!(choice(&[]), Choice::None));
        assert!(matches!(choice(&[("a", OLD, "cls-2", "t")]), Choice::None));
        let one = [("a", OLD, "cls-1", "t"), ("b", NEW, "cls-2", "t")];
        assert_eq!(chosen(&one), Some(("a".into(), 0)));
        let two = [("b", NEW, "cls-1", "t"), ("c", OLD, "cls-1", "t")];
        assert_eq!(chosen(&two), Some(("b".into(), 1)));
        let same_second =
            [("b", OLD, "cls-1", "t"), ("c", OLD, "cls-1", "t"), ("a", OLD, "cls-1", "t")];
        assert_eq!(chosen(&same_second), Some(("c".into(), 2)));
    }

    /// rule:a-credential-goes-where-its-owner-sent-it
    #[test]
    fn a_newer_credential_of_another_tenant_is_never_chosen() {
        let of_both = [("own", OLD, "cls-1", "t"), ("theirs", NEW, "cls-1", "other")];
        assert_eq!(chosen(&of_both), Some(("own".into(), 0)));
        let of_others = [("theirs", NEW, "cls-1", "other"), ("x", OLD, "cls-2", "t")];
        assert!(matches!(choice(&of_others), Choice::OfOthers));
    }
}

#[cfg(test)]
mod fetch_tests {
    use api_server_double::{ApiServer, Reply};
    use serde_json::{Value, json};

    use super::*;

    fn credential(name: &str, made: &str) -> Value {
        json!({"metadata": {"name": name, "creationTimestamp": made}, "clusterName": "cls-1"})
    }

    #[tokio::test]
    async fn the_newest_credential_is_found_on_the_last_page() {
        let server = ApiServer::new(|asked| {
            let is_second = asked.query().contains("continue=second%2Fpage");
            let (page, token) = if is_second {
                (json!([credential("new", "2026-01-02T00:00:00Z")]), "")
            } else {
                (json!([credential("old", "2026-01-01T00:00:00Z")]), "second/page")
            };
            Reply::Json(200, json!({"metadata": {"continue": token}, "items": page}))
        });
        let target = Target { name: "cls-1", tenant: "" };
        let found = Fetch::new(server.client()).credential_of(target).await.unwrap();
        let Choice::Credential { credential, others } = found else { panic!("{found:?}") };
        assert_eq!((&*credential.metadata.name, others), ("new", 1));
    }

    #[tokio::test]
    async fn a_list_of_credentials_without_an_end_is_an_error() {
        let server = ApiServer::new(|_| {
            Reply::Json(200, json!({"metadata": {"continue": "again"}, "items": []}))
        });
        let target = Target { name: "cls-1", tenant: "" };
        let error = Fetch::new(server.client()).credential_of(target).await.unwrap_err();
        assert!(error.to_string().contains("more than 1000"), "{error}");
    }
}
