//! Where the configuration comes from, and what the operator is told when it cannot be used.

use super::*;
use crate::config::settings::AddressError;
use crate::testing::{TempFile, kubeconfig, options};

fn nothing(_: &str) -> Option<String> {
    None
}

fn load_in(
    path: Option<&Path>,
    master: Option<&str>,
    env: Environment<'_>,
) -> Result<Settings, ConfigError> {
    let options = ClientOptions {
        kubeconfig: path.map(Path::to_owned),
        master: master.map(str::to_owned),
        ..options()
    };
    Source::of(&options, env)?.read(env)
}

fn load(path: Option<&Path>, master: Option<&str>) -> Result<Settings, ConfigError> {
    load_in(path, master, &nothing)
}

#[test]
fn the_server_of_the_kubeconfig_is_used_and_master_overrides_it() {
    let file = kubeconfig("server: 'https://api.example:6443'", "token: secret");
    let settings = load(Some(file.path()), None).unwrap();
    assert_eq!(settings.server, "https://api.example:6443");

    let settings = load(Some(file.path()), Some("https://10.0.0.1:8443")).unwrap();
    assert_eq!(settings.server, "https://10.0.0.1:8443");
    assert!(settings.user.authorization.is_some(), "the credentials stay");

    let no_server = kubeconfig("insecure-skip-tls-verify: true", "token: t");
    let settings = load(Some(no_server.path()), Some("https://a")).unwrap();
    assert_eq!(settings.server, "https://a/");
}

#[test]
fn an_address_without_scheme_gets_https_once_tls_is_configured_in_any_way() {
    let data = "certificate-authority-data: AAAA";
    let pair = "client-certificate-data: AAAA, client-key-data: AAAA";
    for (cluster, user, scheme) in [
        ("server: 'https://a'", "token: t", "http"),
        ("server: 'https://a', insecure-skip-tls-verify: true", "token: t", "https"),
        (&format!("server: 'https://a', {data}"), "token: t", "https"),
        ("server: 'https://a'", pair, "https"),
    ] {
        let file = kubeconfig(cluster, user);
        let settings = load(Some(file.path()), Some("10.0.0.1:6443")).unwrap();
        assert_eq!(settings.server, *format!("{scheme}://10.0.0.1:6443"), "{cluster} {user}");

        let bare = cluster.replace("https://a", "10.0.0.2:6443");
        let settings = load(Some(kubeconfig(&bare, user).path()), None).unwrap();
        assert_eq!(settings.server, *format!("{scheme}://10.0.0.2:6443"), "{bare} {user}");
    }
    assert_eq!(load(None, Some("127.0.0.1:8080")).unwrap().server, "http://127.0.0.1:8080");
    let empty = Some(Path::new(""));
    assert!(load(empty, Some("https://a")).is_ok(), "an empty flag is no flag");
}

#[test]
fn a_master_that_is_not_an_address_is_refused_by_name() {
    for address in ["ftp://a", "https://", "a b"] {
        let error = load(None, Some(address)).unwrap_err().to_string();
        assert!(error.contains("--master") && error.contains(address), "{error}");
        assert!(error.contains(&AddressError.to_string()), "{error}");
    }
}

