//! A view of metadata of a built-in kind, in one namespace and by label: its requests, its cache, and
//! its events for handlers.

use std::collections::BTreeMap;

use client::Profile;
use http::header::ACCEPT;
use informer::{Format, Informer, InformerMetrics, Server, Source};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_api::{Kind, Metadata, Resource};
use prometheus::Registry;
use serde_json::json;
use tests::control_plane::ADMIN_GROUP;
use tests::poll::eventually;
use tests::{FaultProxy, Match, Wire, cluster};
use tokio_util::sync::CancellationToken;

use crate::scene::clients;

const CONFIG_MAPS: Resource = Resource::namespaced("", "v1", "ConfigMap", "configmaps");
const PATH: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn a_view_of_metadata_asks_for_nothing_else_and_follows_its_selection_only() {
    let cluster = cluster().await;
    for wire in Wire::ALL {
        let proxy = FaultProxy::start_with(wire, &cluster, "admin", &[ADMIN_GROUP]).await;
        let admin = cluster.client().await;
        let [here, elsewhere] = ["default", "kube-system"]
            .map(|space| Api::<ConfigMap>::namespaced(admin.clone(), space));
        for (maps, name, track) in
            [(&here, "a", "yes"), (&here, "b", "no"), (&elsewhere, "c", "yes")]
        {
            maps.create(&PostParams::default(), &config_map(name, track)).await.unwrap();
        }

        let client = clients(proxy.kubeconfig()).await.build(Profile::root("test")).unwrap();
        let mut source = Source::new(Server::own(client), Kind::BuiltIn(CONFIG_MAPS));
        (source.namespace, source.labels) = (Some("default".into()), Some("track=yes".into()));
        let metrics = InformerMetrics::new(&Registry::new(), "test").unwrap();
        let maps = Informer::<Metadata>::new(source, &metrics, Format::default());
        let stop = CancellationToken::new();
        let _stopped = stop.clone().drop_guard();
        let running = maps.clone();
        tokio::spawn(async move { running.run(stop).await });
        maps.synced().await;
        assert_eq!(keys(&maps), ["default/a"], "{wire:?}");

        label(&here, "b", "yes").await;
        eventually("what is labelled comes", || keys(&maps) == ["default/a", "default/b"]).await;
        label(&here, "a", "no").await;
        eventually("what is labelled no more goes", || keys(&maps) == ["default/b"]).await;
        here.delete("b", &DeleteParams::default()).await.unwrap();
        eventually("what is deleted goes", || maps.is_empty()).await;

        let asked = proxy.requests_like(&Match::any().path(PATH));
        assert!(!asked.is_empty());
        for seen in asked {
            let accept = seen.request.headers[ACCEPT].to_str().unwrap();
            assert!(accept.contains("as=PartialObjectMetadata"), "{wire:?}: {accept}");
        }
        here.delete("a", &DeleteParams::default()).await.unwrap();
        elsewhere.delete("c", &DeleteParams::default()).await.unwrap();
    }
}

fn config_map(name: &str, track: &str) -> ConfigMap {
    let labels = BTreeMap::from([("track".to_owned(), track.to_owned())]);
    let data = BTreeMap::from([("file".to_owned(), "x".repeat(10_000))]);
    let metadata =
        ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
    ConfigMap { metadata, data: Some(data), ..ConfigMap::default() }
}

async fn label(maps: &Api<ConfigMap>, name: &str, track: &str) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"track": track}}}));
    maps.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

fn keys(maps: &Informer<Metadata>) -> Vec<String> {
    let mut keys: Vec<_> = maps.frozen(|store| store.keys().map(ToString::to_string).collect());
    keys.sort();
    keys
}
