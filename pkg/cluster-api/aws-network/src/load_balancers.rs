//! Load balancers as AWS describes them: classic ones, and those of the second generation (network,
//! application).
#![allow(missing_docs, reason = "most fields have the names that AWS or the CRD gives them")]

use crate::identity::Tags;

/// From where a load balancer can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// Everybody.
    InternetFacing,
    /// The VPC and what is connected to it.
    Internal,
}

/// How a load balancer finds out which instances are well. Times in seconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HealthCheck {
    /// `TCP`, `SSL`, `HTTP` or `HTTPS`.
    pub protocol: String,
    pub port: u16,
    pub path: Option<String>,
    /// The time between two health checks, in seconds.
    pub interval: u32,
    /// Until a check counts as failed.
    pub timeout: u32,
    /// Checks in a row until an instance is well.
    pub healthy: u32,
    /// Checks in a row until it is not.
    pub unhealthy: u32,
}

/// A TCP listener of a classic load balancer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassicListener {
    pub port: u16,
    /// The port of the instances.
    pub instance_port: u16,
    /// Whether both sides speak TCP.
    pub tcp: bool,
}

/// Attributes of a classic load balancer, which an extra call shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClassicAttributes {
    /// Seconds until an idle connection is closed.
    pub idle_timeout: u32,
    /// Every node of the load balancer serves all zones.
    pub cross_zone: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassicLoadBalancer {
    /// Name, unique in account and region.
    pub name: String,
    pub vpc: String,
    pub scheme: Scheme,
    /// DNS name; empty for a moment after the creation.
    pub dns_name: String,
    pub listeners: Vec<ClassicListener>,
    pub health_check: HealthCheck,
    pub subnets: Vec<String>,
    pub groups: Vec<String>,
    /// Attributes; none when they were not read.
    pub attributes: Option<ClassicAttributes>,
    /// Tags; none when they were not read.
    pub tags: Option<Tags>,
}

/// A listener of a network load balancer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkListener {
    pub arn: String,
    pub port: u16,
    /// ARN of the target group it leads to.
    pub target_group: String,
    pub tags: Tags,
}

/// Attributes of a target group, which an extra call shows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetAttributes {
    /// Targets see the address of the client.
    pub preserve_client_ip: bool,
    /// Connections to a target end when it becomes unhealthy.
    pub terminates_connections: bool,
    /// Seconds until they end otherwise.
    pub draining_interval: u32,
}

impl TargetAttributes {
    /// The attributes that AWS gives to a new target group for instances.
    pub const OF_AWS: Self =
        Self { preserve_client_ip: true, terminates_connections: true, draining_interval: 0 };
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetGroup {
    pub arn: String,
    /// Name, unique in account and region.
    pub name: String,
    /// The VPC of its targets.
    pub vpc: String,
    /// Whether targets are reached by IPv6.
    pub is_ipv6: bool,
    /// How targets are checked.
    pub health_check: HealthCheck,
    /// Attributes; none when they were not read.
    pub attributes: Option<TargetAttributes>,
    pub tags: Tags,
}

/// The state of a load balancer of the second generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalancerState {
    /// Being made.
    Provisioning,
    /// In service, perhaps without the room to grow.
    Active,
    /// The creation has failed for good.
    Failed,
}

/// A load balancer of the second generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkLoadBalancer {
    pub arn: String,
    /// Name, unique in account and region.
    pub name: String,
    pub vpc: String,
    pub scheme: Scheme,
    /// Whether clients reach it by IPv6 too.
    pub is_dualstack: bool,
    pub dns_name: String,
    pub state: BalancerState,
    pub subnets: Vec<String>,
    pub groups: Vec<String>,
    /// Every node serves all zones; none when the attribute was not read.
    pub cross_zone: Option<bool>,
    pub listeners: Vec<NetworkListener>,
    pub tags: Tags,
}
