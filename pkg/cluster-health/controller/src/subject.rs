//! [`Subject`]: one cluster object, looked up once, as the controller would: for `probe` and the
//! checks of the network.

use std::fmt;
use std::str::FromStr;

use health::Code;
use kube_api::Resource;
use objects::Object;
use probe::{Inputs, Problem};
use transport::wipe;

use crate::api::cluster_api;
use crate::api::cluster_profile::{CLUSTER_PROFILES, ClusterProfile};
use crate::api::is_name;
use crate::api::kubefed::{KUBEFED_CLUSTERS, KubeFedCluster};
use crate::api::secret::json_text;
use crate::api::tke::{CLUSTER_CREDENTIALS, CLUSTERS, Cluster, ClusterCredential};
use crate::cluster_api::access as capi_access;
use crate::cluster_profile::access::way;
use crate::cluster_profile::providers::Providers;
use crate::credential_policy::{Lookup, Target, may_ask};
use crate::engine::CredentialSource;
use crate::kubefed::access;
use crate::secret_data::ReadError;
use crate::stored_objects::StoredObjects;
use crate::tke::access::{addresses, inputs, secret_key};
use crate::tke::credentials::{Choice, Fetch, choose, reference, target};

/// An object that stands for a member cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    KubeFedCluster,
    Cluster,
    /// Its name is `namespace/name`.
    ClusterProfile,
    ClusterApi,
}

/// A text that names no cluster object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot parse the object {0:?}: write kubefedcluster/NAME, cluster/NAME, \
         clusterprofile/NAMESPACE/NAME or capi/NAMESPACE/NAME"
)]
pub(crate) struct SubjectError(String);

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let refused = || SubjectError(text.to_owned());
        let (kind, name) = text.split_once('/').ok_or_else(refused)?;
        let kind = match kind.to_ascii_lowercase().as_str() {
            "kubefedcluster" | "kubefedclusters" => Kind::KubeFedCluster,
            "cluster" | "clusters" | "cls" => Kind::Cluster,
            "clusterprofile" | "clusterprofiles" => Kind::ClusterProfile,
            "capi" => Kind::ClusterApi,
            _ => return Err(refused()),
        };
        let is_valid = match (kind, name.split_once('/')) {
            (Kind::ClusterProfile | Kind::ClusterApi, Some((namespace, name))) => {
                is_name(namespace) && is_name(name)
            }
            (Kind::ClusterProfile | Kind::ClusterApi, None) => false,
            _ => is_name(name),
        };
        is_valid.then(|| Self { kind, name: name.to_owned() }).ok_or_else(refused)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::KubeFedCluster => "kubefedcluster",
            Kind::Cluster => "cluster",
            Kind::ClusterProfile => "clusterprofile",
            Kind::ClusterApi => "capi",
        };
        write!(f, "{kind}/{}", self.name)
    }
}

impl Subject {
    /// The cluster objects of the documents, in their order.
    pub(crate) fn all_of(objects: &StoredObjects) -> Vec<Self> {
        let of_kind = |resource: &Resource, kind: Kind| {
            let name = |it: &serde_json::Value| it["metadata"]["name"].as_str().map(str::to_owned);
            let names: Vec<_> = objects.documents(resource).filter_map(name).collect();
            names.into_iter().map(move |name| Self { kind, name })
        };
        let federated = of_kind(&KUBEFED_CLUSTERS, Kind::KubeFedCluster);
        let in_namespaces = |resource: &Resource, kind: Kind| {
            let named = objects.documents(resource).filter_map(|document| {
                let metadata = &document["metadata"];
                let namespace = metadata["namespace"].as_str().unwrap_or("default");
                let name = format!("{namespace}/{}", metadata["name"].as_str()?);
                Some(Self { kind, name })
            });
            named.collect::<Vec<_>>()
        };
        let profiles =
            CLUSTER_PROFILES.iter().flat_map(|kind| in_namespaces(kind, Kind::ClusterProfile));
        let capi =
            cluster_api::CLUSTERS.iter().flat_map(|kind| in_namespaces(kind, Kind::ClusterApi));
        let clusters = federated.chain(of_kind(&CLUSTERS, Kind::Cluster));
        clusters.chain(profiles).chain(capi).collect()
    }

    /// Whether the controller follows a healthy answer by an authenticated read.
    pub(crate) fn is_read(&self) -> bool {
        self.kind == Kind::Cluster
    }

