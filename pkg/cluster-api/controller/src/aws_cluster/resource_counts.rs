//! What there is of a cluster on AWS, counted for metrics. Pure.

use aws_network::{Identity, InstanceState, NatState, Observed, Tags};

/// Kind and state of resources, and how many there are. The same kinds and states each time.
pub(super) type Counts = Vec<(&'static str, &'static str, usize)>;

/// States of what has no state that counts.
const PRESENT: &str = "present";

/// Counts what carries the marks of the cluster.
pub(super) fn of(identity: &Identity, observed: &Observed) -> Counts {
    let owns = |tags: &Tags| identity.owns(tags);
    let nats = |state: NatState| {
        let all = observed.nat_gateways.all().iter();
        all.filter(|it| it.state == state && owns(&it.tags)).count()
    };
    let bastions = |state: InstanceState| {
        let all = observed.bastions.all().iter();
        all.filter(|it| it.state == state && owns(&it.tags)).count()
    };
    let present = [
        ("vpc", count(observed.vpcs.all(), |it| owns(&it.tags))),
        ("subnet", count(observed.subnets.all(), |it| owns(&it.tags))),
        ("internet_gateway", count(observed.internet_gateways.all(), |it| owns(&it.tags))),
        ("elastic_ip", count(observed.addresses.all(), |it| owns(&it.tags))),
        ("route_table", count(observed.route_tables.all(), |it| owns(&it.tags))),
        ("security_group", count(observed.security_groups.all(), |it| owns(&it.tags))),
    ];
    let mut counts: Counts =
        present.into_iter().map(|(kind, number)| (kind, PRESENT, number)).collect();
    counts.extend([
        ("nat_gateway", "pending", nats(NatState::Pending)),
        ("nat_gateway", "available", nats(NatState::Available)),
        ("nat_gateway", "failed", nats(NatState::Failed)),
        ("nat_gateway", "deleting", nats(NatState::Deleting)),
        ("instance", "pending", bastions(InstanceState::Pending)),
        ("instance", "running", bastions(InstanceState::Running)),
        ("instance", "stopped", bastions(InstanceState::Stopped)),
    ]);
    counts
}

fn count<T>(all: &[T], is_meant: impl Fn(&T) -> bool) -> usize {
    all.iter().filter(|it| is_meant(it)).count()
}
