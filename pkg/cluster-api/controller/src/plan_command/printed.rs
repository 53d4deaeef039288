//! A plan, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::aws_plan::Planned;

/// Whether all of it can be made.
pub(super) fn is_complete(planned: &Planned) -> bool {
    planned.outcome.as_ref().is_ok_and(|forecast| forecast.is_reached)
}

/// One paragraph for each AWSCluster.
pub(super) fn text(all: &[Planned]) -> String {
    let paragraphs: Vec<_> = all.iter().map(paragraph).collect();
    paragraphs.join("\n")
}

fn paragraph(planned: &Planned) -> String {
    let Planned { namespace, name, region, outcome } = planned;
    let mut text = format!("AWSCluster {namespace}/{name}");
    match outcome {
        Err(errors) => {
            text.push_str(" cannot be planned\n");
            for error in errors {
                let _infallible = writeln!(text, "  error: {error}");
            }
        }
        Ok(said) => {
            let number = said.writes.len();
            let writes = if number == 1 { "write" } else { "writes" };
            let _infallible = writeln!(text, " in {region}: {number} {writes}");
            for planned in &said.writes {
                let _infallible = writeln!(text, "  {}", planned.action.in_full());
            }
            for problem in &said.problems {
                let _infallible =
                    writeln!(text, "  {}: {}", problem.reason.as_str(), problem.message);
            }
        }
    }
    text
}

/// A list with all that is known of each.
pub(super) fn json(all: &[Planned]) -> String {
    let all: Vec<Value> = all.iter().map(object).collect();
    format!("{:#}\n", Value::Array(all))
}

fn object(planned: &Planned) -> Value {
    let Planned { namespace, name, region, outcome } = planned;
    let mut object = json!({"namespace": namespace, "name": name, "region": region});
    match outcome {
        Err(errors) => {
            let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
            object["errors"] = json!(errors);
        }
        Ok(said) => {
            let writes: Vec<_> = said.writes.iter().map(|it| it.action.in_full()).collect();
            let problem = |it: &aws_network::Problem| json!({"reason": it.reason.as_str(), "message": it.message});
            object["writes"] = json!(writes);
            object["problems"] = said.problems.iter().map(problem).collect();
        }
    }
    object
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

    #[test]
    fn people_read_each_write() {
        let text = text(&planned());
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("AWSCluster default/testnetwork3 in us-east-2: "), "{text}");
        assert_eq!(lines[1], "  CreateVpc");
        for line in [
            "  CreateSubnet for 10.66.0.160/27",
            "  NatSingleZone: all private subnets depend on the zone of one NAT gateway",
            "  CreateRoute of route-table/10.66.0.0/27: + 0.0.0.0/0 to internet-gateway",
            "AWSCluster default/wrong cannot be planned",
        ] {
            assert!(lines.contains(&line), "{line} is not in {text}");
        }
        assert!(planned().iter().map(is_complete).eq([true, false]));
    }

    #[test]
    fn programs_read_the_same() {
        let all: Value = serde_json::from_str(&json(&planned())).unwrap();
        assert_eq!(all[0]["writes"][0], "CreateVpc");
        assert_eq!(all[0]["problems"][0]["reason"], "NatSingleZone");
        assert!(all[1]["errors"][0].as_str().unwrap().starts_with("cannot use spec: "), "{all}");
    }
}
