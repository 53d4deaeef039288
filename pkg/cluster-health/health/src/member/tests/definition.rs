//! A property against another definition of what is published.

use proptest::prelude::*;

use super::*;

/// The published state, defined by looking back over all results since the last change of target,
/// instead of by counting along.
fn published_by_definition(results: &[bool], failure: usize, success: usize) -> Vec<bool> {
    let mut published: Vec<bool> = Vec::new();
    for end in 1..=results.len() {
        let run = |value: bool, length: usize| {
            end >= length && results[end - length..end].iter().all(|&result| result == value)
        };
        published.push(match published.last() {
            None => results[0],
            Some(true) => !run(false, failure),
            Some(false) => run(true, success),
        });
    }
    published
}

proptest! {
    #[test]
    fn counting_along_agrees_with_looking_back(
        results in prop::collection::vec(any::<bool>(), 1..200),
        (failure, success) in (1..6_u32, 1..6_u32),
        kinds in "[xuc]{200}",
    ) {
        let probes: String = results.iter().zip(kinds.chars())
            .map(|(&ok, kind)| if ok { 'k' } else { kind }).collect();
        let mut bench = Bench::new(policy(failure, success), None);
        bench.play(&probes);
        let expected: String = published_by_definition(&results, failure as usize, success as usize)
            .into_iter().map(|ready| if ready { 'T' } else { 'F' }).collect();
        // The first result of all is published as it is, whatever the thresholds say.
        prop_assert_eq!(bench.ready, expected);
    }
}