#[test]
fn an_address_with_a_user_is_refused_and_its_password_not_shown() {
    for address in ["https://me:hunter2@a", "me:hunter2@10.0.0.1:6443"] {
        let of_flag = load(None, Some(address)).unwrap_err();
        let file = kubeconfig(&format!("server: '{address}'"), "token: t");
        for error in [of_flag, load(Some(file.path()), None).unwrap_err()] {
            assert!(error.to_string().contains(&AddressError.to_string()), "{error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }
}

#[test]
fn the_environments_proxy_is_used_unless_the_kubeconfig_names_its_own() {
    let env = |name: &str| (name == "HTTPS_PROXY").then(|| "http://of.env:1".to_owned());
    let server = "server: 'https://api.example:6443'";
    for (cluster, expected) in [
        (server.to_owned(), Some("http://of.env:1")),
        (format!("{server}, proxy-url: 'http://of.file:2'"), Some("http://of.file:2")),
        ("server: 'https://127.0.0.1:6443'".to_owned(), None),
    ] {
        let file = kubeconfig(&cluster, "token: t");
        let settings = load_in(Some(file.path()), None, &env).unwrap();
        let expected = expected.map(|address| Proxy::parse(address).unwrap());
        assert_eq!(settings.proxy, expected, "{cluster}");
    }
}

#[test]
fn in_a_pod_the_files_of_its_service_account_are_used() {
    let env = |name: &str| match name {
        "KUBERNETES_SERVICE_HOST" => Some("fd00::1".to_owned()),
        "KUBERNETES_SERVICE_PORT" => Some("443".to_owned()),
        _ => None,
    };
    let settings = load_in(None, None, &env).unwrap();
    assert_eq!(settings.server, "https://[fd00::1]:443");
    assert_eq!(settings.user.token_file.unwrap(), Path::new(POD_FILES).join("token"));
    match settings.trust {
        TrustSource::Bundle(Material::File(_, path)) => {
            assert_eq!(path, Path::new(POD_FILES).join("ca.crt"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn outside_a_pod_the_missing_flag_is_named() {
    let error = load(None, None).unwrap_err().to_string();
    assert!(error.contains("set --kubeconfig or --master"), "{error}");
}

#[test]
fn a_bad_kubeconfig_is_named_with_its_flag_and_the_cause() {
    let missing = Path::new("/nonexistent/controller-manager.conf").to_owned();
    let empty = TempFile::new("");
    let text = TempFile::new("not: [yaml");
    let no_server = kubeconfig("insecure-skip-tls-verify: true", "token: t");
    let bad_server = kubeconfig("server: 'http://a b'", "token: t");
    let bad_proxy = kubeconfig("server: 'http://a', proxy-url: 'ftp://u:hush@p'", "token: t");
    for (path, cause) in [
        (missing.as_path(), "No such file"),
        (empty.path(), "no current-context"),
        (text.path(), "YAML"),
        (no_server.path(), "no server"),
        (bad_server.path(), "http://a b"),
        (bad_proxy.path(), "proxy-url"),
    ] {
        let error = load(Some(path), None).unwrap_err().to_string();
        assert!(error.contains("--kubeconfig"), "{error}");
        assert!(error.contains(path.to_str().unwrap()), "{error}");
        assert!(error.contains(cause), "{cause}: {error}");
        assert!(!error.contains("hush"), "{error}");
    }
}

#[test]
fn no_word_of_a_broken_kubeconfig_reaches_the_error() {
    let yaml = "apiVersion: v1\nusers:\n- name: a\n  user:\n    token: SECRETTOKEN\n   bad: x\n";
    let error = load(Some(TempFile::new(yaml).path()), None).unwrap_err();
    assert!(error.to_string().contains("line"), "{error}");
    assert!(!format!("{error} {error:?}").contains("SECRETTOKEN"), "{error:?}");
}

#[tokio::test]
async fn bad_credentials_are_found_at_load_and_named_with_file_and_flag() {
    let registry = prometheus::Registry::new();
    let no_ca = "server: 'https://a', certificate-authority: /nonexistent/ca";
    let no_cert = "client-certificate: /nonexistent/cert, client-key: /nonexistent/key";
    for (cluster, user, cause) in [
        ("server: 'https://a'", no_cert, "/nonexistent/cert"),
        (no_ca, "token: t", "/nonexistent/ca"),
        ("server: 'https://a'", "tokenFile: /nonexistent/token", "/nonexistent/token"),
        ("server: 'https://a', certificate-authority-data: AAAA", "", "certificate-authority-data"),
    ] {
        let file = kubeconfig(cluster, user);
        let options = ClientOptions { kubeconfig: Some(file.path().to_owned()), ..options() };
        let loaded = crate::testing::load(&options, &prometheus::Registry::new()).await;
        let error = loaded.err().unwrap().to_string();
        assert!(error.contains("--kubeconfig"), "{error}");
        assert!(error.contains(file.path().to_str().unwrap()), "{error}");
        assert!(error.contains(cause), "{error}");
    }
    drop(registry);
}
