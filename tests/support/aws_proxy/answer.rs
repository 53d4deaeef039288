//! Answers of our own, and moto's answers changed.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;

use super::call::Call;

/// An error in the form of the API that was called.
pub(super) fn refusal(call: &Call, code: &str, status: u16) -> Response<Full<Bytes>> {
    let error = format!("<Error><Code>{code}</Code><Message>The proxy says so</Message></Error>");
    let text = match (code, call.service.as_str()) {
        ("", _) => "<html><body>Service Unavailable</body></html>".to_owned(),
        (_, "ec2") => {
            format!("<Response><Errors>{error}</Errors><RequestID>proxy</RequestID></Response>")
        }
        _ => format!("<ErrorResponse>{error}<RequestId>proxy</RequestId></ErrorResponse>"),
    };
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = StatusCode::from_u16(status).expect("a status");
    answer
}

/// NAT gateways that are pending for some answers; moto's are available at once.
#[derive(Default)]
pub(super) struct SlowNats(BTreeMap<String, u32>);

impl SlowNats {
    pub(super) fn slow_down(&mut self, call: &Call, mut text: String, polls: u32) -> String {
        if call.action != "DescribeNatGateways" || polls == 0 {
            return text;
        }
        const ID: &str = "<natGatewayId>";
        const AVAILABLE: &str = "<state>available</state>";
        let mut place = 0;
        while let Some(found) = text[place..].find(ID) {
            let start = place + found + ID.len();
            let end = start + text[start..].find('<').unwrap_or_default();
            let shown = self.0.entry(text[start..end].to_owned()).or_default();
            *shown += 1;
            place = end;
            if *shown > polls {
                continue;
            }
            if let Some(state) = text[place..].find(AVAILABLE) {
                let state = place + state;
                text.replace_range(state..state + AVAILABLE.len(), "<state>pending</state>");
            }
        }
        text
    }
}
