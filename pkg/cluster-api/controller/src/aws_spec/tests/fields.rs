//! Each field of the spec of an AWSCluster, set, changed, reverted and refused on a cluster that
//! exists: the end is what a cluster has that always had this spec.
//!
//! | module | part |
//! |---|---|
//! | `table` | values of each field |
//! | `exceptions` | fields that cannot follow, and why |
//! | `driver` | carries out reconciliations, as in the tests of `aws-network` |

use api_server_double::fields::{Crd, set};
use aws_network::{Action, Goal, LogicalId, ROLE_TAG, Rest, SecurityGroup, Subnet, Tags, Vpc};
use cloud_double::{Cloud, Nature, differences, inventory};

use super::*;
use driver::World;
use exceptions::{EXCEPTIONS, REPORTED};
use table::{Row, rows};

mod exceptions;
mod table;

#[path = "../../../../aws-network/tests/convergence/driver.rs"]
#[allow(dead_code, reason = "the tests of `aws-network` use the rest")]
mod driver;

/// An AWSCluster with what AWS has for it.
struct Cluster {
    dialect: Dialect,
    world: World,
    /// Keys of additional tags that were applied, which the product keeps in an annotation.
    applied: BTreeSet<String>,
    /// How the bastion was launched, which the description of an instance does not show.
    launched: Option<(String, String, Option<String>)>,
    is_published: bool,
}

impl Cluster {
    fn new(dialect: Dialect) -> Self {
        let mut world = World::new(Nature::PROMPT, 7);
        add_resources_of_others(&mut world.cloud);
        Self { dialect, world, applied: BTreeSet::new(), launched: None, is_published: false }
    }

    /// A cluster that has had this spec from the beginning.
    fn fresh(dialect: Dialect, spec: &Value) -> (Vec<String>, Vec<String>) {
        let mut cluster = Self::new(dialect);
        let problems = cluster.settle(spec);
        (cluster.inventory(), problems)
    }

    fn goal(&mut self, spec: &Value) -> Result<(Goal, Vec<SpecError>), Vec<SpecError>> {
        let mut typed: AwsClusterSpec = serde_json::from_value(spec.clone()).unwrap();
        assert_eq!(&serde_json::to_value(&typed).unwrap(), spec, "a write keeps all fields");
        if self.is_published && typed.control_plane_endpoint.is_none() {
            let host = "apiserver-1.us-east-2.elb.amazonaws.com".to_owned();
            typed.control_plane_endpoint = Some(Endpoint { host, port: 6443 });
        }
        let port = typed.control_plane_endpoint.as_ref().filter(|it| it.is_set());
        let port = port.map_or(6443, |it| u16::try_from(it.port).unwrap());
        let memory = &self.world.memory;
        let given = Circumstances {
            identity: aws_fixtures::identity(),
            applied_tags: self.applied.clone(),
            api_port: port,
            created_load_balancer: memory.id(&LogicalId::LoadBalancer).map(str::to_owned),
            ..given(self.dialect)
        };
        let wanted = read(&typed, &given)?;
        let desired = Desired::from_spec(&wanted.spec)?;
        let unsupported = [wanted.unsupported, desired.contradictions.clone()].concat();
        if self.world.memory.records.is_empty() {
            refuse_unsupported(&unsupported)?;
        }
        self.applied.extend(typed.additional_tags.into_keys());
        Ok((Goal::Present(Box::new(desired)), unsupported))
    }

    /// Follows a spec until nothing is left to do; returns what is reported to the user.
    fn settle(&mut self, spec: &Value) -> Vec<String> {
        let (goal, unsupported) = match self.goal(spec) {
            Ok(read) => read,
            Err(errors) => return errors.iter().map(ToString::to_string).collect(),
        };
        self.world.cloud.advance(3600); // the deep check is due
        self.world.writes.clear();
        let (reconciliation, rest) = self.world.run_once_for(&goal, 3600);
        let mut launches = self.world.writes.iter().filter_map(|write| match &write.action {
            Action::RunBastion { launch, .. } => {
                Some((launch.instance_type.clone(), launch.image.clone(), launch.key.clone()))
            }
            _ => None,
        });
        self.launched = launches.next_back().or(self.launched.take());
        let has_balancer = matches!(&goal, Goal::Present(it) if it.load_balancer.is_some());
        self.is_published |= has_balancer;
        if rest == Some(Rest::Reached) {
            self.world.run_later(&goal);
            assert!(self.world.writes.is_empty(), "written again: {:#?}", self.world.writes);
        }
        let problems = reconciliation.problems();
        let is_told = !unsupported.is_empty() || !problems.is_empty();
        assert!(rest == Some(Rest::Reached) || is_told, "it waits without a report");
        let problems = problems.into_iter().filter(|it| !it.reason.is_advice());
        let problems = problems.map(|it| it.message);
        unsupported.iter().map(ToString::to_string).chain(problems).collect()
    }

    fn inventory(&self) -> Vec<String> {
        let mut lines = inventory(&self.world.cloud);
        if let Some(launched) = &self.launched
            && lines.iter().any(|line| line.starts_with("instance"))
        {
            lines.push(format!("bastion {launched:?}"));
        }
        lines
    }
}

