use std::net::SocketAddr;

use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Reads a request until it has `end`.
async fn take(stream: &mut TcpStream, end: &str) -> String {
    let mut taken = String::new();
    while !taken.ends_with(end) {
        let mut piece = [0; 1024];
        let length = stream.read(&mut piece).await.unwrap();
        assert!(length > 0, "it ends with {taken:?}");
        taken.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
    taken
}

fn request(address: SocketAddr) -> HttpRequest {
    let request = Request::post(format!("http://{address}/"));
    HttpRequest::try_from(request.body(SdkBody::from("Action=DescribeVpcs")).unwrap()).unwrap()
}

fn within(connect: u64, read: u64) -> HttpConnectorSettings {
    let settings = HttpConnectorSettings::builder();
    let settings = settings.connect_timeout(Duration::from_millis(connect));
    settings.read_timeout(Duration::from_millis(read)).build()
}

#[tokio::test]
async fn requests_to_one_server_go_over_one_connection_and_answers_come_whole() {
    let (listener, address) = listener().await;
    let connections = Connections::default();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            let taken = take(&mut stream, "Action=DescribeVpcs").await;
            assert!(taken.starts_with("POST / HTTP/1.1\r\n"), "{taken}");
            let answer =
                "HTTP/1.1 400 Bad Request\r\nx-amzn-requestid: 7\r\ncontent-length: 4\r\n\r\n<e/>";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    };
    let client = async {
        for _ in 0..2 {
            let settings = HttpConnectorSettings::default();
            let answer = connections.clone().exchange(request(address), settings).await.unwrap();
            assert_eq!(answer.status().as_u16(), 400);
            assert_eq!(answer.headers().get("x-amzn-requestid"), Some("7"));
            assert_eq!(answer.body().bytes(), Some(&b"<e/>"[..]));
        }
    };
    futures::join!(server, client);
}

#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_given_up() {
    let (_silent, address) = listener().await;
    let late = Connections::default().exchange(request(address), within(50, 50)).await.unwrap_err();
    assert!(late.is_timeout(), "{late:?}");
}
