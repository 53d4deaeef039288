//! [`SCENES`]: clusters whose every write is tried with every fault.

use aws_fixtures::{dual_stack, edge, with_nats};
use aws_network::{LoadBalancerKind, NatMode, Spec};
use cloud_double::Nature;

use crate::driver::World;
use crate::listeners::with_ports;
use crate::secondary::with_both;
use crate::vpc_cidrs::with_secondary;

pub(crate) const MODES: [NatMode; 4] =
    [NatMode::PerZone, NatMode::Single, NatMode::None, NatMode::Regional];

/// A cluster, whose name is shown in tables.
pub(crate) struct Scene(pub(crate) &'static str, fn() -> Spec);

/// A scene needs one line.
pub(crate) const SCENES: [Scene; 8] = [
    Scene("classic", || with_nats(NatMode::PerZone)),
    Scene("classic, secondary", || with_both(LoadBalancerKind::Classic)),
    Scene("network, listeners", || with_ports(&[8443, 9345])),
    Scene("network, secondary", || Spec {
        secondary_load_balancer: with_both(LoadBalancerKind::Network).secondary_load_balancer,
        ..with_ports(&[9345])
    }),
    Scene("dual stack", dual_stack),
    Scene("dual stack, second", || Spec {
        secondary_load_balancer: with_both(LoadBalancerKind::Network).secondary_load_balancer,
        ..dual_stack()
    }),
    Scene("secondary CIDR", with_secondary),
    Scene("edge zones", edge),
];

impl Scene {
    pub(crate) fn spec(&self, mode: NatMode) -> Spec {
        Spec { nat_mode: mode, ..(self.1)() }
    }
}

/// Numbers of VPCs, gateways, addresses, route tables, target groups and instances that there have ever been.
pub(crate) fn ever(world: &World) -> [usize; 6] {
    let cloud = &world.cloud;
    [
        cloud.vpcs.ever(),
        cloud.gateways.ever() + cloud.egress_only.ever() + cloud.carriers.ever(),
        cloud.addresses.ever(),
        cloud.tables.ever(),
        cloud.target_groups.ever(),
        cloud.instances.ever(),
    ]
}

/// A world without delays.
pub(crate) fn world() -> World {
    World::new(Nature::PROMPT, 3)
}
