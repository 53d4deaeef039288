//! Meaning and precedence of fields.

use super::*;
use crate::testing::kubeconfig_text;

fn read(cluster: &str, user: &str) -> Result<Settings, KubeconfigError> {
    let text = kubeconfig_text(&format!("server: 'https://a', {cluster}"), user);
    parse(&text, Path::new("/etc/kube"), None)
}

#[test]
fn what_is_printed_of_settings_holds_no_secret() {
    const SECRET: &str = "hunter2";
    // As it stands in the file, decoded, and as a list of bytes.
    let encoded = BASE64_STANDARD.encode(SECRET);
    let bytes = format!("{:?}", SECRET.as_bytes());
    let forms = [SECRET, &encoded, bytes.trim_matches(['[', ']'])];
    let exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, \
        args: [hunter2], env: [{name: A, value: hunter2}], interactiveMode: Never}";
    for (cluster, user) in [
        ("proxy-url: 'http://me:hunter2@proxy:3128'", "token: hunter2"),
        ("proxy-url: 'socks5://me:hunter2@proxy:1080'", "username: me, password: hunter2"),
        ("", &format!("client-certificate-data: '{encoded}', client-key-data: '{encoded}'")),
        (&format!("certificate-authority-data: '{encoded}'"), exec),
        ("", "token: a, as: hunter2, as-groups: [hunter2], as-user-extra: {k: [hunter2]}"),
    ] {
        let printed = format!("{:?}", read(cluster, user).unwrap());
        for form in forms {
            assert!(!printed.contains(form), "{form} in {printed}");
        }
        let basic = BASE64_STANDARD.encode(format!("me:{SECRET}"));
        assert!(!printed.contains(&basic), "{printed}");
    }
}

#[test]
fn paths_are_relative_to_the_kubeconfig_and_data_wins_over_them() {
    let settings = read("certificate-authority: pki/ca.crt", "tokenFile: token").unwrap();
    match settings.trust {
        TrustSource::Bundle(Material::File(_, path)) => {
            assert_eq!(path, Path::new("/etc/kube/pki/ca.crt"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(settings.user.token_file.unwrap(), Path::new("/etc/kube/token"));

    let both = "certificate-authority: pki/ca.crt, certificate-authority-data: 'aGVs bG8='";
    match read(both, "").unwrap().trust {
        TrustSource::Bundle(Material::Data(_, data)) => assert_eq!(***data, *b"hello"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_user_may_have_a_token_or_a_name_with_a_password_and_act_as_another() {
    let header = |user| read("", user).unwrap().user.authorization.unwrap();
    assert_eq!(header("token: abc"), "Bearer abc");
    assert_eq!(header("username: me, password: secret"), "Basic bWU6c2VjcmV0");
    assert!(header("token: abc").is_sensitive());

    let user = "as: admin, as-uid: u-1, as-groups: [a, b], as-user-extra: {Scopes: [x]}";
    let headers = read("", user).unwrap().user.impersonation;
    let headers: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(
        headers,
        [
            ("impersonate-user", "admin"),
            ("impersonate-uid", "u-1"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-scopes", "x"),
        ]
    );
}

#[test]
fn contradictions_and_halves_are_refused_by_the_names_of_their_fields() {
    for (cluster, user, words) in [
        (
            "insecure-skip-tls-verify: true, certificate-authority-data: aGk=",
            "",
            "both insecure-skip-tls-verify and certificate-authority",
        ),
        ("", "client-certificate-data: aGk=", "client-certificate without client-key"),
        ("", "client-key-data: aGk=", "client-key without client-certificate"),
        ("certificate-authority-data: '?'", "", "certificate-authority-data is not base64"),
        ("tls-server-name: 'a b'", "", "tls-server-name \"a b\""),
        ("", "auth-provider: {name: gcp}", "auth-provider \"gcp\""),
        ("", "{token: \"a\\nb\"}", "token holds characters"),
        ("", "exec: {apiVersion: client.authentication.k8s.io/v1}", "has no command"),
        ("", "exec: {command: aws, apiVersion: v9}", "apiVersion \"v9\""),
        (
            "",
            "exec: {command: aws, apiVersion: client.authentication.k8s.io/v1, \
             env: [{value: north}]}",
            "variable 1 of its env has no name",
        ),
        (
            "",
            "exec: {command: aws, apiVersion: client.authentication.k8s.io/v1, \
             interactiveMode: Always}",
            "interactively",
        ),
    ] {
        let user = user.trim_start_matches('{').trim_end_matches(if user.starts_with('{') {
            "}"
        } else {
            "\0"
        });
        let error = read(cluster, user).unwrap_err().to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_plugin_gets_its_arguments_its_environment_and_if_asked_its_cluster() {
    let user = "exec: {command: ./bin/login, args: [get, token], \
                env: [{name: REGION, value: north}, {name: EMPTY}], provideClusterInfo: true, \
                apiVersion: client.authentication.k8s.io/v1beta1}";
    let plugin = read("tls-server-name: api.example", user).unwrap().user.plugin.unwrap();
    assert_eq!(plugin.command, Path::new("/etc/kube/./bin/login"));
    assert_eq!(plugin.args, ["get", "token"]);
    let env = [("REGION", "north"), ("EMPTY", "")];
    assert_eq!(plugin.env, env.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let cluster = plugin.cluster.unwrap();
    assert_eq!(cluster["server"], "https://a");
    assert_eq!(cluster["tls-server-name"], "api.example");

    let user = "exec: {command: aws, apiVersion: client.authentication.k8s.io/v1}";
    let plugin = read("", user).unwrap().user.plugin.unwrap();
    assert_eq!((plugin.command.to_str(), plugin.cluster), (Some("aws"), None));
}

#[test]
fn a_broken_kubeconfig_is_located_and_never_quoted() {
    let error = "error: line 7 column 4: unexpected end\n6 |     token: SECRETTOKEN\n7 |    bad: x";
    assert!(matches!(KubeconfigError::not_yaml(&error), KubeconfigError::NotYaml(Some((7, 4)))));
    let elsewhere = KubeconfigError::not_yaml(&"SECRETTOKEN");
    assert!(matches!(elsewhere, KubeconfigError::NotYaml(None)));
}
