//! Any kubeconfig: clients are made of it, or it is refused in words.

use std::cell::RefCell;

use client::{ClientOptions, Clients, RequestMetrics};
use kube::config::Kubeconfig;
use prometheus::Registry;
use tokio::runtime::Runtime;

/// So often the metrics begin anew: each server is a series.
const SERVERS: usize = 500;

struct State {
    runtime: Runtime,
    metrics: RequestMetrics,
    served: usize,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(State {
        runtime: crate::runtime(),
        metrics: RequestMetrics::new(&Registry::new()).unwrap(),
        served: 0,
    });
}

pub(crate) fn is_read_or_refused(data: &[u8]) {
    let Some(kubeconfig) = std::str::from_utf8(data).ok().and_then(read) else { return };
    let options = ClientOptions {
        kubeconfig: None,
        master: None,
        product: "fuzz".to_owned(),
        version: "0.0.0".to_owned(),
        commit: "0123456".to_owned(),
    };
    STATE.with_borrow_mut(|state| {
        state.served += 1;
        if state.served % SERVERS == 0 {
            state.metrics = RequestMetrics::new(&Registry::new()).unwrap();
        }
        let made = Clients::from_own(kubeconfig, &options, &state.metrics);
        match state.runtime.block_on(made) {
            Ok(clients) => assert!(!clients.server().is_empty()),
            Err(error) => {
                let message = error.to_string();
                assert!(!message.is_empty());
                // The token and the key of the seeds: no error repeats a credential.
                assert!(!message.contains(SECRET), "{message}");
            }
        }
    });
}

/// Names no program and no file: those of this machine are not run or read.
fn read(text: &str) -> Option<Kubeconfig> {
    let mut kubeconfig = Kubeconfig::from_yaml(text).ok()?;
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.certificate_authority = None;
    }
    for user in kubeconfig.auth_infos.iter_mut().filter_map(|named| named.auth_info.as_mut()) {
        (user.exec, user.token_file) = (None, None);
        (user.client_certificate, user.client_key) = (None, None);
    }
    Some(kubeconfig)
}

const SECRET: &str = "planted-secret";

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let certificate = crate::certificates::pem();
    let encoded = crate::certificates::base64(&certificate.0);
    let key = crate::certificates::base64(&certificate.1);
    let with = |cluster: &str, user: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: \
             {{cluster: k, user: u, namespace: n}}\nclusters:\n- name: k\n  cluster:\n    \
             {cluster}\nusers:\n- name: u\n  user:\n    {user}\n"
        )
    };
    let server = "server: https://10.0.0.1:6443";
    [
        with(&format!("{server}\n    certificate-authority-data: {encoded}"), "token: planted-secret"),
        with(
            &format!("{server}\n    insecure-skip-tls-verify: true\n    tls-server-name: a.b"),
            &format!("client-certificate-data: {encoded}\n    client-key-data: {key}"),
        ),
        with(
            &format!("{server}/path\n    proxy-url: socks5://u:p@h:1\n    disable-compression: true"),
            "username: a\n    password: planted-secret",
        ),
        with("server: http://[fd00::1]:80", "exec: {command: x, apiVersion: v1}"),
        with(server, "tokenFile: /x\n    as: a\n    as-groups: [b]"),
        r#"{"apiVersion":"v1","clusters":[{"name":"a","cluster":{"server":"https://a"}}],"contexts":[{"name":"a","context":{"cluster":"a","user":""}}],"current-context":"a","users":[]}"#.to_owned(),
    ]
    .map(String::into_bytes)
    .to_vec()
}
