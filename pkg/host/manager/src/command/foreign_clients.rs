//! Clients of servers that a command asks, and that no flag of the manager names.

use client::{ClientOptions, Clients, Profile, RequestMetrics};
use kube::config::Kubeconfig;
use prometheus::Registry;
use serde_json::json;

use super::Program;

/// What a server sees in place of a controller's name.
const AGENT: &str = "command";

/// Of the server of the current context, as whom the kubeconfig says.
///
/// # Errors
/// What is wrong with the kubeconfig.
pub async fn of_kubeconfig(program: Program, file: Kubeconfig) -> anyhow::Result<kube::Client> {
    let clients = Clients::from_own(file, &options(program), &metrics()?).await?;
    Ok(clients.build(Profile::root(AGENT))?)
}

/// Of a server whose certificate is of its own making, and which is told nothing.
///
/// # Errors
/// The address can be that of no server.
pub async fn of_stranger(program: Program, address: &str) -> anyhow::Result<kube::Client> {
    let kubeconfig = json!({
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "nobody"}}],
        "clusters": [{"name": "it", "cluster": {"server": address, "insecure-skip-tls-verify": true}}],
        "users": [{"name": "nobody", "user": {}}],
    });
    let clients =
        Clients::from_object(&kubeconfig.to_string(), &options(program), &metrics()?).await?;
    Ok(clients.build(Profile::root(AGENT))?)
}

fn options(program: Program) -> ClientOptions {
    ClientOptions {
        kubeconfig: None,
        master: None,
        product: program.product.into(),
        version: program.version.into(),
        commit: program.commit.into(),
    }
}

/// A command ends before anybody could ask for them.
fn metrics() -> anyhow::Result<RequestMetrics> {
    Ok(RequestMetrics::new(&Registry::new())?)
}
