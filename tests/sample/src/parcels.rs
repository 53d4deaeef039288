//! One pass over one parcel: it is sealed by server-side apply.

use std::sync::Arc;

use informer::Informer;
use objects::{Apply, Object, ObjectClient, Part};
use serde_json::json;
use workqueue::{Next, Reconcile, Retry};

use crate::Parcel;
use crate::metrics::Memory;

/// Seals parcels, by key.
pub(crate) struct Parcels {
    pub(crate) cache: Informer<Object<Parcel>>,
    pub(crate) client: ObjectClient<Parcel>,
    pub(crate) memory: Memory,
}

impl Reconcile for Parcels {
    type Key = Arc<str>;

    async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
        let Some(parcel) = self.cache.get(key) else { return Ok(Next::Done) };
        self.memory.begin(key, parcel.metadata.resource_version);
        if parcel.status.sealed || parcel.metadata.deleting() {
            return Ok(Next::Done);
        }
        let seal = Apply {
            fields: json!({"status": {"sealed": true}}),
            uid: Some(parcel.metadata.uid.to_string()),
            force: true,
            part: Part::Status,
        };
        let sealed = self.client.apply(key, &seal).await.map_err(manager::retry)?;
        self.memory.wrote(key, sealed.metadata.resource_version);
        Ok(Next::Done)
    }
}
