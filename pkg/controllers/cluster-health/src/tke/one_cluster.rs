//! How one Cluster is reached, looked up once.

use health::Code;
use objects::Object;
use probe::{Inputs, Problem};

use super::access::addresses;
use super::choice::choose;
use super::fetch::Fetch;
use super::inputs::{inputs, readable};
use crate::api::tke::{CLUSTER_CREDENTIALS, CLUSTERS, Cluster, ClusterCredential};
use crate::object_name::is_name;
use crate::stored_objects::{StoredError, StoredObjects};

/// What a client of the Cluster of this name is made of. Secrets are read in `namespace` alone, if
/// there is one, as the controller does.
///
/// # Errors
/// An object could not be read; or, inside, it was, and cannot be used.
pub(crate) async fn inputs_of(
    objects: &StoredObjects,
    name: &str,
    namespace: Option<&str>,
) -> Result<Result<Inputs, Problem>, StoredError> {
    let whole = objects.whole(&CLUSTERS, name).await?;
    let cluster = Object::<Cluster>::read(whole).map_err(|error| StoredError::Form {
        kind: CLUSTERS.kind.to_string(),
        key: name.to_owned(),
        why: error.to_string(),
    })?;
    let reference = cluster.body.spec.cluster_credential_ref.as_ref();
    let reference = reference.map(|it| &*it.name).filter(|name| !name.is_empty());
    let credential = match reference {
        Some(reference) => named(objects, reference).await?,
        None => of_cluster(objects, name).await?,
    };
    let Some(credential) = credential else {
        let whose = format!("whose clusterName is {name}");
        let text = format!("there is no ClusterCredential {}", reference.unwrap_or(&whose));
        return Ok(Err(Problem::new(Code::SecretMissing, text)));
    };
    if let Some(Err(problem)) = credential.secret_ref.as_ref().map(|of| readable(of, namespace)) {
        return Ok(Err(problem));
    }
    let secret = match &credential.secret_ref {
        Some(of) => objects.secret(&format!("{}/{}", of.namespace, of.name)).await?,
        None => None,
    };
    let elsewhere = credential.secret_ref.is_some() && secret.is_none() && objects.api().is_none();
    let made = addresses(&cluster).and_then(|it| inputs(it, credential, secret, false));
    Ok(made.map_err(|problem| match problem.code() {
        Code::SecretMissing if elsewhere => {
            let text = format!("{problem}: add it to the file, or give --kubeconfig");
            Problem::new(Code::SecretMissing, text)
        }
        _ => problem,
    }))
}

async fn named(
    objects: &StoredObjects,
    name: &str,
) -> Result<Option<ClusterCredential>, StoredError> {
    if !is_name(name) {
        return Ok(None);
    }
    let Some(text) = objects.find(&CLUSTER_CREDENTIALS, name).await? else { return Ok(None) };
    ClusterCredential::read(&text).map(Some).map_err(|error| unusable(name, &error))
}

async fn of_cluster(
    objects: &StoredObjects,
    cluster: &str,
) -> Result<Option<ClusterCredential>, StoredError> {
    let documents = objects.documents(&CLUSTER_CREDENTIALS).map(|document| {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let read = ClusterCredential::read(document.to_string().as_bytes());
        read.map_err(|error| unusable(name, &error))
    });
    let mut choice = choose(documents.collect::<Result<_, _>>()?, cluster);
    if let (None, Some(api)) = (&choice, objects.api()) {
        let fetched = Fetch::new(api.clone()).credential_of(cluster).await;
        let whose = format!("whose clusterName is {cluster}");
        choice = fetched.map_err(|error| unusable(&whose, &error))?;
    }
    Ok(choice.map(|choice| choice.credential))
}

fn unusable(name: &str, why: &dyn std::fmt::Display) -> StoredError {
    let kind = CLUSTER_CREDENTIALS.kind.to_string();
    StoredError::Form { kind, key: name.to_owned(), why: why.to_string() }
}
