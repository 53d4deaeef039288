//! [`Memory`]: what must be known after a crash and cannot be read from AWS: which create was
//! intended when, by [`LogicalId`] and attempt. It is stored in the status of the object, and all
//! of it may be lost: then resources are found by their tags, only more slowly.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// After so many seconds a read of AWS shows every create that was sent. EC2 gives no number; reads
/// lag by seconds.
pub(crate) const READS_CATCH_UP: u64 = 30;

/// For so long a resource whose id AWS has answered, and which no read shows, is late rather than
/// gone.
pub(crate) const LATE: u64 = 60;

/// A create is sent within so many seconds of its intent or not at all, so that [`READS_CATCH_UP`],
/// counted from the intent, covers the call too.
pub const SEND_WITHIN: u64 = 10;

/// What a regional NAT gateway has in place of the zone of the others.
pub(crate) const REGIONAL: &str = "regional";

/// The record of one create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// When the create was last intended.
    pub since: Timestamp,
    /// The id that AWS answered; none while the answer is awaited, or lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How many resources of this logical id ended before: part of the client token.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(attempt: &u32) -> bool {
    *attempt == 0
}

/// The meaning of reads that do not show a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// The resource does not exist and may be created.
    Certain,
    /// The resource may exist and not be visible yet; read again after so many seconds.
    Settling(u64),
}

/// State that survives a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// Creates that were intended, and what came of them.
    pub records: BTreeMap<LogicalId, Record>,
    /// When attributes that only extra calls show were last found right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deep_checked: Option<Timestamp>,
    /// Since when the deletion goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deleting_since: Option<Timestamp>,
    /// The code by which AWS refused a regional NAT gateway. It stays while the spec asks for one:
    /// the public addresses must not change by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regional_nat_refusal: Option<String>,
    /// Since when a delete is refused because something is still in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_since: Option<Timestamp>,
}

impl Memory {
    /// The id that AWS answered to the create of a logical id, if it has.
    pub fn id(&self, logical: &LogicalId) -> Option<&str> {
        self.records.get(logical)?.id.as_deref()
    }

    /// Whether AWS answered one of our creates with this id.
    pub fn has_recorded(&self, id: &str) -> bool {
        self.records.values().any(|record| record.id.as_deref() == Some(id))
    }

    /// Decides whether a resource that no read shows is absent
    /// (`rule:intent-before-unprotected-create`).
    pub(crate) fn absence(&self, logical: &LogicalId, now: Timestamp) -> Absence {
        let wait = match self.records.get(logical) {
            Some(Record { id: Some(_), since, .. }) => since.plus(LATE).left(now),
            Some(record) if !logical.is_protected() => record.since.plus(READS_CATCH_UP).left(now),
            _ => 0,
        };
        if wait == 0 { Absence::Certain } else { Absence::Settling(wait) }
    }

    /// The attempt that a create of this logical id has to carry in its client token, when `ended` is
    /// the highest attempt seen on a resource that has ended (`rule:token-changes-after-an-end`).
    pub fn attempt(&self, logical: &LogicalId, ended: Option<u32>, now: Timestamp) -> u32 {
        let recorded = self.records.get(logical).map_or(0, |record| {
            let gone = record.id.is_some() && record.since.age(now) >= LATE;
            record.attempt + u32::from(gone)
        });
        recorded.max(ended.map_or(0, |attempt| attempt + 1))
    }

    /// From when on a read shows everything that was ever created.
    pub fn reads_are_complete_from(&self) -> Timestamp {
        let newest = self.records.values().map(|record| record.since).max();
        newest.or(self.deleting_since).unwrap_or_default().plus(READS_CATCH_UP)
    }
}

/// The name of a resource in the plan of a cluster: at most one resource has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LogicalId {
    /// The VPC.
    Vpc,
    /// The internet gateway.
    InternetGateway,
    /// The egress-only internet gateway.
    EgressOnlyGateway,
    /// The carrier gateway.
    CarrierGateway,
    /// A subnet, by its CIDR.
    Subnet(String),
    /// The elastic IP of a zone.
    Address(String),
    /// The NAT gateway of a zone, or [`REGIONAL`].
    NatGateway(String),
    /// The route table of a subnet, by the subnet's CIDR.
    RouteTable(String),
    /// A security group, by its role.
    SecurityGroup(String),
    /// The bastion.
    Bastion,
    /// The load balancer of the API server.
    LoadBalancer,
    /// The second load balancer of the API server, by its name.
    NamedLoadBalancer(String),
    /// The target group of the API server.
    TargetGroup,
    /// Another target group, by its name.
    NamedTargetGroup(String),
}

