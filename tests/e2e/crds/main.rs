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
        let kinds = installing::crds(plane).join(",");
        plane.run(&format!("delete {kinds} --all --all-namespaces"));
    };
    PLANES.lend(Kubectl::with_crds, clean).await
}
