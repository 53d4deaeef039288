//! Any answer of Google Compute Engine, the file of `--cloud-config`, and the name of a VM.

use std::cell::RefCell;

use bytes::Bytes;
use gce::{Client, Config, Instance, Metrics, ProviderId};
use http::StatusCode;
use prometheus::Registry;
use resilience::Fence;
use tokio::runtime::Runtime;

use crate::canned_answer::CannedAnswer;

struct State {
    runtime: Runtime,
    server: CannedAnswer,
    client: Client,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::new(start());
}

fn start() -> State {
    let runtime = crate::paused_runtime();
    let server = runtime.block_on(CannedAnswer::start());
    let client = runtime.block_on(async { client(server.port) });
    State { runtime, server, client }
}

/// A client of the server on `port`, which is the metadata server too.
fn client(port: u16) -> Client {
    let text = format!("[global]\nproject-id = p-1\napi-endpoint = http://127.0.0.1:{port}/v1\n");
    let metrics = Metrics::new(&Registry::new()).unwrap();
    let host = format!("127.0.0.1:{port}");
    let env = move |name: &str| (name == "GCE_METADATA_HOST").then(|| host.clone());
    Client::new(Config::parse(&text).unwrap(), metrics, Fence::always_open(), false, &env).unwrap()
}

pub(crate) fn are_read(data: &[u8]) {
    let Some((select, data)) = crate::selected(data) else { return };
    match select % 5 {
        0 => {
            let Ok(text) = std::str::from_utf8(data) else { return };
            if let Err(error) = Config::parse(text) {
                assert!(!error.to_string().contains("planted"), "{error}");
            }
        }
        1 => {
            let Ok(text) = std::str::from_utf8(data) else { return };
            if let Ok(id) = ProviderId::parse(text) {
                let again = ProviderId::parse(&format!("gce://{id}"));
                assert_eq!(again.as_ref(), Ok(&id), "{text:?}");
            }
        }
        2 => {
            let Ok(instance) = serde_json::from_slice::<Instance>(data) else { return };
            let _ranges = instance.pod_ranges();
        }
        call => is_answered(call, data),
    }
}

/// A call that gets this answer, the first byte of which selects the status.
fn is_answered(call: usize, data: &[u8]) {
    let Some((status, body)) = crate::selected(data) else { return };
    let status = StatusCode::from_u16([200, 400, 403, 404, 412, 429, 500][status % 7]).unwrap();
    STATE.with_borrow(|State { runtime, server, client }| {
        let mut body = body.to_vec();
        // A page that names a next one would be given for ever.
        while let Some(at) = body.windows(13).position(|part| part == b"nextPageToken") {
            body[at] = b'x';
        }
        let body = Bytes::from(body);
        server.set(move |path| {
            if path.starts_with("/computeMetadata") {
                let token = b"{\"access_token\":\"t\",\"expires_in\":3599}";
                return (StatusCode::OK, Bytes::from_static(token));
            }
            (status, body.clone())
        });
        let result = runtime.block_on(async {
            if call == 3 {
                let vm = ProviderId::parse("gce://p-1/z/a").unwrap();
                client.instance(&vm).await.map(|it| vec![it])
            } else {
                client.instances("z").await
            }
        });
        if let Err(error) = result {
            assert!(!error.to_string().is_empty());
        }
    });
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    const VM: &str = r#"{"name":"a","networkInterfaces":[{"name":"nic0","fingerprint":"f","aliasIpRanges":[{"ipCidrRange":"10.0.0.0/24","subnetworkRangeName":"pods"}],"ipv6Address":"fd20::1:0/96","ipv6AccessType":"EXTERNAL","ipv6AccessConfigs":[{"externalIpv6":"2600::1"}]}]}"#;
    const REFUSED: &str = r#"{"error":{"code":403,"message":"m","errors":[{"reason":"rateLimitExceeded"}],"details":[{"reason":"RATE_LIMIT_EXCEEDED"}]}}"#;
    let list = format!(r#"{{"items":[{VM},{VM}]}}"#);
    [
        "\0[global]\nproject-id = p-1\ntoken-url = nil\n# c\nsecondary-range-name = \"a b\"\n"
            .to_owned(),
        "\0[Global]\ntoken-url = http://h/t\ntoken-body = planted\napi-endpoint = https://a/b/\n"
            .to_owned(),
        "\x01gce://project/zone/vm".to_owned(),
        "\x01gce://example.com:project/us-central1-a/vm-1".to_owned(),
        format!("\x02{VM}"),
        format!("\x03\0{VM}"),
        format!("\x04\0{list}"),
        format!("\x03\x02{REFUSED}"),
        format!("\x04\x05{REFUSED}"),
    ]
    .map(String::into_bytes)
    .to_vec()
}
