//! Credentials that come, go and change, and those that may not be read.

use std::net::TcpListener;
use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::sync::Notify;

use super::*;

#[tokio::test]
async fn a_credential_that_was_touched_keeps_the_client_and_another_one_what_was_learnt() {
    let bench = Bench::start(&[]).await;
    // Whoever listens there by now is no API server.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let both = [("127.0.0.1", port), ("127.0.0.2", port)];
    let object = read(&sent(&both, |_| {}));
    let first = bench.client(&object).await;
    bench.pipeline.flavour.prober.look_around(&first, S(5)).await;
    assert_eq!(first.endpoints().down, 1);
    let touched = bench.client(&object).await;
    assert!(Arc::ptr_eq(&first, &touched), "the engine keeps it as well");
    bench.credentials.rotations.store(1, Ordering::Relaxed);
    let rotated = bench.client(&object).await;
    assert_ne!(first.fingerprint(), rotated.fingerprint());
    assert_eq!(rotated.endpoints(), first.endpoints());
    let others = read(&sent(&[both[1], both[0]], |_| {}));
    assert_eq!(bench.client(&others).await.endpoints().down, 0, "nothing is known of these");
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_credential_that_a_cluster_names_is_used_when_it_comes_and_when_it_comes_back() {
    let object = sent(&[("10.0.0.1", 6443)], |it| {
        it["spec"]["clusterCredentialRef"] = json!({"name": "cc-1"});
    });
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    let (cluster, credential) = (Work::Cluster("cls-1".into()), Work::Credential("cc-1".into()));
    for version in [9, 11] {
        bench.credentials.absent.store(true, Ordering::Relaxed);
        bench.look(&cluster).await;
        assert_eq!(bench.connection(&object), None);
        bench.credentials.absent.store(false, Ordering::Relaxed);
        bench.credentials.rotations.store(version, Ordering::Relaxed);
        bench.touch(version as u64, true).await;
        bench.look(&credential).await;
        bench.look(&cluster).await;
        assert!(bench.connection(&object).is_some());
        let asked = bench.management.asked().len();
        bench.look(&cluster).await;
        assert_eq!(bench.management.asked().len(), asked, "nothing changed");
        bench.touch(version as u64 + 1, false).await;
    }
}

/// rule:a-credential-goes-where-its-owner-sent-it
#[tokio::test(start_paused = true)]
async fn a_credential_of_another_cluster_or_tenant_is_not_used_whether_it_is_named_or_not() {
    let named = sent(&[("10.0.0.1", 6443)], |it| {
        it["spec"]["clusterCredentialRef"] = json!({"name": "cc-1"});
    });
    for object in [sent(&[("10.0.0.1", 6443)], |_| {}), named] {
        let (bench, read) = (Bench::start(&[&object]).await, read(&object));
        let cluster = Work::Cluster("cls-1".into());
        for (of, tenant, is_used) in [
            ("cls-2", "t", false),
            ("cls-1", "other", false),
            ("cls-1", "", false),
            ("cls-1", "t", true),
        ] {
            of.clone_into(&mut bench.credentials.of.lock());
            tenant.clone_into(&mut bench.credentials.tenant.lock());
            bench.pipeline.flavour.details.connections.invalidate(&read.metadata.key);
            bench.look(&cluster).await;
            assert_eq!(bench.connection(&read).is_some(), is_used, "{of} {tenant}");
        }
    }
}

/// rule:a-credential-goes-where-its-owner-sent-it
#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_to_be_of_another_tenant_loses_its_credential() {
    let mut object = sent(&[("10.0.0.1", 6443)], |_| {});
    let (bench, first) = (Bench::start(&[&object]).await, read(&object));
    bench.look(&Work::Cluster("cls-1".into())).await;
    assert!(bench.connection(&first).is_some());
    object["spec"]["tenantID"] = json!("other");
    object["metadata"]["resourceVersion"] = json!("8");
    let second = bench.change(&object).await;
    assert_eq!(bench.connection(&second), None);
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_credential_that_comes_while_it_is_looked_for_is_used() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    bench.credentials.absent.store(true, Ordering::Relaxed);
    bench
        .look_while(async || {
            bench.credentials.absent.store(false, Ordering::Relaxed);
            bench.look(&Work::Credential("cc-1".into())).await;
        })
        .await;
    assert_eq!(bench.connection(&object), None, "what was read is older");
    bench.look(&Work::Cluster("cls-1".into())).await;
    assert!(bench.connection(&object).is_some());
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_credential_that_is_rotated_while_it_is_read_is_read_again() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    let (bench, object) = (Bench::start(&[&object]).await, read(&object));
    bench.credentials.rotations.store(9, Ordering::Relaxed);
    bench
        .look_while(async || {
            bench.credentials.rotations.store(10, Ordering::Relaxed);
            bench.touch(10, true).await;
        })
        .await;
    let first = bench.connection(&object);
    bench.look(&Work::Cluster("cls-1".into())).await;
    let second = bench.connection(&object);
    assert!(first.is_some() && second.is_some() && first != second);
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_credential_that_is_used_by_name_is_looked_at_for_the_cluster_that_it_is_for() {
    let named = sent(&[("10.0.0.1", 6443)], |it| {
        it["spec"]["clusterCredentialRef"] = json!({"name": "cc-1"});
    });
    let meant = sent(&[("10.0.0.2", 6443)], |it| {
        it["metadata"] = json!({"name": "cls-2", "uid": "u2", "resourceVersion": "7"});
    });
    let (bench, meant) = (Bench::start(&[&named, &meant]).await, read(&meant));
    "cls-2".clone_into(&mut bench.credentials.of.lock());
    bench.credentials.absent.store(true, Ordering::Relaxed);
    let clusters = [Work::Cluster("cls-1".into()), Work::Cluster("cls-2".into())];
    for cluster in &clusters {
        bench.look(cluster).await;
    }
    bench.credentials.absent.store(false, Ordering::Relaxed);
    bench.look(&Work::Credential("cc-1".into())).await;
    bench.look(&clusters[1]).await;
    assert!(bench.connection(&meant).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_may_not_be_read_ends_its_client_and_is_read_when_it_may_be() {
    for in_secret in [false, true] {
        let object = sent(&[("10.0.0.1", 6443)], |_| {});
        let (bench, object) = (Bench::start(&[&object]).await, read(&object));
        let (cluster, credentials) = (Work::Cluster("cls-1".into()), &bench.credentials);
        credentials.in_secret.store(in_secret, Ordering::Relaxed);
        bench.look(&cluster).await;
        assert!(bench.connection(&object).is_some());
        let forbidden =
            if in_secret { &credentials.secrets_forbidden } else { &credentials.forbidden };
        forbidden.store(true, Ordering::Relaxed);
        credentials.rotations.store(9, Ordering::Relaxed);
        bench.touch(9, true).await;
        assert!(bench.pipeline.reconcile(&cluster).await.is_err(), "it is retried");
        assert_eq!(bench.connection(&object), None);
        // No object changes when a right is granted.
        forbidden.store(false, Ordering::Relaxed);
        bench.look(&cluster).await;
        assert!(bench.connection(&object).is_some());
    }
}

/// rule:what-changes-while-it-is-read-is-read-again
#[tokio::test(start_paused = true)]
async fn a_secret_that_changes_before_anybody_knows_who_uses_it_is_looked_at_again() {
    let object = sent(&[("10.0.0.1", 6443)], |_| {});
    for changes in [false, true] {
        let bench = Bench::start(&[&object]).await;
        bench.credentials.in_secret.store(true, Ordering::Relaxed);
        // The bench has one cache for both kinds of credentials.
        let secret = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"namespace": "ns", "name": "s", "uid": "s", "resourceVersion": "20"},
        });
        let (held, asked) = (Arc::new(Notify::new()), bench.management.asked().len());
        *bench.credentials.held.lock() = Some(Arc::clone(&held));
        let meanwhile = async {
            bench.management.until_asked(asked + 1).await;
            held.notify_one();
            let asked = bench.management.until_asked(asked + 2).await;
            assert!(asked.last().unwrap().path().contains("/secrets/"));
            *bench.credentials.held.lock() = None;
            if changes {
                bench.touched.send(json!({"type": "ADDED", "object": secret})).unwrap();
                let credentials = bench.metadata();
                bench::until(credentials, || credentials.get("ns/s").is_some()).await;
            }
            held.notify_one();
        };
        let cluster = Work::Cluster("cls-1".into());
        tokio::join!(bench.look(&cluster), meanwhile);
        let mut queued = Vec::new();
        while !bench.pipeline.queue.is_empty() {
            queued.push((*bench.pipeline.queue.next().await.unwrap()).clone());
        }
        assert_eq!(queued.contains(&cluster), changes, "{queued:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reference_that_is_no_name_has_nothing_read() {
    let object = sent(&[("10.0.0.1", 6443)], |it| {
        it["spec"]["clusterCredentialRef"] = json!({"name": "../namespaces/x/secrets/y"});
    });
    let bench = Bench::start(&[&object]).await;
    bench.look(&Work::Cluster("cls-1".into())).await;
    assert_eq!(bench.connection(&read(&object)), None);
    assert!(bench.management.asked().is_empty());
}
