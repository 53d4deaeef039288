//! [`KubeFedResolver`]: the Secret of a member, and the client that is made of it.

use std::sync::Arc;

use health::Code;
use informer::Informer;
use kube_api::Metadata;
use objects::Object;
use probe::{Inputs, Problem};
use workqueue::Retry;

use super::access;
use super::flavour::{KnownMember, KubeFed};
use crate::api::kubefed::KubeFedCluster;
use crate::engine::{
    Cluster, ClusterProber, Misconfigured, Resolve, Resolved, Supervision, identity,
};
use crate::member::{ClientProber, NewestClient, ReadInputs};
use crate::secret_data::{ReadError, SecretData};

/// Reads Secrets of members.
pub(super) struct KubeFedResolver {
    pub(super) flavour: Arc<KubeFed>,
    pub(super) secrets: Informer<Metadata>,
    /// Reads Secrets.
    pub(super) client: kube::Client,
}

impl Resolve for KubeFedResolver {
    type Model = KubeFed;

    async fn resolve(
        &self,
        cluster: &Cluster,
        object: &Arc<Object<KubeFedCluster>>,
        _: Supervision,
    ) -> Result<Resolved, Retry> {
        let secret_key = access::secret_key(object);
        // Before the Secret is looked at: a change from here on brings the key back.
        self.flavour.secrets_of.set(cluster, secret_key.as_deref());
        let secret = secret_key.as_ref().and_then(|key| self.secrets.get(key));
        let version = secret.map(|secret| (Arc::clone(&secret.uid), secret.resource_version));
        let (known, failure) =
            self.member(Arc::clone(object), version, secret_key.as_deref()).await?;
        let prober = Arc::clone(&known.prober);
        let resolved = Resolved {
            addresses: vec![access::endpoint(object).into()],
            inputs: known.inputs,
            prober: Box::new(move || prober),
            held_back: None,
            was_held_back: false,
            retry: failure.map(Retry::new),
        };
        self.flavour.remember(&cluster.uid, known);
        Ok(resolved)
    }
}

impl KubeFedResolver {
    /// The member with its prober, and the error for which its Secret is read again. A member that
    /// the engine knows keeps its prober while the error says nothing about the Secret.
    async fn member(
        &self,
        object: Arc<Object<KubeFedCluster>>,
        version: Option<(Arc<str>, u64)>,
        secret_key: Option<&str>,
    ) -> Result<(KnownMember, Option<ReadError>), ReadError> {
        let before = self.flavour.known(&object.metadata.uid);
        if let Some(before) = &before
            && before.object.body.spec == object.body.spec
            && before.secret == version
        {
            return Ok((KnownMember { object, ..before.clone() }, None));
        }
        // rule:a-missing-right-is-no-failure
        let secrets = &self.secrets;
        let denied = secrets.denied().filter(|_| secret_key.is_some() && !secrets.is_synced());
        if let Some(why) = denied {
            let inputs = Err(Problem::new(Code::OwnLimit, why));
            return Ok((self.with_prober(object, version, inputs, before), None));
        }
        let (inputs, failure) = match secret_key.filter(|_| version.is_some()) {
            None => (access::inputs(&object, None, self.flavour.allow_plaintext), None),
            Some(key) => match SecretData::read(&self.client, key).await {
                Ok(data) => {
                    (access::inputs(&object, data.as_ref(), self.flavour.allow_plaintext), None)
                }
                Err(error) if before.is_some() && !error.ends_the_client() => return Err(error),
                Err(error) => {
                    // rule:a-cluster-is-known-before-its-credential
                    (Err(Problem::new(error.code(), error.to_string())), Some(error))
                }
            },
        };
        // One that could not be read is read again.
        let version = if failure.is_some() { Some((Arc::from(""), 0)) } else { version };
        Ok((self.with_prober(object, version, inputs, before), failure))
    }

    /// The prober in use is kept while it would be made of the same things.
    fn with_prober(
        &self,
        object: Arc<Object<KubeFedCluster>>,
        secret: Option<(Arc<str>, u64)>,
        inputs: Result<Inputs, Problem>,
        before: Option<KnownMember>,
    ) -> KnownMember {
        let hash = match &inputs {
            Ok(inputs) => inputs.fingerprint().number(),
            Err(problem) => health::hash(&problem.to_string()),
        };
        let newest = before.as_ref().map(|before| before.newest.clone()).unwrap_or_default();
        let kept = before.filter(|before| before.inputs == hash).map(|before| before.prober);
        let reread = reread(&self.flavour, self.client.clone(), identity(&object));
        let namespace = object.metadata.namespace().unwrap_or_default();
        let new = || prober(&self.flavour, namespace, inputs, newest.clone(), reread);
        let prober = kept.unwrap_or_else(new);
        KnownMember { object, secret, inputs: hash, prober, newest }
    }
}

