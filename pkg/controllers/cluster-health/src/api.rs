//! The custom resources as the controllers read and write them. The CRDs are in `config/crd`.
//!
//! Caches hold [`objects::Object`]s: the typed view of the fields that are used here, and the rest
//! as it came, so that status writes keep it. Of kinds with passwords in their spec only the needed
//! fields are kept. A [`tke::ClusterCredential`] is never cached: it is fetched singly and decoded
//! into memory that is wiped.
//!
//! | file | holds |
//! |---|---|
//! | `tke.rs` | group `platform.tkestack.io`: [`tke::Cluster`], [`tke::Machine`], [`tke::ClusterCredential`] |
//! | `kubefed.rs` | group `core.kubefed.io`: [`kubefed::KubeFedCluster`], [`kubefed::KubeFedConfig`] |
//! | `condition.rs` | [`Condition`], the same in both groups |
//! | `secret.rs` | texts and bytes that cannot be printed |
//! | `tolerant.rs` | readers of what others may have written oddly |

mod condition;
pub mod kubefed;
pub mod secret;
pub mod tke;
mod tolerant;

use serde::{Deserialize, Serialize};

pub use condition::{Condition, ConditionStatus};

/// What the kinds have beside metadata and status.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct WithSpec<T> {
    /// What is wanted.
    #[serde(deserialize_with = "tolerant::null_is_default")]
    pub spec: T,
}
