use super::*;

fn cidr(text: &str) -> Source {
    Source::Cidr(cidr::parse(text).unwrap())
}

fn group(id: &str) -> Source {
    Source::Group(id.to_owned())
}

/// cluster-api-provider-aws#5023
#[test]
fn rules_that_aws_shows_in_another_form_are_the_same_rule() {
    for (left, right) in [
        (
            Rule::new("6", (22, 22), cidr("0.0.0.0/0"), ""),
            Rule::new("tcp", (22, 22), cidr("0.0.0.0/0"), ""),
        ),
        (
            Rule::new("4", (0, 65535), group("sg-1"), ""),
            Rule::new("4", (-1, -1), group("sg-1"), ""),
        ),
        (Rule::new("-1", (0, 0), group("sg-1"), ""), Rule::new("all", (-1, -1), group("sg-1"), "")),
        (
            Rule::new("TCP", (1, 2), cidr("10.0.0.1/8"), ""),
            Rule::new("tcp", (1, 2), cidr("10.0.0.0/8"), ""),
        ),
    ] {
        assert_eq!(left.key, right.key);
    }
}

#[test]
fn only_what_differs_is_written_and_a_description_is_no_difference_of_rules() {
    let ssh = Rule::new("tcp", (22, 22), cidr("0.0.0.0/0"), "SSH");
    let api = Rule::new("tcp", (6443, 6443), group("sg-1"), "Kubernetes API");
    let api_of_another_name = Rule { description: "api".to_owned(), ..api.clone() };
    let foreign = Rule::new("udp", (53, 53), group("sg-9"), "DNS");
    assert_eq!(
        diff(&[ssh.clone(), api.clone()], &[api_of_another_name, foreign.clone()]),
        RuleDiff {
            missing: vec![ssh.clone()],
            described_otherwise: vec![api.clone()],
            surplus: vec![foreign]
        }
    );
    assert_eq!(diff(&[ssh.clone(), api.clone()], &[api.clone(), ssh.clone()]), RuleDiff::default());
    assert_eq!(diff(&[api.clone(), api.clone()], &[api]), RuleDiff::default());
}