/// Reads the Secret of a member as its object names it by then
/// (`rule:a-refused-credential-is-read-once`).
fn reread(flavour: &Arc<KubeFed>, client: kube::Client, cluster: Cluster) -> Box<ReadInputs> {
    let flavour = Arc::downgrade(flavour);
    Box::new(move || {
        let (flavour, client, cluster) = (flavour.clone(), client.clone(), cluster.clone());
        Box::pin(async move {
            let flavour = flavour.upgrade()?;
            let object = flavour.objects.get(&cluster)?;
            let _turn = flavour.rereads.try_acquire().ok()?;
            let data = SecretData::read(&client, &access::secret_key(&object)?).await.ok()??;
            access::inputs(&object, Some(&data), flavour.allow_plaintext).ok()
        })
    })
}

/// `newest` has the client of the member from now on, or none
/// (`rule:a-lost-credential-ends-its-client`).
fn prober(
    flavour: &Arc<KubeFed>,
    namespace: &str,
    inputs: Result<Inputs, Problem>,
    newest: NewestClient,
    reread: Box<ReadInputs>,
) -> Arc<dyn ClusterProber> {
    match inputs.and_then(|inputs| flavour.prober.client(&inputs)) {
        Ok(client) => {
            let metrics = flavour.upstream_metrics.clone();
            let tried = move |attempts: &[probe::Trace]| {
                if let Some(metrics) = &metrics {
                    metrics.connected(attempts);
                }
            };
            let (prober, flavour) = (Arc::clone(&flavour.prober), Arc::downgrade(flavour));
            let namespace: Box<str> = namespace.into();
            let period = move || {
                let policy = flavour.upgrade().map(|flavour| flavour.policy_in(&namespace));
                policy.map(|policy| policy.cadence.period).unwrap_or_default()
            };
            Arc::new(ClientProber::new(prober, client, newest, reread, period, tried))
        }
        Err(problem) => {
            newest.clear();
            let (code, detail) = (problem.code(), problem.to_string().into());
            Arc::new(Misconfigured { code, detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use api_server_double::{ApiServer, Reply};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use health::Status;
    use probe::{Address, ConnectionLimits, Meters, Names, TlsOptions};
    use prometheus::Registry as MetricRegistry;
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::mpsc::unbounded_channel;
    use tokio::time::sleep;
    use workqueue::Reconcile as _;

    use super::*;
    use crate::api::kubefed::KUBEFED_CLUSTERS;
    use crate::engine::tests::scene::Scene;
    use crate::engine::{Pipeline, Registry};
    use crate::kubefed::testing::{policy, sent};
    use crate::options::KubeFedOptions;
    use crate::secret_data::SECRETS;
    use crate::testing::informer;

    fn flavour() -> Arc<KubeFed> {
        let meters = Meters::new(&MetricRegistry::new()).unwrap();
        let members = probe::Prober::new(meters, ConnectionLimits::default(), Names::default());
        let options =
            KubeFedOptions { namespace: None, config: None, policy: policy(), zones: false };
        Arc::new(KubeFed::new(options, false, Arc::new(members), None))
    }

    /// rule:a-cluster-is-known-before-its-credential, rule:unwatched-clusters-become-unknown
    #[tokio::test(start_paused = true)]
    async fn a_member_whose_secret_cannot_be_read_after_a_restart_becomes_unknown() {
        let engine = Scene::new(0);
        let object = sent(|it| {
            it["status"]["conditions"] =
                json!([{"type": "Ready", "status": "True", "reason": "ClusterReady"}]);
        });
        let secret = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": {"namespace": "fed", "name": "one-secret", "uid": "s", "resourceVersion": "5"},
        });
        let ((_changes, told), (_touched, of_secrets)) = (unbounded_channel(), unbounded_channel());
        let clusters = informer(&KUBEFED_CLUSTERS, vec![object], told).await;
        let secrets = informer(&SECRETS, vec![secret], of_secrets).await;
        let flavour = flavour();
        flavour.objects.set(&clusters, Arc::new(|| true));
        let registry = Registry::new(Arc::clone(&flavour) as Arc<_>, Arc::clone(&engine.fleet));
        let refused = Arc::new(AtomicBool::new(true));
        let refuses = Arc::clone(&refused);
        let server = ApiServer::new(move |_| {
            if refuses.load(Ordering::Relaxed) {
                return Reply::failure(500, "InternalError");
            }
            Reply::Json(200, json!({"data": {"token": "aHVudGVyMg=="}}))
        });
        let resolver =
            KubeFedResolver { flavour: Arc::clone(&flavour), secrets, client: server.client() };
        let pipeline = Pipeline::new(Arc::clone(&flavour), resolver, registry.clone(), clusters);
        let (key, id) = (Arc::from("fed/one"), Cluster { uid: "u1".into(), key: "fed/one".into() });
        let client = || flavour.known("u1").and_then(|known| known.newest.client());
        assert!(pipeline.reconcile(&key).await.is_err(), "it is tried again");
        assert_eq!(registry.readiness(&id), Some(Status::True), "as it was published");
        sleep(policy().stale_after() + Duration::from_secs(5)).await;
        assert!(pipeline.reconcile(&key).await.is_err(), "it is tried again");
        assert_eq!(registry.readiness(&id), Some(Status::Unknown));
        refused.store(false, Ordering::Relaxed);
        assert!(pipeline.reconcile(&key).await.is_ok());
        assert!(client().is_some());
    }

    /// A member that answers 200 to this token alone.
    async fn member(token: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 4096];
                let length = stream.read(&mut head).await.unwrap();
                let is_right = String::from_utf8_lossy(&head[..length]).contains(token);
                let status = if is_right { "200 OK" } else { "401 Unauthorized" };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        format!("http://{address}")
    }

    /// rule:a-refused-credential-is-read-once
    #[tokio::test]
    async fn a_token_that_was_rotated_before_the_watch_told_of_it_is_read_and_tried_at_once() {
        let endpoint = member("the-new-token").await;
        let meters = Meters::new(&MetricRegistry::new()).unwrap();
        let members = probe::Prober::new(meters, ConnectionLimits::default(), Names::default());
        let options =
            KubeFedOptions { namespace: None, config: None, policy: policy(), zones: false };
        let flavour = Arc::new(KubeFed::new(options, true, Arc::new(members), None));
        let object = sent(|it| it["spec"]["apiEndpoint"] = endpoint.as_str().into());
        let (_changes, told) = unbounded_channel();
        let clusters = informer(&KUBEFED_CLUSTERS, vec![object], told).await;
        flavour.objects.set(&clusters, Arc::new(|| true));
        let stored = Arc::new(parking_lot::Mutex::new("the-new-token"));
        let read = Arc::clone(&stored);
        let server = ApiServer::new(move |_| {
            Reply::Json(200, json!({"data": {"token": STANDARD.encode(*read.lock())}}))
        });
        let id = Cluster { uid: "u1".into(), key: "fed/one".into() };
        let object = flavour.objects.get(&id).unwrap();
        let old = json!({"data": {"token": STANDARD.encode("the-old-token")}}).to_string();
        let old = access::inputs(&object, SecretData::decode(old.as_bytes()).as_ref(), true);
        let reread = reread(&flavour, server.client(), id);
        let prober = prober(&flavour, "fed", old, NewestClient::default(), reread);
        let probe = async || prober.probe(Duration::from_secs(60)).await.finding.code();
        assert_eq!(probe().await, None, "the new token is tried in the same probe");
        assert_eq!(probe().await, None, "it is remembered");
        assert_eq!(server.asked().len(), 1);
        *stored.lock() = "a-token-that-is-refused";
        let refused = prober_of_refused(&flavour, &server).await;
        assert_eq!(refused, [Some(Code::Unauthorized); 3]);
        assert_eq!(server.asked().len(), 2, "it is read once while it is refused");
    }

    /// What three probes with a token find that the member and the Secret do not have.
    async fn prober_of_refused(flavour: &Arc<KubeFed>, server: &ApiServer) -> Vec<Option<Code>> {
        let id = Cluster { uid: "u1".into(), key: "fed/one".into() };
        let object = flavour.objects.get(&id).unwrap();
        let old = json!({"data": {"token": STANDARD.encode("the-old-token")}}).to_string();
        let old = access::inputs(&object, SecretData::decode(old.as_bytes()).as_ref(), true);
        let reread = reread(flavour, server.client(), id);
        let prober = prober(flavour, "fed", old, NewestClient::default(), reread);
        let mut found = Vec::new();
        for _ in 0..3 {
            found.push(prober.probe(Duration::from_secs(60)).await.finding.code());
        }
        found
    }

    /// rule:a-lost-credential-ends-its-client
    #[test]
    fn a_member_whose_secret_is_gone_keeps_no_client() {
        let flavour = flavour();
        let inputs = Inputs {
            addresses: vec![Address::parse("https://api.example").unwrap()],
            tls: TlsOptions { everything: true, ..TlsOptions::default() },
            ..Inputs::default()
        };
        let newest = NewestClient::default();
        let never = || -> Box<ReadInputs> { Box::new(|| Box::pin(std::future::ready(None))) };
        drop(prober(&flavour, "fed", Ok(inputs), newest.clone(), never()));
        assert!(newest.client().is_some());
        let gone = Problem::new(Code::SecretMissing, "there is no Secret");
        drop(prober(&flavour, "fed", Err(gone), newest.clone(), never()));
        assert!(newest.client().is_none());
    }
}
