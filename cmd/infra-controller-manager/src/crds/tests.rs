use std::time::Duration;

use api_server_double::{ApiServer, Asked, Reply};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::RELEASE;
use super::*;
use crate::build;
use informer::MANAGED_BY;

const MACHINES: &str = "machines.platform.tkestack.io";
const KUBEFED: &str = "kubefedclusters.core.kubefed.io";

#[test]
fn every_manifest_of_config_crd_is_installed_and_labelled() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/crd");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), manifests().count());
    for manifest in manifests() {
        let fields: Value = serde_saphyr::from_str(manifest).unwrap();
        assert_eq!(fields["metadata"]["labels"][MANAGED_BY], build::PRODUCT);
        assert_eq!(fields["metadata"]["annotations"][RELEASE], build::INFO.version);
        assert!(fields["spec"]["versions"][0]["schema"].is_object());
    }
}

fn name(asked: &Asked) -> &str {
    asked.path().rsplit('/').next().unwrap()
}

/// The labels that these flags ask for.
fn labels(args: &[&str]) -> Vec<CrdLabel> {
    crate::check_command::tests::settings(args).crd_labels
}

/// Answers of an API server that has no CRD and no aggregated API, and takes what is applied.
fn empty_cluster(asked: &Asked) -> Reply {
    if asked.method() == "PATCH" {
        return Reply::Json(201, stored(asked.json()));
    }
    let kind = asked.path().rsplit('/').nth(1).unwrap();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "details": {"name": name(asked), "kind": kind},
    });
    Reply::Json(404, status)
}

fn stored(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("u1");
    object["metadata"]["resourceVersion"] = json!("7");
    object
}

fn applied(server: &ApiServer) -> Vec<String> {
    let asked = server.asked();
    let applied = asked.iter().filter(|asked| asked.method() == "PATCH");
    applied.map(|asked| name(asked).to_owned()).collect()
}

/// rule:no-release-with-open-writes
#[tokio::test(start_paused = true)]
async fn at_a_stop_the_answer_of_an_apply_under_way_is_awaited_and_nothing_more_is_sent() {
    const ANSWER: Duration = Duration::from_secs(2);
    let server = ApiServer::new(|asked| {
        if asked.method() != "PATCH" && name(asked) == KUBEFED {
            return Reply::Silence;
        }
        let reply = empty_cluster(asked);
        if asked.method() != "PATCH" {
            return reply;
        }
        Reply::Later(Box::pin(async {
            sleep(ANSWER).await;
            reply
        }))
    });
    let installing = Installing::start(server.client(), labels(&[]));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(applied(&server).len(), manifests().count() - 1);
    installing.stop().await;
    let last = server.asked().last().unwrap().at;
    assert_eq!(last.elapsed(), ANSWER, "and no longer");
}

/// rule:no-release-with-open-writes
#[tokio::test(start_paused = true)]
async fn at_a_stop_an_apply_that_is_cut_off_is_waited_for_as_long_as_the_server_may_carry_it_out() {
    let server = ApiServer::new(|asked| {
        if asked.method() == "PATCH" { Reply::Silence } else { empty_cluster(asked) }
    });
    let installing = Installing::start(server.client(), labels(&[]));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(applied(&server).len(), manifests().count());
    let began = Instant::now();
    installing.stop().await;
    assert_eq!(began.elapsed(), ATTEMPT + applicable_for(ATTEMPT));
}

