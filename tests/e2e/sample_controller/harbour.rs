//! The contents of the store, and the users who change it while the controller runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt as _, stream};
use objects::{Draft, Dynamic, Object, ObjectClient, Why};
use sample::{PARCELS, SHIPMENTS, VANS};
use serde_json::{Value, json};
use tests::PATIENCE;
use tokio::time::{Instant, sleep};

use crate::scene::Scene;

/// Requests of the test at once.
const AT_ONCE: usize = 16;
const USERS: [&str; 2] = ["ann", "bob"];
/// Between two looks at the whole store, at least.
const LOOK: Duration = Duration::from_secs(1);

/// The names of so many shipments, from `first` on.
pub(crate) fn shipments(first: usize, count: usize) -> impl Iterator<Item = String> {
    (first..first + count).map(|number| format!("s{number:04}"))
}

/// Makes the vans that so many shipments name.
pub(crate) async fn make_vans(scene: &Scene, vans: usize) {
    let client = scene.objects::<Dynamic>(&VANS);
    for van in 0..vans {
        client.create(&format!("default/van-{van}"), &draft(json!({"wheels": 4}))).await.unwrap();
    }
}

/// Makes shipments, spread over the vans, with a field that the controller does not know.
pub(crate) async fn make_shipments(scene: &Scene, first: usize, count: usize, vans: usize) {
    let client = scene.objects::<Dynamic>(&SHIPMENTS);
    let made = stream::iter(shipments(first, count).enumerate()).map(async |(number, name)| {
        let carrier =
            json!({"group": VANS.group, "kind": VANS.kind, "name": format!("van-{}", number % vans)});
        let spec = json!({"items": [{"name": "first"}], "carrier": carrier, "insured": true});
        client.create(&format!("default/{name}"), &draft(spec)).await.unwrap();
    });
    made.buffer_unordered(AT_ONCE).collect::<()>().await;
}

fn draft(spec: Value) -> Draft<Dynamic> {
    Draft::new(json!({ "spec": spec }).as_object().unwrap().clone())
}

/// Two users add an item and an annotation to the first shipments, both at once and from the same
/// copy.
pub(crate) async fn change_all(client: &ObjectClient<Dynamic>, count: usize) {
    for name in shipments(0, count) {
        let shipment = client.read(&format!("default/{name}")).await.unwrap().unwrap();
        join_all(USERS.map(|user| add_item(client, &shipment, user))).await;
    }
}

async fn add_item(client: &ObjectClient<Dynamic>, shipment: &Arc<Object<Dynamic>>, user: &str) {
    let change = |_: &Object<Dynamic>, draft: &mut Draft<Dynamic>| {
        draft.metadata.annotations.insert(user.to_owned(), "was-here".to_owned());
        let items = draft.body["spec"]["items"].as_array_mut().unwrap();
        if items.iter().all(|item| item["name"] != user) {
            items.push(json!({"name": user, "fragile": true}));
        }
    };
    // Who meets others five times in a row tries again.
    while let Err(error) = client.change(shipment, change).await {
        assert!(matches!(error.why, Why::Conflict { .. }), "{error}");
    }
}

/// The contents of the store.
pub(crate) struct Harbour {
    pub(crate) shipments: BTreeMap<String, Value>,
    parcels: BTreeMap<String, Value>,
    /// Names of the parcels on all vans.
    loaded: BTreeSet<String>,
}

impl Harbour {
    pub(crate) async fn now(scene: &Scene) -> Self {
        let by_name = async |resource: &kube_api::Resource| {
            let objects = scene.list(&resource.collection_path(None)).await.unwrap_or_default();
            objects
                .into_iter()
                .map(|object| (object["metadata"]["name"].as_str().unwrap().to_owned(), object))
                .collect::<BTreeMap<_, _>>()
        };
        let vans = by_name(&VANS).await;
        let loads = vans.values().filter_map(|van| van["spec"]["load"].as_object());
        Self {
            shipments: by_name(&SHIPMENTS).await,
            parcels: by_name(&PARCELS).await,
            loaded: loads.flat_map(|load| load.keys().cloned()).collect(),
        }
    }

    /// Waits until it is so; what is in the store then, and how long it took. Fails when nothing
    /// comes nearer to it for [`PATIENCE`].
    pub(crate) async fn until(
        scene: &Scene,
        what: &str,
        is_so: impl Fn(&Self) -> bool,
    ) -> (Self, Duration) {
        let began = Instant::now();
        let (mut seen, mut moved) = ([0; 5], began);
        loop {
            let looked = Instant::now();
            let now = Self::now(scene).await;
            if is_so(&now) {
                return (now, began.elapsed());
            }
            if now.counts() != seen {
                (seen, moved) = (now.counts(), Instant::now());
            }
            let [shipments, shipped, stranded, parcels, loaded] = seen;
            assert!(
                moved.elapsed() < PATIENCE,
                "no change for {PATIENCE:?}, and not yet: {what}; {shipments} shipments, {shipped} \
                 shipped, {stranded} stranded, {parcels} parcels, {loaded} loaded",
            );
            // Lists of everything keep others from the processors.
            sleep((looked.elapsed() * 4).max(LOOK)).await;
        }
    }

    fn counts(&self) -> [usize; 5] {
        let (shipped, stranded) = (self.in_phase("Loaded"), self.in_phase("NoCarrier"));
        [self.shipments.len(), shipped, stranded, self.parcels.len(), self.loaded.len()]
    }

    /// Number of shipments in this phase.
    pub(crate) fn in_phase(&self, phase: &str) -> usize {
        self.shipments.values().filter(|shipment| shipment["status"]["phase"] == phase).count()
    }

    /// Whether `count` shipments exist, all packed with all items, and each with one sealed parcel
    /// on a van.
    pub(crate) fn all_shipped(&self, count: usize) -> bool {
        let packed = |shipment: &Value| {
            let items = shipment["spec"]["items"].as_array().unwrap();
            let packed = &shipment["status"]["packed"];
            items.iter().all(|item| packed[item["name"].as_str().unwrap()] == true)
        };
        let sealed = |parcel: &Value| parcel["status"]["sealed"] == true;
        self.shipments.len() == count
            && self.in_phase("Loaded") == count
            && self.shipments.values().all(packed)
            && self.parcels.len() == count
            && self.parcels.values().all(sealed)
            && self.loaded.len() == count
    }

    /// Whether no object of any shipment is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.shipments.is_empty() && self.parcels.is_empty() && self.loaded.is_empty()
    }

    /// What users wrote is there, in the first `changed` also what they wrote later; owners and
    /// finalizers are as the controller set them.
    pub(crate) fn assert_nothing_lost(&self, changed: usize) {
        for name in shipments(0, changed) {
            let shipment = &self.shipments[&name];
            for user in USERS {
                assert_eq!(shipment["metadata"]["annotations"][user], "was-here", "{name}");
                let items = shipment["spec"]["items"].as_array().unwrap();
                let item = json!({"name": user, "fragile": true});
                assert!(items.contains(&item), "{name}: {items:?}");
            }
        }
        for (name, shipment) in &self.shipments {
            let (metadata, spec) = (&shipment["metadata"], &shipment["spec"]);
            assert_eq!(spec["insured"], true, "{name}");
            assert_eq!(metadata["finalizers"], json!([sample::FINALIZER]), "{name}");
            let owner = &self.parcels[name]["metadata"]["ownerReferences"];
            assert_eq!(owner.as_array().unwrap().len(), 1, "{name}");
            assert_eq!(owner[0]["uid"], metadata["uid"], "{name}");
        }
    }
}
