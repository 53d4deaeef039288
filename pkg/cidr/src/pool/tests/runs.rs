use super::super::*;

fn set(ranges: &[RangeInclusive<u128>]) -> RunSet {
    let mut set = RunSet::default();
    for range in ranges {
        set.insert(range);
    }
    set
}

fn runs(set: &RunSet) -> Vec<(u128, u128)> {
    set.runs.iter().map(|(&first, &last)| (first, last)).collect()
}

#[test]
fn runs_that_touch_or_overlap_become_one() {
    for (before, added, new, after) in [
        (vec![2..=3], 4..=5, 2, vec![(2, 5)]),
        (vec![4..=5], 2..=3, 2, vec![(2, 5)]),
        (vec![2..=3], 5..=5, 1, vec![(2, 3), (5, 5)]),
        (vec![2..=6], 3..=4, 0, vec![(2, 6)]),
        (vec![2..=3, 6..=7, 10..=11], 3..=10, 4, vec![(2, 11)]),
        (vec![2..=3, 6..=7], 0..=9, 6, vec![(0, 9)]),
        (vec![0..=0, 2..=2], 1..=1, 1, vec![(0, 2)]),
    ] {
        let mut set = set(&before);
        assert_eq!(set.insert(&added), new, "{before:?} + {added:?}");
        assert_eq!(runs(&set), after, "{before:?} + {added:?}");
        assert_eq!(set.len(), after.iter().map(|(first, last)| last - first + 1).sum());
    }
}

#[test]
fn the_longest_free_run_is_before_between_or_behind_what_is_used() {
    for (used, longest) in [
        (&[][..], 16),
        (&["10.0.0.0/24"], 15),
        (&["10.0.15.0/24"], 15),
        (&["10.0.3.0/24", "10.0.4.0/24"], 11),
        (&["10.0.8.0/24", "10.0.14.0/24"], 8),
        (&["10.0.2.0/24", "10.0.13.0/24"], 10),
        (&["10.0.0.0/20"], 0),
    ] {
        let mut pool = Pool::new("10.0.0.0/20".parse().unwrap(), 24, 16).unwrap();
        for block in used {
            pool.occupy(&block.parse().unwrap());
        }
        assert_eq!(pool.longest_free_run(), longest, "{used:?}");
    }
}

#[test]
fn a_removal_cuts_the_runs_it_meets() {
    for (before, removed, count, after) in [
        (vec![2..=9], 4..=5, 2, vec![(2, 3), (6, 9)]),
        (vec![2..=9], 2..=3, 2, vec![(4, 9)]),
        (vec![2..=9], 8..=12, 2, vec![(2, 7)]),
        (vec![2..=9], 8..=9, 2, vec![(2, 7)]),
        (vec![2..=3, 6..=7, 10..=11], 3..=10, 4, vec![(2, 2), (11, 11)]),
        (vec![2..=3], 4..=9, 0, vec![(2, 3)]),
        (vec![2..=3], 0..=u128::from(u64::MAX), 2, vec![]),
    ] {
        let mut set = set(&before);
        assert_eq!(set.remove(&removed), count, "{before:?} - {removed:?}");
        assert_eq!(runs(&set), after, "{before:?} - {removed:?}");
        assert_eq!(set.len(), after.iter().map(|(first, last)| last - first + 1).sum());
    }
}

#[test]
fn the_first_absent_index_lies_behind_the_run_that_covers_the_start() {
    let set = set(&[2..=3, 5..=5]);
    let found: Vec<u128> = (0..7).map(|index| set.first_absent(index)).collect();
    assert_eq!(found, [0, 1, 4, 4, 4, 6, 6]);
}
