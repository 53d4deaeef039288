//! A plan, for people and for programs.

use std::fmt::Write as _;

use aws_network::Upkeep;
use serde_json::{Value, json};

use crate::aws_plan::Planned;
use crate::prices::{Cost, Prices};

/// Hours of a month, as AWS's own calculator counts them.
const MONTH: f64 = 730.0;

/// Whether all of it can be made.
pub(super) fn is_complete(planned: &Planned) -> bool {
    planned.outcome.as_ref().is_ok_and(|made| made.forecast.is_reached)
}

/// One paragraph for each AWSCluster.
pub(super) fn text(all: &[Planned], prices: &Prices) -> String {
    let paragraphs: Vec<_> = all.iter().map(|planned| paragraph(planned, prices)).collect();
    paragraphs.join("\n")
}

fn paragraph(planned: &Planned, prices: &Prices) -> String {
    let Planned { namespace, name, region, outcome } = planned;
    let mut text = format!("AWSCluster {namespace}/{name}");
    match outcome {
        Err(errors) => {
            text.push_str(" cannot be planned\n");
            for error in errors {
                let _infallible = writeln!(text, "  error: {error}");
            }
        }
        Ok(made) => {
            let said = &made.forecast;
            let writes = counted(said.writes.len(), "write");
            let _infallible = writeln!(text, " in {region}: {writes}");
            for planned in &said.writes {
                let _infallible = writeln!(text, "  {}", planned.action.in_full());
            }
            for problem in &said.problems {
                let _infallible =
                    writeln!(text, "  {}: {}", problem.reason.as_str(), problem.message);
            }
            let paid = paid(&made.upkeep);
            let mut paid: Vec<_> =
                paid.iter().map(|(what, number)| counted(*number, what)).collect();
            if paid.is_empty() {
                paid.push("nothing".to_owned());
            }
            let _infallible = writeln!(text, "Paid by the hour: {}", paid.join(", "));
            if let Some(Cost { hourly, without_price }) = prices.cost(region, &made.upkeep) {
                let monthly = hourly * MONTH;
                let left_out = [vec!["traffic".to_owned()], without_price].concat().join(", ");
                let _infallible = writeln!(
                    text,
                    "Cost: {hourly:.4} an hour, {monthly:.2} in {MONTH} hours, without {left_out}"
                );
            }
        }
    }
    text
}

/// A list with all that is known of each.
pub(super) fn json(all: &[Planned], prices: &Prices) -> String {
    let all: Vec<Value> = all.iter().map(|planned| object(planned, prices)).collect();
    format!("{:#}\n", Value::Array(all))
}

fn object(planned: &Planned, prices: &Prices) -> Value {
    let Planned { namespace, name, region, outcome } = planned;
    let mut object = json!({"namespace": namespace, "name": name, "region": region});
    match outcome {
        Err(errors) => {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            object["errors"] = json!(errors);
        }
        Ok(made) => {
            let said = &made.forecast;
            let writes: Vec<_> = said.writes.iter().map(|it| it.action.in_full()).collect();
            let problem = |it: &aws_network::Problem| json!({"reason": it.reason.as_str(), "message": it.message});
            object["writes"] = json!(writes);
            object["problems"] = said.problems.iter().map(problem).collect();
            let paid = paid(&made.upkeep).into_iter();
            object["paidByTheHour"] = paid.map(|(what, number)| (several(&what), number)).collect();
            if let Some(cost) = prices.cost(region, &made.upkeep) {
                object["cost"] = json!({"hourly": cost.hourly, "withoutPrice": cost.without_price});
            }
        }
    }
    object
}

/// What there is to pay for, by the word for one of it.
fn paid(upkeep: &Upkeep) -> Vec<(String, usize)> {
    let all = [
        ("NAT gateway", upkeep.nat_gateways),
        ("public IPv4 address", upkeep.public_addresses),
        ("classic load balancer", upkeep.classic_load_balancers),
        ("network load balancer", upkeep.network_load_balancers),
    ];
    let all = all.into_iter().map(|(what, number)| (what.to_owned(), number));
    let instances = upkeep.instances.iter();
    let instances = instances.map(|(of_type, number)| (format!("{of_type} instance"), *number));
    all.chain(instances).filter(|(_, number)| *number > 0).collect()
}

/// A number of things, by the word for one of them.
fn counted(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {}", several(one)) }
}

fn several(one: &str) -> String {
    format!("{one}{}", if one.ends_with('s') { "es" } else { "s" })
}

#[cfg(test)]
mod tests {
    use crate::aws_plan::{Given, of_manifests};
    use aws_network::NatMode;

    use super::*;

    const SAMPLE: &str = include_str!("../../../../../config/samples/cluster-api.yaml");

    fn planned() -> Vec<Planned> {
        let mut objects: Vec<Value> = serde_saphyr::from_multiple(SAMPLE).unwrap();
        let wrong = json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "AWSCluster", "metadata": {"name": "wrong"}, "spec": {"region": 7}});
        objects.push(wrong);
        of_manifests(&objects, &Given { zones: Vec::new(), default_nat_mode: NatMode::Single })
    }

    fn prices() -> Prices {
        Prices::read("us-east-2:natGateway=0.045,publicIPv4=0.005,classicLoadBalancer=0.025")
            .unwrap()
    }

    #[test]
    fn people_read_each_write_and_what_is_paid() {
        let text = text(&planned(), &prices());
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("AWSCluster default/testnetwork3 in us-east-2: "), "{text}");
        assert_eq!(lines[1], "  CreateVpc");
        for line in [
            "  CreateSubnet for 10.66.0.160/27",
            "  NatSingleZone: all private subnets depend on the zone of one NAT gateway",
            "  CreateRoute of route-table/10.66.0.0/27: + 0.0.0.0/0 to internet-gateway",
            "Paid by the hour: 1 NAT gateway, 5 public IPv4 addresses, 1 classic load balancer, 1 t3.micro instance",
            "Cost: 0.0950 an hour, 69.35 in 730 hours, without traffic, t3.micro",
            "AWSCluster default/wrong cannot be planned",
        ] {
            assert!(lines.contains(&line), "{line} is not in {text}");
        }
        assert!(planned().iter().map(is_complete).eq([true, false]));
    }

    #[test]
    fn programs_read_the_same() {
        let all: Value = serde_json::from_str(&json(&planned(), &prices())).unwrap();
        assert_eq!(all[0]["writes"][0], "CreateVpc");
        assert_eq!(all[0]["paidByTheHour"]["NAT gateways"], 1);
        assert_eq!(all[0]["cost"]["withoutPrice"], json!(["t3.micro"]));
        assert_eq!(all[0]["problems"][0]["reason"], "NatSingleZone");
        assert!(all[1]["errors"][0].as_str().unwrap().starts_with("cannot use spec: "), "{all}");
    }
}
