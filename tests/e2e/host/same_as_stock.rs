//! The serving port answers the same as the real kube-controller-manager, to the byte,
//! on every path that both or neither have, to every client.

use std::time::Duration;

use http::{Method, Request};
use kube::client::Body;
use kube::config::AuthInfo;
use tests::control_plane::ADMIN_GROUP;
use tests::{Process, poll, process};

use crate::access::{with_certificate, with_token};
use crate::scene::Scene;
use crate::stock;

/// On these both answer everybody alike.
const SAME: [(Method, &str); 17] = [
    (Method::GET, "/healthz"),
    (Method::POST, "/healthz"),
    (Method::GET, "/healthz/"),
    (Method::GET, "/HEALTHZ"),
    (Method::GET, "//healthz"),
    (Method::GET, "/healthz/no-such-check"),
    (Method::GET, "/healthz?exclude=none-such"),
    (Method::GET, "/"),
    (Method::GET, "/nothing"),
    (Method::DELETE, "/nothing"),
    (Method::GET, "/metrics/"),
    (Method::DELETE, "/metrics/slis"),
    (Method::GET, "/configz/"),
    (Method::GET, "/debug/flags/v"),
    (Method::DELETE, "/debug/flags/v"),
    (Method::PUT, "/debug/flags/v"),
    (Method::GET, "/debug/controllers/none/"),
];
/// On these both refuse who has no right to them.
const REFUSED: [&str; 6] =
    ["/metrics", "/metrics/slis", "/configz", "/flagz", "/statusz", "/debug/flags/v?a=b"];

/// The answer to a request with the body `2`, which only a PUT of the log level reads.
async fn answer(of: &Process, who: &AuthInfo, method: &Method, path: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).body(Body::from(b"2".to_vec()));
    process::ask(of.port(), who.clone(), request.unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_answer_to_the_byte_as_those_of_the_real_stock_manager() {
    let program = stock::program();
    let scene = Scene::set().await;
    let kubeconfig = scene.cluster.manager_kubeconfig();
    let guarded = || {
        let launch = Process::with_kubeconfig(&kubeconfig).guarded_by(&kubeconfig);
        launch.args(["--leader-elect=false"])
    };
    let theirs = guarded().program(&program).args(["--controllers=ttl-controller"]).start();
    let ours = guarded().start();
    for process in [&theirs, &ours] {
        let healthy = async || process.get("/healthz").await.is_ok_and(|(s, _)| s == 200);
        poll("it serves", async || healthy().await.then_some(())).await;
    }
    let hour = Duration::from_secs(3600);
    let of = |user, groups: &[&str]| {
        with_certificate(&scene.cluster.client_certificate(user, groups, hour).unwrap())
    };
    let (anonymous, bad) = (AuthInfo::default(), with_token("not.a.token"));
    let (eve, root) = (of("eve", &[]), of("root", &[ADMIN_GROUP]));
    let refused = REFUSED.map(|path| (Method::GET, path));
    let mut codes = std::collections::BTreeSet::new();
    for (name, who) in [("anonymous", &anonymous), ("bad", &bad), ("eve", &eve), ("root", &root)] {
        let more = if name == "root" { &[][..] } else { &refused[..] };
        for (method, path) in SAME.iter().chain(more) {
            let (theirs, ours) =
                tokio::join!(answer(&theirs, who, method, path), answer(&ours, who, method, path));
            assert_eq!(ours, theirs, "{name}: {method} {path}");
            codes.insert(ours.0);
        }
    }
    assert_eq!(Vec::from_iter(codes), [200, 401, 403, 404, 406]);
}
