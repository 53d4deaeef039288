//! One pass over one shipment.

use std::sync::Arc;
use std::time::Duration;

use events::{EventType, ObjectRef, Recorder};
use informer::Informer;
use objects::{Draft, Error, Object, ObjectClient, OwnerReference};
use workqueue::{Next, Reconcile, Retry};

use crate::carriers::Carriers;
use crate::metrics::Memory;
use crate::{FINALIZER, MADE_BY, NAME, Parcel, ParcelSpec, Phase, SHIPMENTS, Shipment, WithSpec};

/// Time after which a missing carrier is looked for again, if no event reports it.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Packs and loads shipments, by key.
pub(crate) struct Shipments {
    pub(crate) cache: Informer<Object<Shipment>>,
    pub(crate) parcels: Informer<Object<Parcel>>,
    pub(crate) client: ObjectClient<Shipment>,
    /// Writes the objects through another throttle.
    pub(crate) status_client: ObjectClient<Shipment>,
    pub(crate) parcel_client: ObjectClient<Parcel>,
    pub(crate) carriers: Carriers,
    pub(crate) recorder: Recorder,
    pub(crate) memory: Memory,
}

impl Reconcile for Shipments {
    type Key = Arc<str>;

    async fn reconcile(&self, key: &Arc<str>) -> Result<Next, Retry> {
        let Some(shipment) = self.cache.get(key) else { return Ok(Next::Done) };
        self.memory.begin(key, shipment.metadata.resource_version);
        let pass = if shipment.metadata.deleting() {
            self.unload(&shipment).await
        } else {
            self.load(&shipment).await
        };
        pass.map_err(manager::retry)
    }
}

impl Shipments {
    async fn load(&self, shipment: &Arc<Object<Shipment>>) -> Result<Next, Error> {
        let shipment = self.client.add_finalizer(shipment, FINALIZER).await?.object;
        let key = &shipment.metadata.key;
        if self.parcels.get(key).is_none() {
            self.parcel_client.create_if_absent(key, &parcel_of(&shipment)).await?;
        }
        let phase =
            if self.carriers.load(&shipment).await? { Phase::Loaded } else { Phase::NoCarrier };
        let written = self.status_client.change_status(&shipment, |now, status| {
            let before = status.clone();
            status.phase = phase;
            let items = now.body.spec.items.iter();
            status.packed.extend(items.map(|item| (item.name.clone(), true)));
            if *status != before {
                status.writes += 1;
            }
        });
        let written = written.await?;
        self.memory.wrote(key, written.object.metadata.resource_version);
        if written.changed && phase == Phase::NoCarrier {
            self.record_event(&written.object);
        }
        Ok(if phase == Phase::Loaded { Next::Done } else { Next::After(LOOK_AGAIN) })
    }

    async fn unload(&self, shipment: &Arc<Object<Shipment>>) -> Result<Next, Error> {
        if !shipment.metadata.has_finalizer(FINALIZER) {
            return Ok(Next::Done);
        }
        if let Some(parcel) = self.parcels.get(&shipment.metadata.key) {
            self.parcel_client.delete(&parcel).await?;
        }
        self.carriers.unload(shipment).await?;
        self.client.remove_finalizer(shipment, FINALIZER).await?;
        Ok(Next::Done)
    }

    fn record_event(&self, shipment: &Object<Shipment>) {
        let (metadata, carrier) = (&shipment.metadata, &shipment.body.spec.carrier);
        let object = ObjectRef::new(
            &SHIPMENTS.api_version(),
            &SHIPMENTS.kind,
            metadata.namespace().unwrap_or_default(),
            metadata.name(),
            &metadata.uid,
        );
        let message = format!("{} {} is not there", carrier.kind, carrier.name);
        self.recorder.event(object, EventType::Warning, "NoCarrier", message);
    }
}

fn parcel_of(shipment: &Object<Shipment>) -> Draft<Parcel> {
    let metadata = &shipment.metadata;
    let spec = ParcelSpec { shipment: metadata.name().to_owned() };
    let mut draft = Draft::new(WithSpec { spec });
    draft.metadata.labels.insert(MADE_BY.to_owned(), NAME.to_owned());
    draft.metadata.owner_references.push(OwnerReference {
        api_version: SHIPMENTS.api_version(),
        kind: SHIPMENTS.kind.to_string(),
        name: metadata.name().to_owned(),
        uid: metadata.uid.to_string(),
        controller: Some(true),
        block_owner_deletion: None,
    });
    draft
}