    /// The inputs of the client of the cluster, by its object and its credential.
    ///
    /// # Errors
    /// An object cannot be read, or the objects that were read cannot be used.
    pub(crate) async fn inputs(
        &self,
        objects: &StoredObjects,
        lookup: &Lookup,
    ) -> Result<Inputs, ReadError> {
        let credential = match self.kind {
            Kind::KubeFedCluster => "the Secret of the KubeFedCluster",
            Kind::Cluster => "the credential of the Cluster",
            Kind::ClusterProfile => "the Secret of the ClusterProfile",
            Kind::ClusterApi => "the Secret of the Cluster",
        };
        may_ask(lookup.asker).map_err(|refusal| refusal.problem(credential))?;
        match self.kind {
            Kind::KubeFedCluster => kubefed_inputs(objects, &self.name, lookup).await,
            Kind::Cluster => tke_inputs(objects, &self.name, lookup).await,
            Kind::ClusterProfile => profile_inputs(objects, &self.name, lookup).await,
            Kind::ClusterApi => capi_inputs(objects, &self.name).await,
        }
    }
}

/// The inputs of the client of a Cluster, as the controller would make them.
async fn tke_inputs(
    objects: &StoredObjects,
    name: &str,
    lookup: &Lookup,
) -> Result<Inputs, ReadError> {
    let cluster: Object<Cluster> = objects.whole(&CLUSTERS, name).await?;
    let found = match reference(&cluster) {
        Some(reference) => named(objects, &reference).await?,
        None => of_cluster(objects, target(&cluster)).await?,
    };
    let credential = found.map_err(|nothing| Problem::new(Code::SecretMissing, nothing))?;
    let key = secret_key(&cluster, &credential, lookup.secret_namespace.as_deref())?;
    let secret = match &key {
        Some(key) => objects.secret(key, None).await?,
        None => None,
    };
    let elsewhere = key.is_some() && secret.is_none() && objects.api().is_none();
    let insecure = lookup.insecure_without_ca;
    let made = addresses(&cluster).and_then(|it| inputs(it, credential, secret, insecure));
    made.map_err(|problem| match problem.code() {
        Code::SecretMissing if elsewhere => {
            let text = format!("{problem}: add it to the file, or set --kubeconfig");
            Problem::new(Code::SecretMissing, text).into()
        }
        _ => problem.into(),
    })
}

/// A ClusterCredential, or why it cannot be used.
type Found = Result<ClusterCredential, String>;

async fn named(objects: &StoredObjects, name: &str) -> Result<Found, ReadError> {
    let none = || Ok(Err(format!("there is no ClusterCredential {name}")));
    if !is_name(name) {
        return none();
    }
    let Some(text) = objects.find(&CLUSTER_CREDENTIALS, name).await? else { return none() };
    let read = ClusterCredential::read(&text);
    wipe(text);
    read.map(Ok).map_err(|error| unusable(name, &error))
}

async fn of_cluster(objects: &StoredObjects, target: Target<'_>) -> Result<Found, ReadError> {
    let documents = objects.documents(&CLUSTER_CREDENTIALS).map(|document| {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let text = json_text(document);
        let read = ClusterCredential::read(&text);
        wipe(text);
        read.map_err(|error| unusable(name, &error))
    });
    let mut choice = choose(documents.collect::<Result<_, _>>()?, target);
    if let (Choice::None, Some(api)) = (&choice, objects.api()) {
        choice = Fetch::new(api.clone()).credential_of(target).await?;
    }
    Ok(match choice {
        Choice::Credential { credential, .. } => Ok(*credential),
        none => Err(none.nothing_for(target.name)),
    })
}

fn unusable(name: &str, why: &dyn fmt::Display) -> ReadError {
    ReadError::Unusable(format!("cannot use ClusterCredential {name}: {why}"))
}

/// The inputs of the client of a KubeFedCluster.
async fn kubefed_inputs(
    objects: &StoredObjects,
    name: &str,
    lookup: &Lookup,
) -> Result<Inputs, ReadError> {
    let namespace = lookup.secret_namespace.as_deref().unwrap_or_default();
    let key = format!("{namespace}/{name}");
    let cluster: Object<KubeFedCluster> = objects.whole(&KUBEFED_CLUSTERS, &key).await?;
    let secret = match access::secret_key(&cluster) {
        Some(key) => objects.secret(&key, None).await?,
        None => None,
    };
    Ok(access::inputs(&cluster, secret.as_ref(), false)?)
}

