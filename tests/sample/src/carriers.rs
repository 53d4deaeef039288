//! Carriers: objects of kinds that are learnt from the shipments which name them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use informer::{Delta, Informer, Subscription};
use kube_api::Kind;
use manager::Context;
use objects::{Draft, Dynamic, Error, Object, ObjectClient, Why};
use parking_lot::Mutex;
use serde_json::{Value, json};
use workqueue::WorkQueue;

use crate::{Carrier, Shipment};

/// All kinds of carriers; clones share them.
#[derive(Clone)]
pub(crate) struct Carriers(Arc<Inner>);

/// Group, kind and key of a carrier.
type Place = (String, String, String);

struct Inner {
    context: Context,
    shipments: WorkQueue<Arc<str>>,
    /// Fleets by group and kind.
    fleets: Mutex<BTreeMap<(String, String), Fleet>>,
    /// Shipments by the key of the carrier that they name.
    named: Mutex<HashMap<Place, BTreeSet<Arc<str>>>>,
}

/// The carriers of one kind.
#[derive(Clone)]
struct Fleet {
    cache: Informer<Object<Dynamic>>,
    /// `None` until the kind was found.
    client: Option<ObjectClient<Dynamic>>,
    _reported: Arc<Subscription<Object<Dynamic>>>,
}

/// The check that the kinds of all carriers are known or dormant.
pub(crate) struct Health(Carriers);

impl Carriers {
    pub(crate) fn new(context: &Context, shipments: WorkQueue<Arc<str>>) -> Self {
        let (fleets, named) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner { context: context.clone(), shipments, fleets, named }))
    }

    /// Loads the shipment's parcel; false when its carrier is not there.
    pub(crate) async fn load(&self, shipment: &Object<Shipment>) -> Result<bool, Error> {
        let carrier = &shipment.body.spec.carrier;
        self.remember(carrier, &shipment.metadata.key);
        let parcel = shipment.metadata.name();
        self.change(shipment, |load| drop(load.insert(parcel.to_owned(), Value::Bool(true)))).await
    }

    /// Takes the shipment's parcel off its carrier, if that is there.
    pub(crate) async fn unload(&self, shipment: &Object<Shipment>) -> Result<(), Error> {
        let parcel = shipment.metadata.name();
        self.change(shipment, |load| drop(load.remove(parcel))).await?;
        Ok(())
    }

    pub(crate) fn health(&self) -> Health {
        Health(self.clone())
    }

    /// One line for each kind of carrier, with its state.
    pub(crate) fn page(&self) -> String {
        let fleets = self.0.fleets.lock();
        let lines = fleets.values().map(|fleet| {
            let state = if fleet.cache.is_dormant() { "dormant" } else { "watched" };
            format!("{} {state} {}\n", fleet.cache.name(), fleet.cache.len())
        });
        lines.collect()
    }

    async fn change(
        &self,
        shipment: &Object<Shipment>,
        edit: impl Fn(&mut serde_json::Map<String, Value>),
    ) -> Result<bool, Error> {
        let carrier = &shipment.body.spec.carrier;
        let (cache, Some(client)) = self.fleet(carrier) else { return Ok(false) };
        let key = carrier_key(shipment.metadata.namespace(), carrier);
        let Some(there) = cache.get(&key) else { return Ok(false) };
        let changed = client.change(&there, |_, draft: &mut Draft<Dynamic>| {
            let load = draft.body.entry("spec").or_insert_with(|| json!({}));
            if let Some(spec) = load.as_object_mut()
                && let Some(load) = spec.entry("load").or_insert_with(|| json!({})).as_object_mut()
            {
                edit(load);
            }
        });
        match changed.await {
            Ok(_) => Ok(true),
            Err(Error { why: Why::Gone, .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The cache of a kind, and what writes it once the kind is found.
    fn fleet(
        &self,
        carrier: &Carrier,
    ) -> (Informer<Object<Dynamic>>, Option<ObjectClient<Dynamic>>) {
        let mut fleets = self.0.fleets.lock();
        let kind = (carrier.group.clone(), carrier.kind.clone());
        let fleet = fleets.entry(kind).or_insert_with(|| self.watch(carrier));
        // The kind may come back in another version.
        let resource = fleet.cache.resource();
        if fleet.client.as_ref().map(ObjectClient::resource) != resource.as_ref() {
            fleet.client = resource.map(|resource| self.0.context.objects(resource));
        }
        (fleet.cache.clone(), fleet.client.clone())
    }

    fn watch(&self, carrier: &Carrier) -> Fleet {
        let kind = Kind::named(carrier.group.clone(), carrier.kind.clone());
        let informers = self.0.context.informers.of_any_owner();
        let cache = informers.get_from::<Object<Dynamic>>(informers.source(kind));
        let (inner, carrier) = (Arc::downgrade(&self.0), carrier.clone());
        // Not by `feed`: what was loaded onto a carrier is no news to the shipments that wait for
        // it.
        let reported = cache.subscribe(move |delta| {
            let (Delta::Added(object) | Delta::Deleted(object)) = delta else { return };
            let Some(inner) = inner.upgrade() else { return };
            inner.wake(&carrier, &object.metadata.key);
        });
        Fleet { cache, client: None, _reported: Arc::new(reported) }
    }

    fn remember(&self, carrier: &Carrier, shipment: &Arc<str>) {
        let (namespace, _) = shipment.split_once('/').unwrap_or_default();
        let place = place(carrier, &carrier_key(Some(namespace), carrier));
        self.0.named.lock().entry(place).or_default().insert(Arc::clone(shipment));
    }
}

impl Inner {
    fn wake(&self, carrier: &Carrier, key: &str) {
        let named = self.named.lock();
        for shipment in named.get(&place(carrier, key)).into_iter().flatten() {
            self.shipments.add(Arc::clone(shipment));
        }
    }
}

impl Health {
    pub(crate) fn check(&self) -> Result<(), String> {
        let fleets = self.0.0.fleets.lock();
        let unknown = fleets.values().find(|fleet| {
            fleet.client.is_none() && fleet.cache.resource().is_none() && !fleet.cache.is_dormant()
        });
        unknown.map_or(Ok(()), |fleet| Err(format!("{} is being looked for", fleet.cache.name())))
    }
}

/// A carrier is in the namespace of who names it.
fn carrier_key(namespace: Option<&str>, carrier: &Carrier) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}/{}", carrier.name),
        None => carrier.name.clone(),
    }
}

fn place(carrier: &Carrier, key: &str) -> Place {
    (carrier.group.clone(), carrier.kind.clone(), key.to_owned())
}