/// rule:no-release-with-open-writes
#[tokio::test(start_paused = true)]
async fn at_a_stop_an_apply_of_unknown_outcome_is_waited_for() {
    let server = ApiServer::new(|asked| {
        if asked.method() == "PATCH" { Reply::Refused } else { empty_cluster(asked) }
    });
    let installing = Installing::start(server.client(), labels(&[]));
    sleep(Duration::from_millis(1)).await;
    let began = Instant::now();
    installing.stop().await;
    assert!(began.elapsed() > ATTEMPT, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_crd_that_cannot_be_installed_holds_up_no_other() {
    let server = ApiServer::new(|asked| {
        if asked.method() == "PATCH" && name(asked) == KUBEFED {
            return Reply::failure(403, "Forbidden");
        }
        empty_cluster(asked)
    });
    let installing = Installing::start(server.client(), labels(&[]));
    sleep(Duration::from_secs(600)).await;
    let applied = applied(&server);
    let [mut tries, mut others] = [0; 2];
    for crd in &applied {
        if crd == KUBEFED { tries += 1 } else { others += 1 }
    }
    assert_eq!(others, manifests().count() - 1, "{applied:?}");
    assert!(tries > 5, "it is tried again: {applied:?}");
    installing.stop().await;
}

/// rule:crds-of-others-are-not-touched
#[tokio::test(start_paused = true)]
async fn the_crd_of_a_newer_release_is_left_alone_and_that_of_an_older_one_is_updated() {
    let server = ApiServer::new(|asked| {
        let release = match name(asked) {
            MACHINES => "999.0.0",
            KUBEFED => "0.0.1",
            _ => return empty_cluster(asked),
        };
        if asked.method() == "PATCH" {
            return empty_cluster(asked);
        }
        Reply::Json(
            200,
            stored(json!({
                "metadata": {
                    "name": name(asked),
                    "labels": {MANAGED_BY: build::PRODUCT},
                    "annotations": {RELEASE: release},
                },
                "spec": {},
            })),
        )
    });
    let mut installing = Installing::start(server.client(), labels(&[]));
    assert!(installing.ended().await);
    let mut applied = applied(&server);
    applied.sort();
    assert_eq!(applied.len(), manifests().count() - 1);
    assert!(!applied.iter().any(|crd| crd == MACHINES), "{applied:?}");
    for asked in server.asked().iter().filter(|asked| asked.method() == "PATCH") {
        assert_eq!(asked.json()["metadata"]["annotations"][RELEASE], build::INFO.version);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crd_gets_the_label_that_a_flag_asks_for_and_loses_the_one_that_it_excludes() {
    const AWS_CLUSTERS: &str = "awsclusters.infrastructure.cluster.x-k8s.io";
    let labels = labels(&["--infra-contract=v1beta1"]);
    let [CrdLabel { key: older, other: newer, .. }] = labels.clone().try_into().unwrap();
    let (others, last) = (newer.clone(), std::sync::Mutex::new(Value::Null));
    let server = ApiServer::new(move |asked| {
        if asked.method() != "PATCH" || name(asked) != AWS_CLUSTERS {
            return empty_cluster(asked);
        }
        let mut last = last.lock().unwrap();
        if last.is_null() {
            *last = stored(asked.json());
            // Somebody else has put it there, so that the apply leaves it.
            last["metadata"]["labels"][&others] = json!("v1beta2");
        }
        Reply::Json(200, last.clone())
    });
    let mut installing = Installing::start(server.client(), labels);
    assert!(installing.ended().await);
    let asked = server.asked();
    let of_it = |asked: &&Asked| asked.method() == "PATCH" && name(asked) == AWS_CLUSTERS;
    let written: Vec<_> = asked.iter().filter(of_it).map(Asked::json).collect();
    assert_eq!(written.len(), 2, "{written:?}");
    assert_eq!(written[0]["metadata"]["labels"][&older], "v1beta2");
    assert_eq!(written[0]["metadata"]["labels"].get(&newer), None);
    assert_eq!(written[1]["metadata"]["labels"], json!({&newer: null}));
    assert_eq!(
        asked.iter().filter(|asked| asked.method() == "PATCH").count(),
        manifests().count() + 1
    );
}

const CLUSTERS: &str = "clusters.cluster.x-k8s.io";

/// A server on which objects of Clusters are stored in two versions. It pages, and one object is
/// changed after the list.
fn stored_in_two_versions(asked: &Asked) -> Reply {
    let old = || {
        stored(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": CLUSTERS, "labels": {MANAGED_BY: build::PRODUCT}},
            "spec": {
                "group": "cluster.x-k8s.io", "scope": "Namespaced",
                "names": {"kind": "Cluster", "plural": "clusters"},
                "versions": [{"name": "v1alpha2"}, {"name": "v1beta2", "storage": true}],
            },
            "status": {"storedVersions": ["v1alpha2", "v1beta2"]},
        }))
    };
    let item = |name: &str| json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "5"}});
    let list = |item: Value, token: &str| {
        Reply::Json(200, json!({"metadata": {"continue": token}, "items": [item]}))
    };
    let path = asked.path();
    match (asked.method().as_str(), path) {
        (_, path) if path.ends_with(&format!("{CLUSTERS}/status")) => Reply::Json(200, old()),
        (_, path) if path.ends_with(CLUSTERS) => Reply::Json(200, old()),
        ("GET", "/apis/cluster.x-k8s.io/v1beta2/clusters") => {
            if asked.query().contains("continue=more") {
                list(item("b"), "")
            } else {
                list(item("a"), "more")
            }
        }
        ("PATCH", path) if path.ends_with("/clusters/a") => Reply::failure(409, "Conflict"),
        ("PATCH", path) if path.ends_with("/clusters/b") => Reply::Json(200, stored(item("b"))),
        _ => empty_cluster(asked),
    }
}

#[tokio::test(start_paused = true)]
async fn objects_of_an_older_version_are_stored_again_unchanged_before_the_crd_names_one_version() {
    let server = ApiServer::new(stored_in_two_versions);
    let mut installing = Installing::start(server.client(), labels(&[]));
    assert!(installing.ended().await);
    let asked = server.asked();
    let of_clusters = asked.iter().filter(|asked| asked.path().contains("clusters"));
    let written: Vec<_> = of_clusters
        .filter(|asked| {
            asked.method() == "PATCH" && asked.path().contains("/ns/")
                || asked.path().ends_with("/status")
        })
        .map(|asked| (name(asked).to_owned(), asked.json()))
        .collect();
    let same = |name: &str| json!({"metadata": {"uid": name, "resourceVersion": "5"}});
    let crd = json!({"status": {"storedVersions": ["v1beta2"]},
        "metadata": {"uid": "u1", "resourceVersion": "7"}});
    let expected = [("a", same("a")), ("b", same("b")), ("status", crd)];
    assert_eq!(written, expected.map(|(name, body)| (name.to_owned(), body)));
}

#[tokio::test(start_paused = true)]
async fn a_crd_whose_objects_cannot_all_be_stored_again_keeps_its_versions() {
    let server = ApiServer::new(|asked| {
        if asked.method() == "PATCH" && asked.path().ends_with("/clusters/b") {
            return Reply::failure(422, "Invalid");
        }
        stored_in_two_versions(asked)
    });
    let installing = Installing::start(server.client(), labels(&[]));
    sleep(Duration::from_secs(60)).await;
    assert!(!server.asked().iter().any(|asked| asked.path().ends_with("/status")));
    installing.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_crd_with_objects_in_versions_that_are_not_served_is_left() {
    let server = ApiServer::new(|asked| {
        let Reply::Json(status, mut crd) = stored_in_two_versions(asked) else {
            return stored_in_two_versions(asked);
        };
        if name(asked) == CLUSTERS {
            crd["status"]["storedVersions"] = json!(["v1alpha3", "v1beta1"]);
        }
        Reply::Json(status, crd)
    });
    let mut installing = Installing::start(server.client(), labels(&[]));
    assert!(installing.ended().await);
    assert!(!applied(&server).iter().any(|crd| crd == CLUSTERS));
}
