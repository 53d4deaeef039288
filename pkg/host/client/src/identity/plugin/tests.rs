//! Real programs: what they give, and that nothing they print is shown.

use rustix::process::set_child_subreaper;

use super::*;
use crate::testing::TempFile;

fn spec(script: &str) -> PluginSpec {
    PluginSpec {
        command: "sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("GREETING".into(), "hello".into())],
        api_version: "client.authentication.k8s.io/v1".into(),
        cluster: None,
    }
}

async fn run_once(spec: &PluginSpec) -> Result<Issued, PluginError> {
    run(spec, &PluginLimits::OWN).await
}

fn credential(status: &str) -> String {
    format!(
        r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{status}}}"#
    )
}

async fn printing(text: &str) -> Result<Issued, PluginError> {
    run_once(&spec(&format!("cat <<'EOF'\n{text}\nEOF\n"))).await
}

#[tokio::test]
async fn a_token_is_taken_and_marked_as_secret() {
    let issued = printing(&credential(r#"{"token":"abc"}"#)).await.unwrap();
    let header = issued.authorization.unwrap();
    assert_eq!(header, "Bearer abc");
    assert!(header.is_sensitive());
    let again = printing(&credential(r#"{"token":"abc"}"#)).await.unwrap();
    assert!(!format!("{again:?}").contains("abc"));
    assert!(issued.certificate.is_none() && issued.renew_at.is_none());
}

#[tokio::test]
async fn a_certificate_is_taken_and_half_of_one_is_refused() {
    let (chain, key) = crate::testing::Authority::new().client("plugin");
    let text = |value: &str| serde_json::to_string(value).unwrap();
    let both =
        format!(r#"{{"clientCertificateData":{},"clientKeyData":{}}}"#, text(&chain), text(&key));
    let issued = printing(&credential(&both)).await.unwrap();
    let printed = format!("{issued:?}");
    assert!(issued.certificate.is_some());
    assert!(printed.contains("1 certificates") && printed.len() < 200, "{printed}");
    let half = format!(r#"{{"clientCertificateData":{}}}"#, text(&chain));
    let error = printing(&credential(&half)).await.unwrap_err().to_string();
    assert!(error.contains("only one of certificate and key"), "{error}");
}

#[tokio::test]
async fn yaml_is_read_as_client_go_reads_it() {
    let head = "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\n";
    let token = |issued: Issued| issued.authorization.unwrap();
    let block = "status:\n  token: 'abc'\n  expirationTimestamp: 2199-01-01T00:00:00Z\n";
    let issued = printing(&format!("# from our vault\n---\n{head}{block}")).await.unwrap();
    assert!(issued.renew_at.is_some());
    assert_eq!(token(issued), "Bearer abc");
    let flow = printing("{kind: ExecCredential, status: {token: abc}}").await.unwrap();
    assert_eq!(token(flow), "Bearer abc");

    let (chain, key) = crate::testing::Authority::new().client("plugin");
    let block = |pem: &str| pem.replace('\n', "\n    ");
    let status = format!(
        "status:\n  clientCertificateData: |\n    {}\n  clientKeyData: |\n    {}\n",
        block(&chain),
        block(&key)
    );
    assert!(printing(&format!("{head}{status}")).await.unwrap().certificate.is_some());

    for refused in ["token: 123", "token: [abc]", "token: true", "token: \"abc"] {
        let error = printing(&format!("{head}status:\n  {refused}\n")).await.unwrap_err();
        assert!(
            error.to_string().contains("neither the JSON nor the YAML of an ExecCredential"),
            "{refused} {error}"
        );
    }
}

#[tokio::test]
async fn output_without_end_and_aliases_of_aliases_are_refused_at_once() {
    let start = std::time::Instant::now();
    let error = run_once(&spec("yes 'token: HUSH'")).await.unwrap_err().to_string();
    assert!(error.contains("longer than 1024 KiB"), "{error}");

    let level = |n: u8| {
        let of = format!("*{}", char::from(b'a' + n));
        format!("{}: &{} [{}]\n", n + 1, char::from(b'b' + n), vec![of; 9].join(","))
    };
    let bomb: String = (0..12).map(level).collect();
    let text = format!("0: &a [x]\n{bomb}kind: ExecCredential\nstatus: {{token: abc}}");
    let error = read(text.as_bytes(), "sh", SystemTime::now()).unwrap_err().to_string();
    assert!(error.contains("neither the JSON nor the YAML of an ExecCredential"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test]
async fn it_is_asked_again_a_fifth_of_the_life_before_the_end() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let end = Timestamp::from_second(1_700_000_000 + 1_000).unwrap();
    assert_eq!(renewal(end, now), Duration::from_secs(800));
    assert_eq!(renewal(end, now + Duration::from_secs(5_000)), RENEWAL_PAUSE, "long expired");

    let status = r#"{"token":"a","expirationTimestamp":"2199-01-01T00:00:00Z"}"#;
    assert!(printing(&credential(status)).await.unwrap().renew_at.is_some());
}

#[tokio::test]
async fn the_plugin_gets_the_version_its_environment_and_no_terminal() {
    let seen = TempFile::new("");
    let script = format!(
        "printf '%s %s' \"$GREETING\" \"$KUBERNETES_EXEC_INFO\" > {}; echo '{}'",
        seen.path().display(),
        credential(r#"{"token":"a"}"#)
    );
    let mut spec = spec(&script);
    spec.cluster = Some(json!({"server": "https://a"}));
    run_once(&spec).await.unwrap();
    let seen = std::fs::read_to_string(seen.path()).unwrap();
    let info: serde_json::Value =
        serde_json::from_str(seen.strip_prefix("hello ").unwrap()).unwrap();
    assert_eq!(info["apiVersion"], "client.authentication.k8s.io/v1");
    assert_eq!(info["kind"], "ExecCredential");
    assert_eq!(info["spec"]["interactive"], false);
    assert_eq!(info["spec"]["cluster"]["server"], "https://a");
}

#[tokio::test]
async fn nothing_that_it_prints_gets_into_an_error() {
    let hushed = credential(r#"{"token":"HUSH\n"}"#).replace("\\n", "\\u0007");
    let (chain, _) = crate::testing::Authority::new().client("plugin");
    let one_line = "-----BEGIN PRIVATE KEY----- HUSH -----END PRIVATE KEY-----";
    let certificate = json!({"clientCertificateData": chain, "clientKeyData": one_line});
    for script in [
        "echo HUSH; echo HUSH >&2; exit 3".to_owned(),
        "echo HUSH".to_owned(),
        format!("echo '{}'", credential(r#"{"HUSH":1}"#)),
        "echo '{\"kind\":\"HUSH\",\"status\":{}}'".to_owned(),
        format!("echo '{hushed}'"),
        format!("cat <<'EOF'\n{}\nEOF\n", credential(&certificate.to_string())),
    ] {
        let error = run_once(&spec(&script)).await.unwrap_err();
        let shown = format!("{error} {error:?} {}", transport::ErrorChain(&error));
        // Bytes are shown as numbers by their `Debug`.
        assert!(!shown.contains("HUSH") && !shown.contains("72, 85, 83, 72"), "{shown}");
        assert!(error.to_string().contains("\"sh\""), "{error}");
    }
    let failed = run_once(&spec("exit 3")).await.unwrap_err().to_string();
    assert!(failed.contains("exit status: 3"), "{failed}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let spec = PluginSpec { command: "/nonexistent/login".into(), ..spec("") };
    let error = run_once(&spec).await.unwrap_err();
    assert!(matches!(error, PluginError::Start { .. }), "{error}");
    assert!(error.to_string().contains("\"login\""), "{error}");
}

#[tokio::test]
async fn a_plugin_with_a_list_of_variables_gets_no_others_and_leaves_no_process_behind() {
    let limits = PluginLimits {
        run: Duration::from_millis(500),
        output: 64 << 10,
        endless: Some(Duration::from_secs(600)),
        environment: Some(&["PATH"]),
    };
    let seen = TempFile::new("");
    let credential = credential(r#"{"token":" a "}"#);
    let script = format!("env > {}; echo '{credential}'", seen.path().display());
    let mut runs = PluginRuns::limited(spec(&script), limits);
    assert!(runs.printed().is_err());
    runs.run().await;
    assert_eq!(runs.printed().unwrap().token.unwrap().expose_secret(), "a");
    let now = Instant::now();
    let due = runs.due_at(now).unwrap().saturating_duration_since(now);
    assert!(due > Duration::from_secs(590) && due <= Duration::from_secs(600), "{due:?}");
    let seen_by_it = std::fs::read_to_string(seen.path()).unwrap();
    let mut names: Vec<_> = seen_by_it.lines().filter_map(|line| line.split_once('=')).collect();
    // The shell sets these.
    names.retain(|(name, _)| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    let mut names: Vec<_> = names.into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["GREETING", "KUBERNETES_EXEC_INFO", "PATH"]);
}

#[tokio::test]
async fn what_a_plugin_started_is_killed_with_it_and_leaves_no_zombie() {
    // As the first process of a container inherits what its children leave behind.
    set_child_subreaper(Pid::from_raw(1)).unwrap();
    let seen = TempFile::new("");
    let start = format!("sleep 1000 >&- & echo $! > {}", seen.path().display());
    let limits = PluginLimits { run: Duration::from_millis(500), ..PluginLimits::OWN };
    for (rest, times_out) in
        [("wait".to_owned(), true), (format!("echo '{}'", credential(r#"{"token":"a"}"#)), false)]
    {
        let run = run(&spec(&format!("{start}; {rest}")), &limits).await;
        assert_eq!(matches!(run, Err(PluginError::Timeout { .. })), times_out, "{run:?}");
        let child = std::fs::read_to_string(seen.path()).unwrap();
        let entry = std::path::PathBuf::from(format!("/proc/{}", child.trim()));
        for _ in 0..1000 {
            if !entry.exists() {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        assert!(!entry.exists(), "what the plugin started is still there");
    }
}
