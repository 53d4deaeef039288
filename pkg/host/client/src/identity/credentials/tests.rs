//! Rotation as an operator does it: files are replaced under a running process.

use super::*;
use std::fs;
use std::path::PathBuf;

use http::{HeaderMap, header};

use crate::config::process_environment;
use crate::testing::{Authority, TempFile, kubeconfig, kubeconfig_text};

fn metrics() -> PluginMetrics {
    PluginMetrics::new(&prometheus::Registry::new()).unwrap()
}

async fn load(path: &std::path::Path) -> Arc<Credentials> {
    let source = Source::File { path: path.to_owned(), master: None };
    Credentials::load(
        source,
        &process_environment,
        Arc::default(),
        metrics(),
        &CertificateMetrics::default(),
    )
    .await
    .unwrap()
}

fn authorization(credentials: &Credentials) -> Result<String, PluginError> {
    let mut headers = HeaderMap::new();
    credentials.current().authorize(&mut headers)?;
    Ok(headers.get(header::AUTHORIZATION).unwrap().to_str().unwrap().to_owned())
}

/// Waits until the follower has read the files again, on a paused clock.
async fn read_again(credentials: &Credentials, than: u64) {
    while credentials.current().generation <= than {
        sleep(POLL).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_file_is_followed() {
    let token = TempFile::new("one\n");
    let file = kubeconfig("server: 'http://a'", &format!("tokenFile: {}", token.path().display()));
    let credentials = load(file.path()).await;
    assert_eq!(authorization(&credentials).unwrap(), "Bearer one");
    fs::write(token.path(), "two").unwrap();
    read_again(&credentials, 0).await;
    assert_eq!(authorization(&credentials).unwrap(), "Bearer two");
}

#[tokio::test(start_paused = true)]
async fn an_empty_token_file_leaves_the_last_good_token_and_is_refused_at_start() {
    let token = TempFile::new("one\n");
    let file = kubeconfig("server: 'http://a'", &format!("tokenFile: {}", token.path().display()));
    let credentials = load(file.path()).await;
    for empty in ["", " \n"] {
        fs::write(token.path(), empty).unwrap();
        sleep(POLL * 3).await;
        assert_eq!(authorization(&credentials).unwrap(), "Bearer one");
        let source = Source::File { path: file.path().to_owned(), master: None };
        let fresh = Credentials::load(
            source,
            &process_environment,
            Arc::default(),
            metrics(),
            &CertificateMetrics::default(),
        )
        .await;
        let error = fresh.err().unwrap().to_string();
        assert!(error.contains("tokenFile is empty"), "{error}");
    }
    fs::write(token.path(), "two").unwrap();
    read_again(&credentials, 0).await;
    assert_eq!(authorization(&credentials).unwrap(), "Bearer two");
}

#[tokio::test(start_paused = true)]
async fn the_kubeconfig_itself_is_followed_its_server_included() {
    let file = kubeconfig("server: 'http://a'", "token: one");
    let credentials = load(file.path()).await;
    fs::write(file.path(), kubeconfig_text("server: 'http://b:1'", "token: two")).unwrap();
    read_again(&credentials, 0).await;
    assert_eq!(authorization(&credentials).unwrap(), "Bearer two");
    assert_eq!(credentials.current().server, "http://b:1");
}

#[tokio::test(start_paused = true)]
async fn new_certificate_files_make_a_new_endpoint_once_both_are_there() {
    use crate::identity::snapshot::Shown;
    let authority = Authority::new();
    let (one, two) = (authority.client("one"), authority.client("two"));
    let (chain, key) = (TempFile::new(&one.0), TempFile::new(&one.1));
    let user = format!(
        "client-certificate: {}, client-key: {}",
        chain.path().display(),
        key.path().display()
    );
    let file = kubeconfig("server: 'https://a', insecure-skip-tls-verify: true", &user);
    let credentials = load(file.path()).await;
    let endpoint = || {
        let snapshot = credentials.current();
        snapshot.endpoint(&credentials.tls, Shown::Certificate, transport::Protocol::Http1).unwrap()
    };
    let before = endpoint();

    // Half of a rotation is not used.
    fs::write(chain.path(), &two.0).unwrap();
    sleep(POLL * 3).await;
    assert_eq!(credentials.current().generation, 0);
    assert!(endpoint().shares_connections_with(&before));

    fs::write(key.path(), &two.1).unwrap();
    read_again(&credentials, 0).await;
    assert!(!endpoint().shares_connections_with(&before));
}

#[tokio::test(start_paused = true)]
async fn a_reading_that_fails_leaves_the_last_good_one() {
    let file = kubeconfig("server: 'http://a'", "token: one");
    let credentials = load(file.path()).await;
    for broken in ["", "not: [yaml"] {
        fs::write(file.path(), broken).unwrap();
        sleep(POLL * 3).await;
        assert_eq!(authorization(&credentials).unwrap(), "Bearer one");
    }
    fs::remove_file(file.path()).unwrap();
    sleep(POLL * 3).await;
    assert_eq!(authorization(&credentials).unwrap(), "Bearer one");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_makes_everything_be_read_at_once_and_only_once() {
    let file = kubeconfig("server: 'http://a'", "token: one");
    let credentials = load(file.path()).await;
    fs::write(file.path(), kubeconfig_text("server: 'http://a'", "token: two")).unwrap();
    let started = Instant::now();
    credentials.refused(0);
    while credentials.current().generation == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    assert!(started.elapsed() < POLL, "{:?}", started.elapsed());

    // A late answer to a request of the old reading asks for nothing.
    credentials.refused(0);
    assert!(futures::poll!(Box::pin(credentials.refused.notified())).is_pending());
}

#[tokio::test(start_paused = true)]
async fn refusals_in_a_row_make_it_be_read_once_a_second() {
    let file = kubeconfig("server: 'http://a'", "token: one");
    let credentials = load(file.path()).await;
    let replace = |token: &str| {
        let text = kubeconfig_text("server: 'http://a'", &format!("token: {token}"));
        fs::write(file.path(), text).unwrap();
    };
    replace("two");
    credentials.refused(0);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(credentials.current().generation, 1);
    replace("three");
    credentials.refused(1);
    sleep(REFUSAL_PAUSE / 2).await;
    assert_eq!(credentials.current().generation, 1, "not yet");
    sleep(REFUSAL_PAUSE).await;
    assert_eq!(credentials.current().generation, 2);
}

#[tokio::test(start_paused = true)]
async fn a_due_plugin_does_not_read_a_broken_kubeconfig_without_pause() {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    static IS_BROKEN: AtomicBool = AtomicBool::new(false);
    static READINGS: AtomicUsize = AtomicUsize::new(0);
    static TOO_MANY: Notify = Notify::const_new();
    fn environment(name: &str) -> Option<String> {
        if name != "HTTPS_PROXY" || !IS_BROKEN.load(Ordering::Relaxed) {
            return None;
        }
        if READINGS.fetch_add(1, Ordering::Relaxed) > 100 {
            TOO_MANY.notify_one();
        }
        Some("no proxy".into())
    }
    let user = "exec: {command: 'false', apiVersion: client.authentication.k8s.io/v1}";
    let file = kubeconfig("server: 'https://a', insecure-skip-tls-verify: true", user);
    let source = Source::File { path: file.path().to_owned(), master: None };
    let credentials = Credentials::load(
        source,
        &environment,
        Arc::default(),
        metrics(),
        &CertificateMetrics::default(),
    )
    .await
    .unwrap();
    IS_BROKEN.store(true, Ordering::Relaxed);
    tokio::select! {
        () = sleep(Duration::from_secs(60)) => {}
        () = TOO_MANY.notified() => panic!("it reads without a pause"),
    }
    let readings = READINGS.load(Ordering::Relaxed);
    assert!((12..=61).contains(&readings), "{readings} readings in a minute");
    drop(credentials);
}

/// A kubeconfig whose plugin counts its runs in a file and gives `token-N`.
fn with_plugin(life: &str) -> (TempFile, PathBuf, TempFile) {
    let runs = TempFile::new("");
    let script = TempFile::new(&format!(
        "echo run >> {runs}\nn=$(wc -l < {runs})\nsleep 0.1\n\
         echo '{{\"kind\":\"ExecCredential\",\"status\":{{{life}\"token\":\"token-'$n'\"}}}}'\n",
        runs = runs.path().display(),
    ));
    let user = format!(
        "exec: {{command: sh, args: ['{}'], apiVersion: client.authentication.k8s.io/v1}}",
        script.path().display()
    );
    let path = runs.path().to_owned();
    let file = kubeconfig("server: 'http://a'", &user);
    std::mem::forget(runs);
    (file, path, script)
}

fn runs(path: &std::path::Path) -> usize {
    fs::read_to_string(path).unwrap().lines().count()
}

#[tokio::test]
async fn a_plugin_runs_once_for_all_and_again_when_the_server_refuses_what_it_gave() {
    let (file, count, _script) = with_plugin("");
    let credentials = load(file.path()).await;
    for _ in 0..10 {
        assert_eq!(authorization(&credentials).unwrap(), "Bearer token-1");
    }
    assert_eq!(runs(&count), 1);

    let mut plugin = None;
    PluginRuns::adopt(&mut plugin, Some(&plugin_spec(&credentials)), &metrics());
    credentials.refresh(&mut plugin, false).await;
    assert_eq!(authorization(&credentials).unwrap(), "Bearer token-2");
    credentials.refresh(&mut plugin, false).await;
    assert_eq!(runs(&count), 2, "without an end of life only a refusal makes it run");
    // One that has just run does not run again however often the server refuses.
    credentials.refresh(&mut plugin, true).await;
    assert_eq!(runs(&count), 2);
    fs::remove_file(count).unwrap();
}

#[tokio::test]
async fn requests_never_wait_for_a_plugin_and_keep_what_it_gave_when_it_fails() {
    let (file, count, script) = with_plugin("");
    let credentials = load(file.path()).await;
    fs::write(script.path(), "sleep 1; echo HUSH; exit 1").unwrap();
    let mut plugin = Some(PluginRuns::new(plugin_spec(&credentials), &metrics()));
    let refreshed = std::cell::Cell::new(false);
    let refreshing = async {
        credentials.refresh(&mut plugin, true).await;
        refreshed.set(true);
    };
    let asking = async {
        assert_eq!(authorization(&credentials).unwrap(), "Bearer token-1");
        assert!(!refreshed.get(), "it waited for the plugin, which takes a second");
    };
    tokio::join!(refreshing, asking);
    assert!(plugin.unwrap().failure().is_some());
    fs::remove_file(count).unwrap();
}

fn plugin_spec(credentials: &Credentials) -> crate::config::settings::PluginSpec {
    let settings = credentials.source.read(&process_environment).unwrap();
    settings.user.plugin.unwrap()
}

#[tokio::test]
async fn the_life_of_what_a_plugin_gave_and_the_age_of_its_certificates_are_measured() {
    const TTL: &str = "rest_client_exec_plugin_ttl_seconds";
    let registry = prometheus::Registry::new();
    let metrics = PluginMetrics::new(&registry).unwrap();
    let shown = |name: &str| {
        let page = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap().to_owned()
    };
    assert_eq!(shown(TTL), "inf", "no plugin");
    let (chain, key) = Authority::new().client("plugin");
    let text = |value: &str| serde_json::to_string(value).unwrap();
    let given = |chain: &str, key: &str| {
        let (chain, key) = (text(chain), text(key));
        let status = format!(
            r#"{{"clientCertificateData":{chain},"clientKeyData":{key},"expirationTimestamp":"2199-01-01T00:00:00Z"}}"#
        );
        format!(r#"{{"kind":"ExecCredential","status":{status}}}"#)
    };
    let credential = TempFile::new(&given(&chain, &key));
    let mut runs = PluginRuns::new(
        crate::config::settings::PluginSpec {
            command: "cat".into(),
            args: vec![credential.path().display().to_string()],
            env: Vec::new(),
            api_version: "client.authentication.k8s.io/v1".into(),
            cluster: None,
        },
        &metrics,
    );
    for _ in 0..2 {
        runs.run().await;
    }
    let left: f64 = shown(TTL).parse().unwrap();
    assert!(left > 5e9 && left.is_finite(), "{left}");
    assert_eq!(shown("rest_client_exec_plugin_certificate_rotation_age_count"), "0");
    let (chain, key) = Authority::new().client("plugin");
    fs::write(credential.path(), given(&chain, &key)).unwrap();
    runs.run().await;
    assert_eq!(shown("rest_client_exec_plugin_certificate_rotation_age_count"), "1");
    drop(runs);
    assert_eq!(shown(TTL), "inf", "its plugin is gone");
}
