use http::Request;
use http::header::ACCEPT;
use http_body_util::{BodyExt as _, Full};
use serving::{Everyone, Peer, PeerCertificate};

use super::*;

fn shown() -> Shown {
    let flags = vec![("secure-port", "10257".to_owned()), ("v", "2".to_owned())];
    Shown { features: Vec::new(), flags, flagz: true, statusz: true, profiling: true }
}

fn pages(shown: &Shown) -> Pages {
    let pages = Pages::new();
    let facts = Facts { shown, version: "0.1.2", controllers: vec!["node-ipam-controller"] };
    add(&pages, &facts, |verbosity| verbosity != 9);
    pages
}

async fn ask(pages: &Pages, request: Request<Full<bytes::Bytes>>) -> (u16, String) {
    let peer = Peer::new([127, 0, 0, 1].into(), PeerCertificate::Absent);
    let reply = serving::answer(pages, &Everyone, peer, request).await;
    let status = reply.status().as_u16();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get(pages: &Pages, path: &str, accept: &str) -> (u16, String) {
    let request = Request::get(path).header(ACCEPT, accept);
    ask(pages, request.body(Full::default()).unwrap()).await
}

#[tokio::test]
async fn configz_shows_what_runs_and_every_flag() {
    let (status, body) = get(&pages(&shown()), "/configz", "application/json").await;
    let expected = json!({"infra-controller-manager": {
        "controllers": ["node-ipam-controller"],
        "flags": {"secure-port": "10257", "v": "2"},
    }});
    assert_eq!((status, serde_json::from_str(&body).unwrap()), (200, expected));
}

#[tokio::test]
async fn flagz_is_text_with_a_warning() {
    for accept in ["text/plain", "*/*", "application/json, text/*"] {
        let (status, body) = get(&pages(&shown()), "/flagz", accept).await;
        assert_eq!(status, 200, "{accept}");
        let lines: Vec<_> = body.lines().collect();
        assert_eq!(lines[..2], ["", "infra-controller-manager flagz"]);
        assert!(lines[2].starts_with("Warning: "));
        assert_eq!(lines[4..], ["secure-port:10257", "v:2"]);
    }
}

#[tokio::test]
async fn documents_are_had_by_their_full_name_only() {
    let pages = pages(&shown());
    for (path, kind) in [("/flagz", "Flagz"), ("/statusz", "Statusz")] {
        let accept = format!("application/json;as={kind};v=v1beta1;g=config.k8s.io");
        let (status, body) = get(&pages, path, &accept).await;
        let document: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &document["kind"]), (200, &json!(kind)));
        assert_eq!(document["apiVersion"], "config.k8s.io/v1beta1");
        assert_eq!(document["metadata"]["name"], "infra-controller-manager");
        for accept in ["application/json", "application/json;as=Other;v=v1beta1;g=config.k8s.io"] {
            assert_eq!(get(&pages, path, accept).await.0, 406, "{path} {accept}");
        }
    }
}

#[tokio::test]
async fn statusz_shows_version_and_paths() {
    let (_, body) = get(&pages(&shown()), "/statusz", "*/*").await;
    assert!(body.contains("\nUp: 0 hr 00 min 0"), "{body}");
    assert!(body.contains("\nBinary version: 0.1.2\n"), "{body}");
    assert!(body.ends_with("\nPaths: /configz /debug/flags/v /flagz /statusz\n"), "{body}");
}

#[tokio::test]
async fn pages_that_are_off_are_not_there() {
    let none = Shown { flagz: false, statusz: false, profiling: false, ..shown() };
    for path in ["/flagz", "/statusz", "/debug/flags/v"] {
        assert_eq!(get(&pages(&none), path, "*/*").await.0, 404, "{path}");
    }
}

#[tokio::test]
async fn a_put_sets_the_verbosity_and_nothing_else_does() {
    let pages = pages(&shown());
    let put = async |body: &str| {
        let request = Request::put("/debug/flags/v").body(Full::from(body.to_owned())).unwrap();
        ask(&pages, request).await
    };
    assert_eq!(put("4\n").await, (200, "successfully set klog.logging.verbosity to 4\n".into()));
    for bad in ["", "-1", "256", "four"] {
        assert_eq!(put(bad).await.0, 400, "{bad:?}");
    }
    assert_eq!(
        put("9").await,
        (400, "the environment variable RUST_LOG sets the log level; unset RUST_LOG\n".into())
    );
    assert_eq!(
        get(&pages, "/debug/flags/v", "*/*").await,
        (406, "unsupported http method\n".into())
    );
}
