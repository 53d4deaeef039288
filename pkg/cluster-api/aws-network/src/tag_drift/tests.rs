use super::*;

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn keys(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

#[test]
fn resources_that_lack_the_same_tags_are_corrected_by_one_call() {
    let mut drift = TagDrift::default();
    let none = BTreeSet::new();
    for id in ["a", "b"] {
        drift.compare(id, &tags(&[]), &tags(&[("owner", "us"), ("Name", id)]), &none);
    }
    drift.compare(
        "c",
        &tags(&[("Name", "c"), ("owner", "them")]),
        &tags(&[("owner", "us"), ("Name", "c")]),
        &none,
    );
    let calls: Vec<_> = drift
        .actions()
        .into_iter()
        .map(|action| match action {
            Action::CreateTags { resources, tags } => (resources.join(","), tags),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("a".to_owned(), tags(&[("Name", "a")])),
            ("a,b,c".to_owned(), tags(&[("owner", "us")])),
            ("b".to_owned(), tags(&[("Name", "b")])),
        ]
    );
}

#[test]
fn only_keys_that_were_ours_are_removed() {
    let mut drift = TagDrift::default();
    let present = tags(&[("ours", "1"), ("theirs", "2"), ("kept", "3")]);
    drift.compare("a", &present, &tags(&[("kept", "3")]), &keys(&["ours", "kept", "never-there"]));
    assert_eq!(
        drift.actions(),
        [Action::DeleteTags { resources: vec!["a".to_owned()], keys: vec!["ours".to_owned()] }]
    );
}

#[test]
fn a_call_names_no_more_resources_than_aws_takes() {
    let mut drift = TagDrift::default();
    for number in 0..=RESOURCES_IN_A_CALL {
        drift.compare(&format!("{number}"), &tags(&[]), &tags(&[("a", "b")]), &BTreeSet::new());
    }
    let sizes: Vec<_> = drift
        .actions()
        .iter()
        .map(|action| match action {
            Action::CreateTags { resources, .. } => resources.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sizes, [RESOURCES_IN_A_CALL, 1]);
}
