//! Answers of our own.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;

use super::call::Call;

/// An error in the form of the API that was called.
pub(super) fn refusal(call: &Call, code: &str, status: u16) -> Response<Full<Bytes>> {
    refusal_by(call, code, status, "The proxy says so")
}

/// Like [`refusal`], with this message.
pub(super) fn refusal_by(
    call: &Call,
    code: &str,
    status: u16,
    message: &str,
) -> Response<Full<Bytes>> {
    let error = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
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
