use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;
use crate::cluster_profile::testing::profile;

fn secret(data: &Value, entry: Option<&str>) -> SecretData {
    let encoded: serde_json::Map<_, _> = data
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, text)| {
            use base64::Engine as _;
            let text = text.as_str().unwrap();
            (key.clone(), base64::engine::general_purpose::STANDARD.encode(text).into())
        })
        .collect();
    SecretData::decode_with(json!({"data": encoded}).to_string().as_bytes(), entry).unwrap()
}

/// A profile of this provider, with this configuration.
fn provided(provider: &str, config: &Value) -> Object<ClusterProfile> {
    profile(|it| {
        let offer = &mut it["status"]["accessProviders"][0];
        offer["name"] = provider.into();
        offer["cluster"]["extensions"][0]["extension"] = config.clone();
    })
}

fn built_in() -> Providers {
    Providers::built_in()
}

fn inputs(object: &Object<ClusterProfile>, secret: Option<&SecretData>) -> Result<Inputs, Problem> {
    let providers = built_in();
    let way = way(object, &[], &providers)?;
    way.inputs(secret, false)
}

/// The Secret of a way, as `namespace/name`.
fn secret_of(object: &Object<ClusterProfile>, allowed: &[String], providers: &Providers) -> String {
    match way(object, allowed, providers).unwrap().source {
        CredentialSource::Secret { key, .. } => key.to_string(),
        _ => panic!("it is not in a Secret"),
    }
}

fn refused(object: &Object<ClusterProfile>, secret: Option<&SecretData>) -> (Code, String) {
    let problem = inputs(object, secret).unwrap_err();
    (problem.code(), problem.to_string())
}

#[test]
fn the_first_built_in_provider_is_used_whatever_the_order_of_the_profile() {
    let both = profile(|it| {
        let offers = it["status"]["accessProviders"].as_array_mut().unwrap();
        let config = json!({"name": "k", "key": "value", "namespace": "ns"});
        let extensions = json!([{"name": CONFIG, "extension": config}]);
        offers.push(json!({"name": "kubeconfig-secretreader", "cluster": {
            "server": "https://10.0.0.2", "extensions": extensions}}));
        offers.insert(0, json!({"name": "google", "cluster": {"server": "https://10.0.0.3"}}));
    });
    let providers = built_in();
    let way = way(&both, &[], &providers).unwrap();
    let CredentialSource::Secret { key, entry } = way.source else { panic!("it is in a Secret") };
    assert_eq!((&*key, entry.as_deref()), ("ns/k", Some("value")));
    assert_eq!(addresses(&both, &providers), ["https://10.0.0.2:443".into()]);
}

#[test]
fn a_profile_without_a_provider_that_can_be_used_names_what_it_lacks() {
    for (status, said) in [
        (json!({}), "status.accessProviders is empty"),
        (json!({"credentialProviders": [{"name": "secretreader"}]}), "credentialProviders is dep"),
        (json!({"accessProviders": [{"name": "google"}]}), "kubeconfig-secretreader or secretr"),
    ] {
        let object = profile(|it| it["status"] = status);
        let (code, text) = refused(&object, None);
        assert!(code == Code::SecretMissing && text.contains(said), "{code} {text}");
        assert!(addresses(&object, &built_in()).is_empty());
    }
    for (provider, config, said) in [
        ("secretreader", json!({}), "clusterName of the extension"),
        ("secretreader", json!({"clusterName": 1}), "clusterName of the extension"),
        ("secretreader", json!({"clusterName": "../x"}), "not a valid name"),
        ("kubeconfig-secretreader", json!({"name": "s"}), "key of the extension"),
        ("kubeconfig-secretreader", json!({"key": "s"}), "name of the extension"),
    ] {
        let (code, text) = refused(&provided(provider, &config), None);
        assert!(code == Code::SecretMissing && text.contains(said), "{code} {text}");
    }
}

/// rule:secret-of-the-same-namespace
#[test]
fn a_secret_of_another_namespace_is_read_only_where_the_operator_lists_it() {
    let config = json!({"name": "s", "key": "value", "namespace": "other"});
    let object = provided("kubeconfig-secretreader", &config);
    let (code, text) = refused(&object, None);
    assert_eq!(code, Code::CredentialRefused);
    assert!(text.contains("--cluster-health-profile-secret-namespaces"), "{text}");
    assert_eq!(secret_of(&object, &["other".into()], &built_in()), "other/s");
    // The provider for tokens has no namespace.
    let object = provided("secretreader", &json!({"clusterName": "s", "namespace": "other"}));
    assert_eq!(secret_of(&object, &["other".into()], &built_in()), "ns/s");
}