/// A VPC of others with two subnets, and security groups of others.
fn add_resources_of_others(cloud: &mut Cloud) {
    let cidr = |text| cidr::parse(text).unwrap();
    let id = "vpc-theirs";
    let (dns_support, dns_hostnames) = (Some(true), Some(true));
    let (vpc, tags) = (id.to_owned(), Tags::new());
    let range = cidr("10.1.0.0/16");
    let theirs = Vpc {
        id: vpc.clone(),
        cidr: range,
        secondary: Vec::new(),
        ipv6: None,
        more_ipv6: Vec::new(),
        dns_support,
        dns_hostnames,
        tags,
    };
    cloud.vpcs.put(id, 0, theirs);
    for (id, range, zone) in [
        ("subnet-f0000001", "10.1.1.0/24", "us-east-2a"),
        ("subnet-f0000002", "10.1.2.0/24", "us-east-2b"),
    ] {
        let tags = Tags::from([(ROLE_TAG.to_owned(), "public".to_owned())]);
        let (cidr, map_public_ip, available) = (cidr(range), true, true);
        let (vpc, zone) = (vpc.clone(), zone.to_owned());
        let found = Subnet {
            id: id.to_owned(),
            vpc,
            cidr,
            ipv6: None,
            zone,
            map_public_ip,
            assigns_ipv6: false,
            available,
            tags,
        };
        cloud.subnets.put(id, 0, found);
    }
    for id in ["sg-one", "sg-two"] {
        let (id, vpc, name) = (id.to_owned(), vpc.clone(), id.to_owned());
        let group =
            SecurityGroup { id: id.clone(), vpc, name, rules: Vec::new(), tags: Tags::new() };
        cloud.groups.put(&id, 0, group);
    }
}

/// A step of a row after which the cluster is not as it should be, with the reports and the differences.
type Deviation = (&'static str, Vec<String>, Vec<String>);

fn play(row: &Row) -> Vec<Deviation> {
    let Row { path, one, other, refused, acts, .. } = row;
    let dialect = row.dialect();
    let with = |value: &Value| {
        let mut spec = row.start();
        set(&mut spec, path, value);
        spec
    };
    let mut cluster = Cluster::new(dialect);
    let reports = cluster.settle(&row.start());
    assert_eq!(reports, [""; 0], "{path}: the start has problems");
    let start = cluster.inventory();
    let mut deviations = Vec::new();
    let mut ends = vec![start.clone()];
    for (step, value) in [("set", one), ("change", other)] {
        if value.is_null() {
            continue;
        }
        let spec = with(value);
        let (wanted, reports) = Cluster::fresh(dialect, &spec);
        assert_eq!(reports, [""; 0], "{path}: {value} is not valid");
        let reports = cluster.settle(&spec);
        let found = differences(&cluster.inventory(), &wanted);
        if !found.is_empty() {
            deviations.push((step, reports, found));
        }
        ends.push(wanted);
    }
    let differ = ends.windows(2).all(|pair| pair[0] != pair[1]);
    let same = ends.iter().all(|end| *end == start);
    assert!(if *acts { differ } else { same }, "{path}: acts is not {acts}");
    let reports = cluster.settle(&row.start());
    let found = differences(&cluster.inventory(), &start);
    if !found.is_empty() {
        deviations.push(("revert", reports, found));
    }
    if !refused.is_null() {
        let mut cluster = Cluster::new(dialect);
        cluster.settle(&row.start());
        let reports = cluster.settle(&with(refused));
        assert!(!reports.is_empty(), "{path}: {refused} is not refused");
        let found = differences(&cluster.inventory(), &start);
        if !found.is_empty() {
            deviations.push(("refuse", reports, found));
        }
        let (_, reports) = Cluster::fresh(dialect, &with(refused));
        assert!(!reports.is_empty(), "{path}: {refused} is not refused for a new cluster");
    }
    deviations
}

fn fields_of(kind: &str, spec: &str) -> BTreeSet<String> {
    let crd = Crd::read(&format!("config/crd/infrastructure.cluster.x-k8s.io_{kind}.yaml"));
    let below = |leaf: String| leaf[spec.len() + 1..].to_owned();
    let fields = crd.leaves(spec).into_iter().filter(|leaf| !leaf.ends_with('*'));
    fields.map(below).collect()
}

#[test]
fn the_table_has_each_field_of_an_aws_cluster_and_of_its_template() {
    let known: BTreeSet<_> = rows().into_iter().map(|row| row.path).collect();
    let cluster = fields_of("awsclusters", "spec");
    assert_eq!(fields_of("awsclustertemplates", "spec.template.spec"), cluster);
    let missing: Vec<_> = cluster.difference(&known).collect();
    let surplus: Vec<_> = known.difference(&cluster).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "{missing:#?} {surplus:#?}");
    assert!(known.len() > 200, "{} fields", known.len());
}

#[test]
fn a_field_that_is_set_changed_reverted_or_refused_ends_as_if_it_had_always_been_so() {
    let steps = |(path, steps, reason): &(&str, &[&'static str], &'static str)| -> Vec<_> {
        steps.iter().map(|step| (((*path).to_owned(), *step), *reason)).collect()
    };
    let known: BTreeMap<_, _> = EXCEPTIONS.iter().flat_map(steps).collect();
    let mut unused: BTreeSet<_> = known.keys().cloned().collect();
    let mut unknown = Vec::new();
    for row in rows() {
        // Both networks have the same fields.
        let path = row.path.replace("networkSpec.", "network.");
        for (step, reports, found) in play(&row) {
            let place = (path.clone(), step);
            unused.remove(&place);
            let is_told = !reports.is_empty();
            if known.get(&place).is_none_or(|reason| reason.contains(REPORTED) && !is_told) {
                unknown.push((row.path.clone(), row.is_dual_stack, step, reports, found));
            }
        }
    }
    assert!(unknown.is_empty(), "{} deviations: {unknown:#?}", unknown.len());
    assert!(unused.is_empty(), "exceptions of fields that follow: {unused:#?}");
}