/// The inputs of the client of the ClusterProfile with this key.
async fn profile_inputs(
    objects: &StoredObjects,
    key: &str,
    lookup: &Lookup,
) -> Result<Inputs, ReadError> {
    let [newest, other] = &CLUSTER_PROFILES;
    let is_newest = objects.find(newest, key).await?.is_some();
    let kind = if is_newest { newest } else { other };
    let profile: Object<ClusterProfile> = objects.whole(kind, key).await?;
    let providers = Providers::built_in();
    let way = way(&profile, &lookup.profile_secret_namespaces, &providers)?;
    let secret = match &way.source {
        CredentialSource::Secret { key, entry } => objects.secret(key, entry.as_deref()).await?,
        CredentialSource::Plugin(_) | CredentialSource::Nothing => {
            let text =
                "the access provider runs an exec plugin, which is run by the controller only";
            return Err(Problem::new(Code::PluginFailed, text).into());
        }
    };
    Ok(way.inputs(secret.as_ref(), false)?)
}

/// The inputs of the client of the Cluster of Cluster API with this key.
async fn capi_inputs(objects: &StoredObjects, key: &str) -> Result<Inputs, ReadError> {
    let cluster: Object<cluster_api::Cluster> =
        objects.whole(&cluster_api::CLUSTERS[0], key).await?;
    let secret = capi_access::secret_key(&cluster)?;
    let secret = objects.secret(&secret, Some(capi_access::KEY)).await?;
    Ok(capi_access::inputs(&cluster, secret.as_ref(), false)?)
}

#[cfg(test)]
mod tests {
    use health::Code;
    use secrecy::ExposeSecret as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::credential_policy::Asker;

    /// With Secrets of this namespace, or of all.
    fn lookup(namespace: &str) -> Lookup {
        let namespace = Some(namespace.to_owned()).filter(|text| !text.is_empty());
        Lookup {
            asker: Asker::Command,
            secret_namespace: namespace,
            profile_secret_namespaces: Vec::new(),
            insecure_without_ca: false,
        }
    }

    fn objects(documents: &[Value]) -> StoredObjects {
        StoredObjects::new(documents.to_vec(), None)
    }

    #[test]
    fn an_object_is_named_by_its_kind_and_name() {
        for (text, told) in [
            ("kubefedcluster/one", Some("kubefedcluster/one")),
            ("KubeFedClusters/one.example", Some("kubefedcluster/one.example")),
            ("cls/cls-1", Some("cluster/cls-1")),
            ("one", None),
            ("secret/one", None),
            ("cluster/", None),
            ("cluster/../secrets/x", None),
            ("clusterprofile/ns/one", Some("clusterprofile/ns/one")),
            ("clusterprofile/one", None),
            ("clusterprofile/ns/one/two", None),
            ("clusterprofile/../one", None),
        ] {
            let subject = text.parse::<Subject>().ok();
            assert_eq!(subject.map(|it| it.to_string()).as_deref(), told, "{text}");
        }
    }

