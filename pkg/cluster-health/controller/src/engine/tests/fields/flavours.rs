//! The flavours of these tests, with the options and the companions that each has.

use super::*;

/// A flavour of this test.
pub(super) trait Tested: Resolve {
    fn make(scene: &Scene) -> Self;

    /// Reads credential objects, where the flavour has some.
    fn reader(_: kube::Client) -> Option<CredentialReader<Self>> {
        None
    }

    /// Follows the KubeFedConfig.
    fn follow(
        _: &Arc<Self>,
        _: &Informer<Object<KubeFedConfig>>,
        _: &Pipeline<Self>,
    ) -> Option<Subscription<Object<KubeFedConfig>>> {
        None
    }
}

impl Tested for KubeFed {
    fn make(_: &Scene) -> Self {
        let (policy, namespace) = (policy(), None);
        let options = KubeFedOptions { namespace, config: None, policy, zones: true };
        Self::new(options, false, shared_prober(), None)
    }

    fn follow(
        flavour: &Arc<Self>,
        configs: &Informer<Object<KubeFedConfig>>,
        pipeline: &Pipeline<Self>,
    ) -> Option<Subscription<Object<KubeFedConfig>>> {
        let Pipeline { queue, objects, recorder, .. } = pipeline;
        Some(crate::kubefed::on_config(configs, queue, objects, flavour, recorder))
    }
}

impl Tested for Tke {
    fn make(_: &Scene) -> Self {
        let options = crate::tke::testing::options(&[("tke-insecure-when-no-ca", "true")]);
        let options = TkeOptions { secret_namespace: None, policy: policy(), ..options };
        let metrics = SummaryMetrics::new(&Metrics::new(), true).unwrap();
        Self::new(options, shared_prober(), metrics)
    }

    fn reader(client: kube::Client) -> Option<CredentialReader<Self>> {
        Some(Box::new(Fetch::new(client)))
    }
}

impl Tested for ClusterProfiles {
    fn make(scene: &Scene) -> Self {
        Conforming::make(scene)
    }
}

impl Tested for ClusterApi {
    fn make(scene: &Scene) -> Self {
        Conforming::make(scene)
    }
}

/// The authorities of the system are read once.
fn shared_prober() -> Arc<probe::Prober> {
    thread_local! {
        static PROBER: Arc<probe::Prober> = Arc::new(prober());
    }
    PROBER.with(Arc::clone)
}
