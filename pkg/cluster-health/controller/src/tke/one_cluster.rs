//! How one Cluster is reached, looked up once.

use health::Code;
use objects::Object;
use probe::{Inputs, Problem};
use transport::wipe;

use super::access::addresses;
use super::access::inputs;
use super::credentials::Fetch;
use super::credentials::{Choice, choose};
use crate::api::is_name;
use crate::api::secret::json_text;
use crate::api::tke::{CLUSTER_CREDENTIALS, CLUSTERS, Cluster, ClusterCredential};
use crate::credential_policy::{Lookup, Target, is_for, may_ask, may_read};
use crate::stored_objects::{StoredError, StoredObjects};

/// What a client of the Cluster of this name is made of, as the controller would make it.
///
/// # Errors
/// An object could not be read; or, inside, it was, and cannot be used.
pub(crate) async fn inputs_of(
    objects: &StoredObjects,
    name: &str,
    lookup: &Lookup,
) -> Result<Result<Inputs, Problem>, StoredError> {
    if let Err(refusal) = may_ask(lookup.asker) {
        return Ok(Err(refusal.problem("the credential of the Cluster")));
    }
    let whole = objects.whole(&CLUSTERS, name).await?;
    let cluster = Object::<Cluster>::read(whole).map_err(|error| StoredError::Form {
        kind: CLUSTERS.kind.to_string(),
        key: name.to_owned(),
        why: error.to_string(),
    })?;
    let target = Target { name, tenant: &cluster.body.spec.tenant_id };
    let reference = cluster.body.spec.cluster_credential_ref.as_ref();
    let reference = reference.map(|it| &*it.name).filter(|name| !name.is_empty());
    let found = match reference {
        Some(reference) => named(objects, reference).await?,
        None => of_cluster(objects, target).await?,
    };
    let credential = match found {
        Ok(credential) => credential,
        Err(nothing) => return Ok(Err(Problem::new(Code::SecretMissing, nothing))),
    };
    if let Err(refusal) = is_for(&credential, target) {
        let text = format!("ClusterCredential {}", credential.metadata.name);
        return Ok(Err(refusal.problem(&text)));
    }
    let namespace = lookup.secret_namespace.as_deref();
    if let Some(Err(problem)) = credential.secret_ref.as_ref().map(|of| may_read(of, namespace)) {
        return Ok(Err(problem));
    }
    let secret = match &credential.secret_ref {
        Some(of) => objects.secret(&format!("{}/{}", of.namespace, of.name)).await?,
        None => None,
    };
    let elsewhere = credential.secret_ref.is_some() && secret.is_none() && objects.api().is_none();
    let insecure = lookup.insecure_without_ca;
    let made = addresses(&cluster).and_then(|it| inputs(it, credential, secret, insecure));
    Ok(made.map_err(|problem| match problem.code() {
        Code::SecretMissing if elsewhere => {
            let text = format!("{problem}: add it to the file, or give --kubeconfig");
            Problem::new(Code::SecretMissing, text)
        }
        _ => problem,
    }))
}

/// Or why it cannot be used.
type Found = Result<ClusterCredential, String>;

async fn named(objects: &StoredObjects, name: &str) -> Result<Found, StoredError> {
    let none = || Ok(Err(format!("there is no ClusterCredential {name}")));
    if !is_name(name) {
        return none();
    }
    let Some(text) = objects.find(&CLUSTER_CREDENTIALS, name).await? else { return none() };
    let read = ClusterCredential::read(&text);
    wipe(text);
    read.map(Ok).map_err(|error| unusable(name, &error))
}

async fn of_cluster(objects: &StoredObjects, target: Target<'_>) -> Result<Found, StoredError> {
    let documents = objects.documents(&CLUSTER_CREDENTIALS).map(|document| {
        let name = document["metadata"]["name"].as_str().unwrap_or_default();
        let text = json_text(document);
        let read = ClusterCredential::read(&text);
        wipe(text);
        read.map_err(|error| unusable(name, &error))
    });
    let mut choice = choose(documents.collect::<Result<_, _>>()?, target);
    if let (Choice::None, Some(api)) = (&choice, objects.api()) {
        let fetched = Fetch::new(api.clone()).credential_of(target).await;
        let whose = format!("whose clusterName is {}", target.name);
        choice = fetched.map_err(|error| unusable(&whose, &error))?;
    }
    Ok(match choice {
        Choice::Credential { credential, .. } => Ok(*credential),
        none => Err(none.nothing_for(target.name)),
    })
}

fn unusable(name: &str, why: &dyn std::fmt::Display) -> StoredError {
    let kind = CLUSTER_CREDENTIALS.kind.to_string();
    StoredError::Form { kind, key: name.to_owned(), why: why.to_string() }
}
