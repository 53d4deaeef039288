//! [`Call`]: a request in the query protocol, which all of our AWS APIs speak, or in JSON; [`Fate`]: what becomes
//! of it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::request::Parts;

/// What is known of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `ec2` or `elasticloadbalancing`.
    pub service: String,
    /// The region it is signed for.
    pub region: String,
    /// Name of the action, such as `CreateVpc`.
    pub action: String,
    /// The access key that it is signed with.
    pub key: String,
    /// All parameters of the query protocol.
    pub parameters: BTreeMap<String, String>,
}

impl Call {
    pub(super) fn read(head: &Parts, body: &[u8]) -> Self {
        let parameters: BTreeMap<_, _> = form_urlencoded::parse(body).into_owned().collect();
        let authorization = head.headers.get("authorization").and_then(|text| text.to_str().ok());
        // Credential=KEY/DATE/REGION/SERVICE/aws4_request
        let mut scope = authorization.unwrap_or_default().split('/');
        let key = scope.next().and_then(|text| text.rsplit('=').next()).unwrap_or_default();
        let mut scope = scope.skip(1);
        // Services with JSON name it in a header: ResourceGroupsTaggingAPI_20170126.GetResources
        let target = head.headers.get("x-amz-target").and_then(|text| text.to_str().ok());
        let target = target.and_then(|text| text.rsplit('.').next());
        let action = parameters.get("Action").map(String::as_str).or(target);
        Self {
            key: key.to_owned(),
            region: scope.next().unwrap_or_default().to_owned(),
            service: scope.next().unwrap_or_default().to_owned(),
            action: action.unwrap_or_default().to_owned(),
            parameters,
        }
    }

    /// Whether the call changes something.
    pub fn is_write(&self) -> bool {
        !["Describe", "Get"].iter().any(|it| self.action.starts_with(it)) && self.service != "sts"
    }

    /// Whether the call belongs to the API of classic load balancers; two APIs share some names.
    pub fn is_classic(&self) -> bool {
        self.parameter("Version") == "2012-06-01"
    }

    /// A parameter; empty when it is not there.
    pub fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }
}

/// The fate of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The call is carried out and answered.
    Pass,
    /// The sender dies before the call is carried out.
    CrashBefore,
    /// The sender dies after the call is carried out and before it is answered.
    CrashAfter,
    /// The call is carried out, and the answer is lost.
    AnswerLost,
    /// The call is lost before AWS gets it.
    CallLost,
    /// The call is refused with this code.
    Refuse(&'static str),
    /// The call is refused with this HTTP status and code.
    RefuseWith(u16, &'static str),
    /// The call is carried out, and refused with this code, as a repetition would be.
    DoneAndRefused(&'static str),
    /// The call is carried out after this delay.
    Delay(Duration),
}
