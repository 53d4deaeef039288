//! The sample as the manager sees it: its name, its rights, and one run.

use std::sync::Arc;

use flags::{Problem, Spec, Values};
use futures::future::BoxFuture;
use futures::try_join;
use kube_api::Kind;
use manager::{Configured, Context, Controller, Failure, Permission, Runner, Stopped};
use objects::Object;
use serving::{Access, Endpoints, Page, reply};

use crate::carriers::Carriers;
use crate::metrics::{Memory, SampleMetrics};
use crate::parcels::Parcels;
use crate::shipments::Shipments;
use crate::{BACKOFF, BOMB, MADE_BY, NAME, PAGE, PARCELS, Parcel, SHIPMENTS, Shipment};

/// Handled at once, of each kind.
const WORKERS: usize = 8;
const GROUP: &str = "sample.example.org";

/// The sample controller, for the host.
#[derive(Debug)]
pub struct Sample;

impl Controller for Sample {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["sample"]
    }

    fn flags(&self) -> &'static [Spec] {
        &[]
    }

    fn configure(&self, _: &Values) -> Result<Configured, Vec<Problem>> {
        Ok(Configured::run(Shipping))
    }
}

struct Shipping;

impl Runner for Shipping {
    fn service_account(&self) -> &'static str {
        NAME
    }

    fn permissions(&self) -> &'static [Permission] {
        static NEEDED: [Permission; 4] = [
            Permission::new("patch", GROUP, "shipments").in_namespace("default"),
            Permission::new("patch", GROUP, "shipments").subresource("status"),
            Permission::new("create", GROUP, "parcels"),
            Permission::new("delete", GROUP, "parcels"),
        ];
        &NEEDED
    }

    fn event_component(&self) -> &'static str {
        NAME
    }

    fn run(self: Arc<Self>, context: Context) -> BoxFuture<'static, Result<Stopped, Failure>> {
        Box::pin(async move { self.ship(context).await })
    }
}

impl Shipping {
    async fn ship(&self, context: Context) -> Result<Stopped, Failure> {
        let metrics = context.metrics(SampleMetrics::new)?;
        let informers = &context.informers;
        let mut source = informers.source(Kind::Custom(SHIPMENTS));
        source.namespace = Some("default".into());
        let shipments = informers.get_from::<Object<Shipment>>(source);
        let mut source = informers.source(Kind::Custom(PARCELS));
        source.labels = Some(format!("{MADE_BY}={NAME}").into());
        let parcels = informers.get_from::<Object<Parcel>>(source);

        let status = context.clients.for_purpose("sample-status", context.settings.work_rate)?;
        let shipment_client = context.objects(SHIPMENTS);
        let parcel_client = context.objects(PARCELS);
        let shipping = context.queue::<Arc<str>>("shipments", BACKOFF);
        let sealing = context.queue::<Arc<str>>("parcels", BACKOFF);
        let carriers = Carriers::new(&context, shipping.clone());

        let health = carriers.health();
        context.health.add("sample-controller-carriers", Endpoints::READY, move || health.check());
        let shown = carriers.clone();
        context.pages.add(Page::new(PAGE, Access::Authorized, move |_| {
            let page = shown.page();
            async move { reply::text(http::StatusCode::OK, page) }
        }));

        let shipping = context
            .run(
                &shipping,
                Arc::new(Shipments {
                    cache: shipments.clone(),
                    parcels: parcels.clone(),
                    status_client: shipment_client.through(status),
                    client: shipment_client.clone(),
                    parcel_client: parcel_client.clone(),
                    carriers,
                    recorder: context.recorder.clone(),
                    memory: Memory::new(metrics.clone()),
                }),
            )
            .workers(WORKERS)
            .feed(&shipments, |shipment| {
                let items = &shipment.body.spec.items;
                assert!(items.iter().all(|item| item.name != BOMB), "a bomb went off");
                Some(Arc::clone(&shipment.metadata.key))
            })
            .reads_own_writes(&shipments, shipment_client.own_writes())
            // The parcel of a shipment has its key.
            .reads_own_writes(&parcels, parcel_client.own_writes())
            .until_stopped();
        let sealing = context
            .run(
                &sealing,
                Arc::new(Parcels {
                    cache: parcels.clone(),
                    client: parcel_client.clone(),
                    memory: Memory::new(metrics),
                }),
            )
            .workers(WORKERS)
            .feed(&parcels, |parcel| Some(Arc::clone(&parcel.metadata.key)))
            .reads_own_writes(&parcels, parcel_client.own_writes())
            .until_stopped();
        try_join!(shipping, sealing)?;
        Ok(Stopped::default())
    }
}
