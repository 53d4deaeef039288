//! Answers of a server on a loopback port.

use std::time::Duration;

use http::Method;

use super::*;
use crate::testing::{Conduct, Server, clients, profile, reply, reply_after, request};

const LONG: Duration = Duration::from_secs(30);

#[tokio::test]
async fn any_status_is_an_answer_with_its_body_and_retry_time() {
    let server = Server::plain(|seen| {
        let answer = match seen.path() {
            "/busy" => reply_after(429, "3"),
            "/conflict" => reply(409).map(|_| Bytes::from_static(b"{\"kind\":\"Status\"}").into()),
            "/broken" => reply(500),
            _ => reply(200),
        };
        Conduct::Answer(answer)
    })
    .await;
    let (clients, _) = clients(&server.url()).await;
    // A 429 also stops this client, so each path has a client of its own.
    for (path, status, pause, body) in [
        ("/", 200, None, ""),
        ("/busy", 429, Some(3), ""),
        ("/conflict", 409, None, "{\"kind\":\"Status\"}"),
        ("/broken", 500, None, ""),
    ] {
        let client = clients.build(profile()).unwrap();
        let answer = answer(&client, request(Method::PATCH, path), LONG).await.unwrap();
        assert_eq!(answer.status.as_u16(), status);
        assert_eq!(answer.retry_after, pause.map(Duration::from_secs));
        assert_eq!(answer.body, body);
        assert!(!format!("{answer:?}").contains("kind"), "a body may be a Secret");
    }
}

#[test]
fn a_write_that_left_is_unwritten_only_when_the_server_did_not_process_it() {
    let left = || {
        let progress = Progress::new(&request(Method::PATCH, "/a"), None);
        assert!(progress.take_body(Duration::from_secs(1)));
        progress
    };
    let refused = CallError::judge(Box::new(WireError::unprocessed("refused")), &left());
    assert!(matches!(refused, CallError::NotSent(_)), "{refused}");
    let broken = CallError::judge(Box::new(WireError::broken("reset")), &left());
    assert!(matches!(broken, CallError::Transport { settled_at: Some(_), .. }), "{broken}");
}
