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
    let folder = workspace().join("pkg/machinery/aws/src");
    let all = sources(&folder);
    let words = |files: &[&str]| {
        let folder = workspace().join("pkg/base/aws-network/src");
        files.iter().map(|file| fs::read_to_string(folder.join(file)).unwrap()).collect::<String>()
    };
    let (ec2, balancers) =
        (words(&["action_words.rs"]), words(&["elb_action.rs", "elbv2_action.rs"]));
    let mut called = BTreeSet::new();
    for (service, reads, writes) in
        [("ec2", "ec2_read(\"", ec2), ("elasticloadbalancing", "balancer_read(\"", balancers)]
    {
        let actions = named(&all, reads).into_iter().chain(named(&writes, "=> \""));
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
    // AWS makes this role with the first load balancer of an account, in the name of who makes the
    // load balancer.
    assert!(allowed.remove("iam:CreateServiceLinkedRole"));
    let called = called();
    assert!(called.len() > 60, "{called:?}");
    assert_eq!(allowed, called);
}
