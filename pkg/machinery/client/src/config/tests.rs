//! Where the configuration comes from, and what the operator is told when it is no good.

use super::*;
use crate::testing::{TempFile, options};

fn kubeconfig(cluster: &str, user: &str) -> TempFile {
    TempFile::new(&format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\n\
         clusters: [{{name: k, cluster: {{{cluster}}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n"
    ))
}

async fn load(path: Option<&Path>, master: Option<&str>) -> Result<kube::Config, ConfigError> {
    let options = ClientOptions {
        kubeconfig: path.map(Path::to_owned),
        master: master.map(str::to_owned),
        ..options()
    };
    resolve(&options).await
}

#[tokio::test]
async fn the_server_of_the_kubeconfig_is_used_and_master_overrides_it() {
    let file = kubeconfig("server: 'https://api.example:6443'", "token: secret");
    let config = load(Some(file.path()), None).await.unwrap();
    assert_eq!(config.cluster_url, "https://api.example:6443");
    assert!(!config.default_retry);

    let config = load(Some(file.path()), Some("https://10.0.0.1:8443")).await.unwrap();
    assert_eq!(config.cluster_url, "https://10.0.0.1:8443");
    assert!(config.auth_info.token.is_some(), "the credentials stay");
}

#[tokio::test]
async fn master_alone_is_enough_and_needs_no_scheme() {
    let config = load(None, Some("127.0.0.1:8080")).await.unwrap();
    assert_eq!(config.cluster_url, "http://127.0.0.1:8080");
    let empty = Some(Path::new(""));
    assert!(load(empty, Some("https://a")).await.is_ok(), "an empty flag is no flag");
}

#[tokio::test]
async fn a_master_that_is_no_address_is_refused_by_name() {
    for address in ["ftp://a", "https://", "a b"] {
        let error = load(None, Some(address)).await.unwrap_err().to_string();
        assert!(error.contains("--master") && error.contains(address), "{error}");
    }
}

#[tokio::test]
async fn the_environments_proxy_is_used_unless_the_kubeconfig_names_its_own() {
    let env = |name: &str| (name == "HTTPS_PROXY").then(|| "http://of.env:1".to_owned());
    let server = "server: 'https://api.example:6443'";
    for (cluster, expected) in [
        (server.to_owned(), Some("http://of.env:1/")),
        (format!("{server}, proxy-url: 'http://of.file:2'"), Some("http://of.file:2/")),
        ("server: 'https://127.0.0.1:6443'".to_owned(), None),
    ] {
        let file = kubeconfig(&cluster, "token: t");
        let options = ClientOptions { kubeconfig: Some(file.path().to_owned()), ..options() };
        let config = resolve_in(&options, env).await.unwrap();
        assert_eq!(config.proxy_url.map(|p| p.to_string()).as_deref(), expected, "{cluster}");
    }
}

#[tokio::test]
async fn outside_a_pod_the_missing_flag_is_named() {
    let error = load(None, None).await.unwrap_err().to_string();
    assert!(error.contains("give --kubeconfig (or --master)"), "{error}");
}

#[tokio::test]
async fn a_bad_kubeconfig_is_named_with_its_flag_and_the_cause() {
    let missing = Path::new("/nonexistent/controller-manager.conf").to_owned();
    let empty = TempFile::new("");
    let text = TempFile::new("not: [yaml");
    let no_server = kubeconfig("insecure-skip-tls-verify: true", "token: t");
    let bad_server = kubeconfig("server: 'http://a b'", "token: t");
    let no_ca =
        kubeconfig("server: 'https://a', certificate-authority: /nonexistent/ca", "token: t");
    for (path, cause) in [
        (missing.as_path(), "No such file"),
        (empty.path(), "context"),
        (text.path(), "YAML"),
        (no_server.path(), "url is missing"),
        (bad_server.path(), "parse cluster url"),
        (no_ca.path(), "/nonexistent/ca"),
    ] {
        let error = load(Some(path), None).await.unwrap_err().to_string();
        assert!(error.contains("--kubeconfig"), "{error}");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert!(error.contains(cause), "{cause}: {error}");
    }
}

#[tokio::test]
async fn bad_credentials_are_found_at_load_and_named_with_file_and_flag() {
    let registry = prometheus::Registry::new();
    let no_cert = "client-certificate: /nonexistent/cert, client-key: /nonexistent/key";
    let file = kubeconfig("server: 'https://a'", no_cert);
    let options = ClientOptions { kubeconfig: Some(file.path().to_owned()), ..options() };
    let error = crate::testing::load(&options, &registry).await.err().unwrap().to_string();
    assert!(error.contains("--kubeconfig"), "{error}");
    assert!(error.contains(file.path().to_str().unwrap()), "{error}");
    assert!(error.contains("/nonexistent/cert"), "{error}");
}

#[tokio::test]
async fn a_ca_file_is_followed_and_inline_data_wins() {
    let ca = TempFile::new(&crate::testing::server::Authority::new().pem());
    let path = ca.path().display();
    let file = kubeconfig(&format!("server: 'https://a', certificate-authority: '{path}'"), "");
    let config = load(Some(file.path()), None).await.unwrap();
    assert_eq!(config.root_cert_file.as_deref(), Some(ca.path()));
}

#[test]
fn a_broken_kubeconfig_is_located_and_never_quoted() {
    let error = "error: line 7 column 4: unexpected end\n6 |     token: SECRETTOKEN\n7 |    bad: x";
    assert_eq!(not_yaml(error), "it is not the YAML of a kubeconfig, see line 7, column 4");
    assert_eq!(not_yaml("SECRETTOKEN"), "it is not the YAML of a kubeconfig");
}

#[tokio::test]
async fn no_word_of_a_broken_kubeconfig_reaches_the_error() {
    let yaml = "apiVersion: v1\nusers:\n- name: a\n  user:\n    token: SECRETTOKEN\n   bad: x\n";
    let error = load(Some(TempFile::new(yaml).path()), None).await.unwrap_err().to_string();
    assert!(error.contains("line"), "{error}");
    assert!(!error.contains("SECRETTOKEN"), "{error}");
}