impl LogicalId {
    /// Whether AWS itself refuses or answers a second create with the first resource: by its client
    /// token, or because the CIDR or the name is taken. The others need an intent
    /// (`rule:intent-before-unprotected-create`).
    pub fn is_protected(&self) -> bool {
        !matches!(self, Self::Vpc | Self::InternetGateway | Self::Address(_))
    }

    /// The key within the kind, such as a zone; empty where the cluster has one resource of the
    /// kind.
    pub(crate) fn name(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Vpc => ("vpc", ""),
            Self::InternetGateway => ("internet-gateway", ""),
            Self::EgressOnlyGateway => ("egress-only-gateway", ""),
            Self::CarrierGateway => ("carrier-gateway", ""),
            Self::Subnet(cidr) => ("subnet", cidr),
            Self::Address(zone) => ("address", zone),
            Self::NatGateway(zone) => ("nat-gateway", zone),
            Self::RouteTable(cidr) => ("route-table", cidr),
            Self::SecurityGroup(role) => ("security-group", role),
            Self::Bastion => ("bastion", ""),
            Self::LoadBalancer => ("load-balancer", ""),
            Self::NamedLoadBalancer(name) => ("load-balancer", name),
            Self::TargetGroup => ("target-group", ""),
            Self::NamedTargetGroup(name) => ("target-group", name),
        }
    }
}

impl fmt::Display for LogicalId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            (kind, "") => formatter.write_str(kind),
            (kind, name) => write!(formatter, "{kind}/{name}"),
        }
    }
}

/// A text that names no resource of a cluster.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read logical id {text:?}: expected a kind such as \"vpc\" or \"subnet/10.0.0.0/24\""
)]
pub struct LogicalIdError {
    text: String,
}

impl FromStr for LogicalId {
    type Err = LogicalIdError;

    fn from_str(text: &str) -> Result<Self, LogicalIdError> {
        let (kind, name) = text.split_once('/').unwrap_or((text, ""));
        let owned = name.to_owned();
        match (kind, name.is_empty()) {
            ("vpc", true) => Ok(Self::Vpc),
            ("internet-gateway", true) => Ok(Self::InternetGateway),
            ("egress-only-gateway", true) => Ok(Self::EgressOnlyGateway),
            ("carrier-gateway", true) => Ok(Self::CarrierGateway),
            ("bastion", true) => Ok(Self::Bastion),
            ("load-balancer", true) => Ok(Self::LoadBalancer),
            ("load-balancer", false) => Ok(Self::NamedLoadBalancer(owned)),
            ("target-group", true) => Ok(Self::TargetGroup),
            ("target-group", false) => Ok(Self::NamedTargetGroup(owned)),
            ("subnet", false) => Ok(Self::Subnet(owned)),
            ("address", false) => Ok(Self::Address(owned)),
            ("nat-gateway", false) => Ok(Self::NatGateway(owned)),
            ("route-table", false) => Ok(Self::RouteTable(owned)),
            ("security-group", false) => Ok(Self::SecurityGroup(owned)),
            _ => Err(LogicalIdError { text: text.to_owned() }),
        }
    }
}

impl TryFrom<String> for LogicalId {
    type Error = LogicalIdError;

    fn try_from(text: String) -> Result<Self, LogicalIdError> {
        text.parse()
    }
}

impl From<LogicalId> for String {
    fn from(id: LogicalId) -> Self {
        id.to_string()
    }
}

/// The client token of a create: equal for the same logical id and attempt, whoever asks
/// (`rule:token-changes-after-an-end`).
///
/// EC2 takes up to 64 ASCII characters; these are 32 of hexadecimal.
pub(crate) fn client_token(owner_id: &str, logical: &LogicalId, attempt: u32) -> String {
    let text = format!("{owner_id}\n{logical}\n{attempt}");
    Sha256::digest(text.as_bytes()).iter().take(16).fold(String::new(), |mut token, byte| {
        let _infallible = write!(token, "{byte:02x}");
        token
    })
}

/// Seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time so many seconds later.
    #[must_use]
    pub fn plus(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Seconds from this time until `now`; 0 when it lies in the future.
    pub fn age(self, now: Self) -> u64 {
        now.0.saturating_sub(self.0)
    }

    /// Seconds from `now` until this time; 0 when it has passed.
    pub fn left(self, now: Self) -> u64 {
        self.0.saturating_sub(now.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    fn zone() -> String {
        "us-east-2a".to_owned()
    }

    fn memory(logical: LogicalId, age: u64, id: Option<&str>, attempt: u32) -> Memory {
        let since = Timestamp(NOW.0 - age);
        let record = Record { since, id: id.map(str::to_owned), attempt };
        Memory { records: BTreeMap::from([(logical, record)]), ..Memory::default() }
    }

    #[test]
    fn what_is_not_seen_is_created_only_when_it_would_be_seen() {
        let absence = |logical: LogicalId, age, id| {
            memory(logical.clone(), age, id, 0).absence(&logical, NOW)
        };
        assert_eq!(Memory::default().absence(&LogicalId::Vpc, NOW), Absence::Certain);
        // rule:intent-before-unprotected-create
        assert_eq!(absence(LogicalId::Vpc, 12, None), Absence::Settling(18));
        assert_eq!(absence(LogicalId::Vpc, READS_CATCH_UP, None), Absence::Certain);
        assert_eq!(absence(LogicalId::Address(zone()), 29, None), Absence::Settling(1));
        assert_eq!(absence(LogicalId::Bastion, 1, None), Absence::Certain, "its token protects it");
        assert_eq!(absence(LogicalId::Bastion, 1, Some("i-1")), Absence::Settling(59), "it exists");
        assert_eq!(absence(LogicalId::Vpc, LATE, Some("vpc-1")), Absence::Certain);
    }

    #[test]
    fn the_attempt_rises_with_each_end_and_never_falls() {
        let logical = LogicalId::NatGateway(zone());
        let attempt = |age, id, attempt, ended| {
            memory(logical.clone(), age, id, attempt).attempt(&logical, ended, NOW)
        };
        assert_eq!(Memory::default().attempt(&logical, None, NOW), 0);
        assert_eq!(Memory::default().attempt(&logical, Some(2), NOW), 3, "a dead one is seen");
        assert_eq!(attempt(10, None, 2, None), 2, "the same create is sent again");
        assert_eq!(attempt(LATE, Some("nat-1"), 2, None), 3, "it was made and is gone");
        assert_eq!(attempt(LATE, None, 4, Some(1)), 4);
    }

    #[test]
    fn tokens_differ_by_owner_place_and_attempt_and_by_nothing_else() {
        let (table, nat) =
            (LogicalId::RouteTable("10.0.0.0/24".to_owned()), LogicalId::NatGateway(zone()));
        let token = client_token("owner", &nat, 0);
        assert_eq!(token, client_token("owner", &nat, 0));
        assert_eq!(token.len(), 32);
        assert!(token.chars().all(|letter| letter.is_ascii_hexdigit()));
        for other in [
            client_token("other", &nat, 0),
            client_token("owner", &table, 0),
            client_token("owner", &nat, 1),
        ] {
            assert_ne!(token, other);
        }
    }

    #[test]
    fn what_is_stored_is_read_back() {
        let mut memory =
            memory(LogicalId::Subnet("10.0.0.0/24".to_owned()), 5, Some("subnet-1"), 3);
        memory.deep_checked = Some(NOW);
        memory.blocked_since = Some(NOW);
        let logicals = [
            LogicalId::Vpc,
            LogicalId::InternetGateway,
            LogicalId::EgressOnlyGateway,
            LogicalId::CarrierGateway,
            LogicalId::Address(zone()),
            LogicalId::NatGateway(zone()),
            LogicalId::RouteTable("10.0.0.0/24".to_owned()),
            LogicalId::SecurityGroup("node".to_owned()),
            LogicalId::Bastion,
            LogicalId::LoadBalancer,
            LogicalId::TargetGroup,
            LogicalId::NamedLoadBalancer("name".to_owned()),
            LogicalId::NamedTargetGroup("name".to_owned()),
        ];
        for logical in logicals {
            memory.records.insert(logical, Record { since: NOW, id: None, attempt: 0 });
        }
        let text = serde_json::to_string(&memory).unwrap();
        assert!(
            text.contains(r#""subnet/10.0.0.0/24":{"since":995,"id":"subnet-1","attempt":3}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), memory);
        assert_eq!(serde_json::from_str::<Memory>("{}").unwrap(), Memory::default());
        for bad in ["house", "vpc/1", "subnet", "subnet/"] {
            let error = bad.parse::<LogicalId>().unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:?}")), "{error}");
        }
    }

    #[test]
    fn reads_are_complete_half_a_minute_after_the_last_create() {
        let mut memory = memory(LogicalId::Vpc, 100, Some("vpc-1"), 0);
        memory.records.insert(LogicalId::Bastion, Record { since: NOW, id: None, attempt: 0 });
        memory.deleting_since = Some(NOW.plus(500));
        assert_eq!(memory.reads_are_complete_from(), NOW.plus(READS_CATCH_UP));
        let lost = Memory { deleting_since: Some(NOW), ..Memory::default() };
        assert_eq!(
            lost.reads_are_complete_from(),
            NOW.plus(READS_CATCH_UP),
            "nothing is known of creates"
        );
    }
}
