//! Whom to ask by an object that stands for the cluster, out of a manifest or from the management
//! API.

use std::time::Duration;

use anyhow::{Context as _, bail};
use manager::command::{Program, foreign_clients, manifests};
use probe::{Inputs, Problem};
use tokio::time::timeout;

use super::arguments::Arguments;
use super::target::{adjusted, kubeconfig};
use crate::{StoredObjects, Subject};

/// For all reads of the management API together.
const LIMIT: Duration = Duration::from_secs(30);

/// The cluster that is meant, and what its client is made of.
pub(super) struct Found {
    pub(super) subject: Subject,
    pub(super) inputs: Result<Inputs, Problem>,
}

/// Looks the object and its credential up.
///
/// # Errors
/// One of them could not be read, or none is meant.
pub(super) async fn find(program: Program, arguments: &Arguments) -> anyhow::Result<Found> {
    let documents = arguments.file.as_deref().map(manifests::objects).transpose()?;
    // A manifest may be all there is; who names a management API wants it asked.
    let asked = arguments.kubeconfig.is_some() || arguments.context.is_some();
    let api = if documents.is_none() || asked {
        Some(management(program, arguments).await?)
    } else {
        None
    };
    let objects = StoredObjects::new(documents.unwrap_or_default(), api);
    let subject = match &arguments.object {
        Some(subject) => subject.clone(),
        None => only(Subject::all_of(&objects))?,
    };
    let inputs = timeout(LIMIT, subject.inputs(&objects, &arguments.lookup)).await;
    let inputs = inputs.context("the management API did not answer within 30 s")??;
    Ok(Found { subject, inputs: inputs.map(|inputs| adjusted(program, inputs, arguments)) })
}

fn only(mut subjects: Vec<Subject>) -> anyhow::Result<Subject> {
    match (subjects.pop(), subjects.len()) {
        (Some(subject), 0) => Ok(subject),
        (Some(last), _) => {
            subjects.push(last);
            let names: Vec<_> = subjects.iter().map(ToString::to_string).collect();
            bail!("the file has several clusters; name one of {}", names.join(", "))
        }
        (None, _) => bail!("the file has no KubeFedCluster and no Cluster; name one"),
    }
}

async fn management(program: Program, arguments: &Arguments) -> anyhow::Result<kube::Client> {
    let mut file = kubeconfig(arguments)?;
    file.current_context = arguments.context.clone().or(file.current_context);
    let client = foreign_clients::of_kubeconfig(program, file).await;
    client.context("cannot make a client of the management API")
}
