//! `config/crd` and `config/samples` on a real API server, by the hands of a user with kubectl and
//! of the product.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod admission;
mod installing;
mod objects;
mod printing;
mod schemas;
mod static_rules;
mod status_writes;
mod stored_before;
mod upstream;
mod validate_command;

use tests::kubectl::Kubectl;
use tests::pool::{Lent, Pool};

/// A control plane for one test, with the CRDs of `config/crd` and no objects of theirs.
pub(crate) async fn plane() -> Lent<Kubectl> {
    static PLANES: Pool<Kubectl> = Pool::new();
    let clean = async |plane: &Kubectl| {
        let crds = plane.run("get crd -o name");
        let kinds: Vec<_> = crds.lines().filter_map(|crd| crd.split('/').nth(1)).collect();
        plane.run(&format!("delete {} --all --all-namespaces", kinds.join(",")));
    };
    PLANES.lend(Kubectl::with_crds, clean).await
}