#[test]
fn the_cluster_entry_of_the_provider_says_how_it_is_reached() {
    let object = profile(|it| {
        let cluster = &mut it["status"]["accessProviders"][0]["cluster"];
        cluster["tls-server-name"] = "api.example".into();
        cluster["insecure-skip-tls-verify"] = true.into();
        cluster["certificate-authority-data"] = "YWI=".into();
        cluster["proxy-url"] = "http://10.0.0.9".into();
        cluster["disable-compression"] = true.into();
    });
    let secret = secret(&json!({"token": "t"}), None);
    let inputs = inputs(&object, Some(&secret)).unwrap();
    assert_eq!(inputs.addresses[0].to_string(), "https://10.0.0.1:443");
    assert_eq!(inputs.server_name.as_deref(), Some("api.example"));
    assert!(inputs.tls.everything && inputs.ca == b"ab" && inputs.pair.is_none());
    assert_eq!(inputs.token.unwrap().expose_secret(), "t");
    assert_eq!(inputs.proxy.unwrap().expose_secret(), "http://10.0.0.9");
}

#[test]
fn what_cannot_be_used_is_named_with_its_field_or_key() {
    let token = secret(&json!({"token": "t"}), None);
    let of_cluster = |field: &str, value: &str| {
        profile(|it| it["status"]["accessProviders"][0]["cluster"][field] = value.into())
    };
    let rows = [
        (of_cluster("server", ""), Some(&token), Code::BadEndpoint, "has no server"),
        (of_cluster("certificate-authority", "/ca"), Some(&token), Code::CaParse, "is a file"),
        (of_cluster("certificate-authority-data", "!"), Some(&token), Code::CaParse, "not base64"),
        (profile(|_| {}), None, Code::SecretMissing, "Secret ns/s does not exist"),
    ];
    for (object, secret, code, said) in rows {
        let told = refused(&object, secret);
        assert!(told.0 == code && told.1.contains(said), "{told:?}");
    }
    let empty = secret(&json!({"other": "t"}), None);
    assert!(refused(&profile(|_| {}), Some(&empty)).1.contains("no key token"));
}

#[test]
fn a_kubeconfig_is_read_from_the_key_and_for_the_context_that_the_provider_names() {
    let config = json!({"name": "s", "key": "value", "context": "two"});
    let object = provided("kubeconfig-secretreader", &config);
    let text = "{current-context: one, contexts: [{name: two, context: {cluster: c, user: u}}], \
        users: [{name: u, user: {token: t}}]}";
    let secret = secret(&json!({"value": text}), Some("value"));
    let inputs = inputs(&object, Some(&secret)).unwrap();
    assert_eq!(inputs.token.unwrap().expose_secret(), "t");
}

#[test]
fn the_first_provider_of_the_file_wins_and_a_plugin_is_told_of_the_cluster_alone() {
    let exec = json!({"command": "login", "apiVersion": "client.authentication.k8s.io/v1",
        "provideClusterInfo": true});
    let file = json!({"providers": [
        {"name": "google", "execConfig": exec}, {"name": "secretreader"},
    ]});
    let parse = |may_run| Providers::parse(file.to_string().as_bytes(), may_run).unwrap();
    let object = profile(|it| {
        let extensions = json!([{"name": CONFIG, "extension": {"clusterName": "c"}},
            {"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-args", "extension": ["-x"]}]);
        let offer = json!({"name": "google", "cluster": {"server": "https://10.0.0.2",
            "extensions": extensions}});
        it["status"]["accessProviders"].as_array_mut().unwrap().push(offer);
    });
    let providers = parse(true);
    let way = way(&object, &[], &providers).unwrap();
    let CredentialSource::Plugin(Plugin { provider, spec: plugin }) = &way.source else {
        panic!("a plugin prints it")
    };
    assert!(provider == "google" && plugin.args.is_empty() && plugin.env.is_empty());
    let told = plugin.cluster.as_ref().unwrap();
    assert_eq!(
        (&told["server"], &told["config"]),
        (&json!("https://10.0.0.2"), &json!({"clusterName": "c"}))
    );
    let inputs = way.inputs(None, false).unwrap();
    assert!(inputs.token.is_none() && inputs.pair.is_none(), "the plugin prints it");
    assert_eq!(inputs.addresses[0].to_string(), "https://10.0.0.2:443");

    let providers = parse(false);
    let problem = super::way(&object, &[], &providers).err().unwrap();
    assert_eq!(problem.code(), Code::PluginFailed);
    assert!(problem.to_string().contains("--cluster-health-profile-exec"), "{problem}");
    // A profile without the first has the second.
    let providers = parse(false);
    assert_eq!(secret_of(&profile(|_| {}), &[], &providers), "ns/s");
}
