//! The IAM policy that the project ships: what is called, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;
use tests::programs::workspace;

/// Names that a pattern of the source is followed by, such as `ec2_read("DescribeVpcs")`.
fn named(text: &str, pattern: &str) -> BTreeSet<String> {
    let rest = text.split(pattern).skip(1);
    rest.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.push_str(&sources(&path));
        } else {
            all.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    all
}

/// Every call of the executor, with its service.
fn called() -> BTreeSet<String> {
    let folder = workspace().join("pkg/cluster-api/aws/src");
    let mut all = sources(&folder);
    all.retain(|letter| !letter.is_whitespace());
    let table = workspace().join("pkg/cluster-api/aws-network/src/action_text.rs");
    let table = fs::read_to_string(table).unwrap();
    let (table, _) = table.split_once("mod tests").unwrap();
    let (ec2, balancers) = table.split_once("impl ElbAction").unwrap();
    let mut called = BTreeSet::new();
    for (service, reads, writes) in
        [("ec2", "ec2", ec2), ("elasticloadbalancing", "balancer", balancers)]
    {
        // The names of the calls in the table of writes are the only words there that begin so.
        let writes = named(writes, "(\"");
        let reads = [format!("{reads}_read(\""), format!("{reads}_pages!(self,\"")]
            .into_iter()
            .flat_map(|pattern| named(&all, &pattern));
        let actions = writes.into_iter().chain(reads);
        let actions = actions.filter(|word| word.starts_with(char::is_uppercase));
        called.extend(actions.map(|action| format!("{service}:{action}")));
    }
    called
}

#[test]
fn the_policy_allows_what_is_called_and_nothing_else() {
    let text = fs::read_to_string(workspace().join("config/iam/controller.json")).unwrap();
    let policy: Value = serde_json::from_str(&text).unwrap();
    let statements = policy["Statement"].as_array().unwrap();
    let actions = statements.iter().flat_map(|statement| statement["Action"].as_array().unwrap());
    let mut allowed: BTreeSet<_> =
        actions.map(|action| action.as_str().unwrap().to_owned()).collect();
    // AWS makes these roles with the first load balancer and the first regional NAT gateway of an
    // account, in the name of who makes them.
    assert!(allowed.remove("iam:CreateServiceLinkedRole"));
    let services = statements
        .iter()
        .filter_map(|it| it["Condition"]["StringLike"]["iam:AWSServiceName"].as_str());
    let services: Vec<_> = services.collect();
    assert_eq!(services, ["elasticloadbalancing.amazonaws.com", "ec2-nat-gateway.amazonaws.com"]);
    let called = called();
    assert!(called.len() > 60, "{called:?}");
    assert_eq!(allowed, called);
}

#[test]
fn the_policy_for_roles_allows_nothing_but_to_assume_roles() {
    let text = fs::read_to_string(workspace().join("config/iam/identities.json")).unwrap();
    let policy: Value = serde_json::from_str(&text).unwrap();
    let [statement] = &policy["Statement"].as_array().unwrap()[..] else { panic!("{policy}") };
    assert_eq!(statement["Action"], serde_json::json!(["sts:AssumeRole"]));
    assert_eq!(statement["Resource"], "arn:*:iam::*:role/*");
}

/// An instance, a network or an address without an owner tag belongs to another program, whatever the product believes.
#[test]
fn the_policy_ends_only_what_has_an_owner_tag() {
    let text = fs::read_to_string(workspace().join("config/iam/controller.json")).unwrap();
    let policy: Value = serde_json::from_str(&text).unwrap();
    let tag = format!("aws:ResourceTag/{}", aws_network::DEFAULT_OWNER_TAG);
    // Groups, interfaces and load balancers of Services have no tag of ours and go with the cluster.
    let of_services =
        ["SecurityGroup", "NetworkInterface", "LoadBalancer", "Listener", "TargetGroup"];
    // Parts of what is ours: the tag of the whole decides.
    let parts = ["Route", "Tags"];
    let mut guarded = 0;
    for statement in policy["Statement"].as_array().unwrap() {
        for action in statement["Action"].as_array().unwrap() {
            let action = action.as_str().unwrap().split_once(':').unwrap().1;
            let ends = ["Delete", "Terminate", "Release", "Detach"]
                .iter()
                .any(|it| action.starts_with(it));
            let is_free = of_services.iter().any(|it| action.contains(it))
                || parts.iter().any(|it| action == format!("Delete{it}"));
            if ends && !is_free && action != "DetachLoadBalancerFromSubnets" {
                assert_eq!(statement["Condition"]["Null"][&tag], "false", "{action}");
                guarded += 1;
            }
        }
    }
    assert_eq!(guarded, 10);
}
