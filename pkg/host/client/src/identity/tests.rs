//! A kubeconfig that moves to another server, with another user, while requests are under way.

mod account;

use std::time::Duration;

use http::Method;
use prometheus::Registry;
use resilience::Fence;
use serde_json::json;

use crate::testing::{
    Conduct, Seen, Server, TempFile, kubeconfig, kubeconfig_text, load, options, profile, reply,
    request,
};
use crate::{ClientOptions, Clients, Identity, Profile, Throttle, ThrottleMetrics, answer};

const LONG: Duration = Duration::from_secs(30);

/// Two servers. Each issues its own token to service accounts and refuses `/refuse`.
struct Scene {
    old: Server,
    new: Server,
    file: TempFile,
    clients: Clients,
}

async fn server(token: &'static str) -> Server {
    let answer = move |seen: &Seen| match seen.path() {
        "/refuse" => reply(401),
        path if path.ends_with("/token") => {
            let status = json!({"token": token, "expirationTimestamp": "2020-01-01T00:00:00Z"});
            let mut reply = reply(201);
            *reply.body_mut() = json!({"status": status}).to_string().into();
            reply
        }
        _ => reply(200),
    };
    Server::plain(move |seen| Conduct::Answer(answer(seen))).await
}

fn place(server: &Server) -> String {
    format!("server: '{}'", server.url())
}

impl Scene {
    async fn new() -> Self {
        let (old, new) = (server("account-of-old").await, server("account-of-new").await);
        let file = kubeconfig(&place(&old), "token: user-of-old");
        let options = ClientOptions { kubeconfig: Some(file.path().to_owned()), ..options() };
        let clients = load(&options, &Registry::new()).await.unwrap();
        Self { old, new, file, clients }
    }

    /// The kubeconfig is another one from now on.
    async fn moves(&self) {
        let text = kubeconfig_text(&place(&self.new), "token: user-of-new");
        std::fs::write(self.file.path(), text).unwrap();
        // A 401 has it read at once.
        let client = self.clients.build(profile()).unwrap();
        answer(&client, request(Method::GET, "/refuse"), LONG).await.unwrap();
        let moved = async {
            while !self.is_new(&client).await {
                tokio::time::sleep(Duration::from_millis(1)).await; // it can only be asked
            }
        };
        tokio::time::timeout(LONG, moved).await.expect("the kubeconfig is read again");
    }

    async fn is_new(&self, client: &kube::Client) -> bool {
        answer(client, request(Method::GET, "/which"), LONG).await.unwrap();
        !self.new.seen.lock().is_empty()
    }

    /// No server saw credentials of the other one.
    fn assert_nothing_was_shown_to_the_wrong_server(&self) {
        for (server, own) in [(&self.old, "-of-old"), (&self.new, "-of-new")] {
            for seen in server.seen() {
                let shown = seen.header("authorization").unwrap();
                assert!(shown.ends_with(own), "{} was shown {shown}", server.url());
            }
        }
    }
}

fn paths(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.path().to_owned()).collect()
}

#[tokio::test]
async fn a_request_that_waited_while_the_kubeconfig_moved_shows_its_token_to_that_ones_server() {
    let scene = Scene::new().await;
    let metrics = ThrottleMetrics::new(&Registry::new()).unwrap();
    // The next token comes after ten seconds: the kubeconfig moves sooner on any machine.
    let throttle = Throttle::new("work", 0.1, 1, &metrics).unwrap();
    let line = throttle.clone().unwrap();
    let client = scene.clients.build(Profile { throttle, ..profile() }).unwrap();
    line.acquire(tokio::time::Instant::now()).await;
    let waiting =
        tokio::spawn(async move { answer(&client, request(Method::PATCH, "/work"), LONG).await });
    while line.in_line() == 0 {
        tokio::task::yield_now().await;
    }
    scene.moves().await;
    waiting.await.unwrap().unwrap();
    scene.assert_nothing_was_shown_to_the_wrong_server();
    assert!(paths(&scene.new).contains(&"/work".to_owned()), "{:?}", paths(&scene.old));
}

#[tokio::test]
async fn a_service_accounts_token_is_shown_to_the_server_that_gave_it_and_to_no_other() {
    let scene = Scene::new().await;
    let identity = Identity::ServiceAccount {
        namespace: "kube-system".into(),
        name: "node-controller".into(),
    };
    let fence = Some(Fence::always_open());
    let client = scene.clients.build(Profile { fence, identity, ..profile() }).unwrap();
    answer(&client, request(Method::PATCH, "/before"), LONG).await.unwrap();
    scene.moves().await;
    answer(&client, request(Method::PATCH, "/after"), LONG).await.unwrap();
    scene.assert_nothing_was_shown_to_the_wrong_server();
    let work = |server: &Server, path| {
        let seen = server.seen();
        let work = seen.iter().find(|seen| seen.path() == path).expect("it arrived");
        work.header("authorization").map(str::to_owned)
    };
    assert_eq!(work(&scene.old, "/before").unwrap(), "Bearer account-of-old");
    assert_eq!(work(&scene.new, "/after").unwrap(), "Bearer account-of-new");
}
