//! [`LogicalId`]: which of its resources a cluster means, before AWS has given it an id. The word
//! is CloudFormation's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A place in the plan of a cluster that at most one resource fills.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum LogicalId {
    /// The VPC.
    Vpc,
    /// The internet gateway.
    InternetGateway,
    /// A subnet, by its CIDR.
    Subnet(String),
    /// The elastic IP of a zone.
    Address(String),
    /// The NAT gateway of a zone.
    NatGateway(String),
    /// The route table of a subnet, by the subnet's CIDR.
    RouteTable(String),
    /// A security group, by its role.
    SecurityGroup(String),
    /// The bastion.
    Bastion,
    /// The load balancer of the API server.
    LoadBalancer,
    /// The target group of a network load balancer.
    TargetGroup,
}

impl LogicalId {
    /// Whether AWS itself refuses or answers a second create with the first resource: by its client
    /// token, or because the CIDR or the name is taken. The others need an intent
    /// (`rule:intent-before-unprotected-create`).
    pub fn is_protected(&self) -> bool {
        !matches!(self, Self::Vpc | Self::InternetGateway | Self::Address(_))
    }

    /// What tells it from others of its kind, such as a zone; empty where there is but one.
    pub(crate) fn name(&self) -> &str {
        self.parts().1
    }

    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Vpc => ("vpc", ""),
            Self::InternetGateway => ("internet-gateway", ""),
            Self::Subnet(cidr) => ("subnet", cidr),
            Self::Address(zone) => ("address", zone),
            Self::NatGateway(zone) => ("nat-gateway", zone),
            Self::RouteTable(cidr) => ("route-table", cidr),
            Self::SecurityGroup(role) => ("security-group", role),
            Self::Bastion => ("bastion", ""),
            Self::LoadBalancer => ("load-balancer", ""),
            Self::TargetGroup => ("target-group", ""),
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
            ("bastion", true) => Ok(Self::Bastion),
            ("load-balancer", true) => Ok(Self::LoadBalancer),
            ("target-group", true) => Ok(Self::TargetGroup),
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