    #[tokio::test]
    async fn a_kubefed_cluster_is_reached_as_its_object_and_its_secret_say() {
        let cluster = json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
            "metadata": {"name": "one"},
            "spec": {"apiEndpoint": "10.0.0.1:6443", "secretRef": {"name": "s"}}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "stringData": {"token": "t"}});
        let found = objects(&[cluster.clone(), secret]);
        assert_eq!(Subject::all_of(&found), ["kubefedcluster/one".parse().unwrap()]);
        let subject: Subject = "kubefedcluster/one".parse().unwrap();
        let inputs = subject.inputs(&found, &lookup("fed")).await.unwrap();
        assert_eq!(inputs.addresses[0].to_string(), "https://10.0.0.1:6443");
        assert_eq!(inputs.token.unwrap().expose_secret(), "t");
        let problem = subject.inputs(&objects(&[cluster]), &lookup("fed")).await.unwrap_err();
        assert_eq!(problem.code(), Code::SecretMissing);
        let missing = subject.inputs(&objects(&[]), &lookup("fed")).await.unwrap_err().to_string();
        assert!(missing.starts_with("cannot find KubeFedCluster fed/one"), "{missing}");
    }

    #[tokio::test]
    async fn a_cluster_profile_is_reached_as_its_access_provider_and_its_secret_say() {
        let extension = json!({"name": "client.authentication.k8s.io/exec",
            "extension": {"name": "s", "key": "value", "namespace": "other"}});
        let cluster = json!({"server": "https://10.0.0.1:6443", "extensions": [extension]});
        let profile = json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ClusterProfile", "metadata": {"namespace": "ns", "name": "one"},
            "status": {"accessProviders": [{"name": "kubeconfig-secretreader", "cluster": cluster}]}});
        let kubeconfig = "current-context: c\ncontexts: [{name: c, context: {cluster: x, user: u}}]\n\
            users: [{name: u, user: {token: t}}]";
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "other", "name": "s"}, "stringData": {"value": kubeconfig}});
        let mut marked = secret.clone();
        marked["metadata"]["labels"] = json!({"infra-controller-manager/send-to-member": "true"});
        let unmarked = objects(&[profile.clone(), secret]);
        let found = objects(&[profile, marked]);
        let subject: Subject = "clusterprofile/ns/one".parse().unwrap();
        assert_eq!(Subject::all_of(&found), std::slice::from_ref(&subject));
        let problem = subject.inputs(&found, &lookup("")).await.unwrap_err();
        assert_eq!(problem.code(), Code::CredentialRefused);
        let listed = Lookup { profile_secret_namespaces: vec!["other".into()], ..lookup("") };
        let problem = subject.inputs(&unmarked, &listed).await.unwrap_err();
        assert_eq!(problem.code(), Code::CredentialRefused, "the Secret has no label");
        let inputs = subject.inputs(&found, &listed).await.unwrap();
        assert_eq!(inputs.token.unwrap().expose_secret(), "t");
        assert!(!subject.is_read());
    }

    #[tokio::test]
    async fn a_cluster_is_reached_by_the_credential_that_is_for_it_or_that_it_names() {
        let cluster = |spec: Value| {
            json!({"apiVersion": "platform.tkestack.io/v1", "kind": "Cluster",
                "metadata": {"name": "cls-1"}, "spec": spec,
                "status": {"addresses": [{"type": "Real", "host": "10.0.0.1", "port": 6443}]}})
        };
        let credential = |name: &str, token: &str| {
            json!({"apiVersion": "platform.tkestack.io/v1", "kind": "ClusterCredential",
                "metadata": {"name": name}, "clusterName": "cls-1", "token": token})
        };
        let subject: Subject = "cluster/cls-1".parse().unwrap();
        let named = json!({"clusterCredentialRef": {"name": "cc-1"}});
        for (spec, token) in [(named, "one"), (json!({}), "two")] {
            let documents = [cluster(spec), credential("cc-1", "one"), credential("cc-2", "two")];
            let inputs = subject.inputs(&objects(&documents), &lookup("")).await.unwrap();
            assert_eq!(inputs.token.unwrap().expose_secret(), token);
        }
        let mut elsewhere = credential("cc-3", "");
        elsewhere["token"] = Value::Null;
        elsewhere["secretRef"] = json!({"namespace": "other", "name": "s"});
        let documents = objects(&[cluster(json!({})), elsewhere]);
        let problem = subject.inputs(&documents, &lookup("fed")).await.unwrap_err().to_string();
        assert!(problem.contains("has to be in namespace fed, not other"), "{problem}");
        let problem = subject.inputs(&documents, &lookup("")).await.unwrap_err().to_string();
        assert!(!problem.contains("has to be in namespace"), "{problem}");
        let alone = objects(&[cluster(json!({}))]);
        let problem = subject.inputs(&alone, &lookup("")).await.unwrap_err();
        assert_eq!(problem.code(), Code::SecretMissing);
        assert!(subject.is_read());
        // rule:a-credential-goes-where-its-owner-sent-it
        let mut foreign = credential("cc-1", "one");
        for (field, told) in [("clusterName", "its clusterName"), ("tenantID", "its tenantID")] {
            foreign[field] = json!("other");
            let named = json!({"clusterCredentialRef": {"name": "cc-1"}});
            let documents = objects(&[cluster(named), foreign.clone()]);
            let problem = subject.inputs(&documents, &lookup("")).await.unwrap_err();
            assert_eq!(problem.code(), Code::CredentialRefused);
            assert!(problem.to_string().contains(told), "{problem}");
            foreign = credential("cc-1", "one");
        }
        let unknown = Lookup { asker: Asker::UnauthenticatedReview, ..lookup("") };
        let documents = objects(&[cluster(json!({})), credential("cc-1", "one")]);
        let problem = subject.inputs(&documents, &unknown).await.unwrap_err();
        assert_eq!(problem.code(), Code::CredentialRefused);
        let insecure = Lookup { insecure_without_ca: true, ..lookup("") };
        for (lookup, everything) in [(lookup(""), false), (insecure, true)] {
            let inputs = subject.inputs(&documents, &lookup).await.unwrap();
            assert_eq!(inputs.tls.everything, everything);
        }
    }
}
