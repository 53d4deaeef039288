//! Events and counters for operators, how often each comes, and the audit.

use super::super::findings::CONFLICT;
use super::*;

#[test]
fn a_block_that_was_never_sent_makes_no_conflict() {
    let mut allocator = small();
    drop(add(&mut allocator, "ours"));
    let theirs = node("theirs", "theirs").cidrs(&["10.0.0.0/30"]);
    assert_eq!(reasons(&allocator.observe(&theirs, now())), [""; 0]);
    assert_eq!(allocator.snapshot().conflicts, 0);
    assert_eq!(sent(allocator.assign(&"ours".into()).0), ["10.0.0.4/30"]);
}

#[test]
fn an_assignment_seen_before_its_answer_is_counted_once() {
    let mut allocator = small();
    let start = now();
    drop(allocator.observe(&node("a", "a"), start));
    let Assignment::Send { cidrs, .. } = allocator.assign(&"a".into()).0 else { panic!() };
    assert!(send(&mut allocator, "a", &cidrs));
    let later = start + Duration::from_millis(7);
    let seen = allocator.observe(&node("a", "a").cidrs(&["10.0.0.0/30"]), later);
    assert_eq!(seen.assigned, Some(Duration::from_millis(7)));
    assert_eq!(allocator.bound(&"a".into(), later), None);
    let again = allocator.observe(&node("a", "a").cidrs(&["10.0.0.0/30"]), later);
    assert_eq!(again.assigned, None);
}

#[test]
fn an_event_is_due_at_once_and_then_once_per_period() {
    let mut allocator = small();
    drop(add(&mut allocator, "a"));
    let start = now();
    let period = Duration::from_secs(300);
    let due: Vec<u64> = (0..=1500)
        .step_by(10)
        .filter(|s| allocator.due("a", "R", period, start + Duration::from_secs(*s)))
        .collect();
    assert_eq!(due, [0, 300, 600, 900, 1200, 1500]);
    assert!(allocator.due("a", "other reason", period, start));
    assert!(!allocator.due("settled", "R", period, start), "nothing to tell of a settled Node");
}

#[test]
fn a_notice_is_given_out_once_per_period_and_again_for_a_successor() {
    let mut allocator = small();
    let start = now();
    let notice = |uid: &str| Notice {
        name: "n".into(),
        uid: uid.into(),
        reason: "PodCIDRConflict",
        message: String::new(),
    };
    let period = Duration::from_secs(300);
    for uid in ["u", "other"] {
        drop(allocator.observe(&node("n", uid).cidrs(&["192.168.0.0/24"]), start));
    }
    assert!(allocator.notice_due(&notice("u"), period, start));
    assert!(!allocator.notice_due(&notice("u"), period, start + Duration::from_secs(299)));
    assert!(allocator.notice_due(&notice("u"), period, start + period));
    assert!(allocator.notice_due(&notice("other"), period, start));
    drop(allocator.gone("u", now()));
    drop(allocator.observe(&node("n", "u").cidrs(&["192.168.0.0/24"]), now()));
    assert!(allocator.notice_due(&notice("u"), period, start + period), "nothing is kept of it");
}

#[test]
fn a_conflict_that_ended_and_begins_again_is_told_at_once() {
    let mut allocator = small();
    let start = now();
    drop(allocator.observe(&node("kept", "kept").cidrs(&["10.0.0.0/30"]), start));
    for round in 0..3 {
        let effects = allocator.observe(&node("rival", "rival").cidrs(&["10.0.0.0/30"]), start);
        for notice in &effects.notices {
            let due = allocator.notice_due(notice, Duration::from_secs(300), start);
            assert!(due, "round {round}: {notice:?}");
            assert!(!allocator.notice_due(notice, Duration::from_secs(300), start));
        }
        assert_eq!(effects.notices.len(), 2);
        drop(allocator.gone("rival", now()));
    }
}

/// `rule:a-bad-node-stops-only-itself`
#[test]
fn of_hundreds_of_nodes_with_one_cidr_each_is_told_a_few_times_and_every_pair_counts() {
    const CLONES: usize = 300;
    let mut allocator = small();
    let mut told: HashMap<Uid, usize> = HashMap::new();
    for i in 0..CLONES {
        let name = format!("clone-{i}");
        let effects = allocator.observe(&node(&name, &name).cidrs(&["10.0.0.0/30"]), now());
        assert!(effects.notices.len() <= 18, "{i}: {} notices", effects.notices.len());
        for notice in effects.notices {
            *told.entry(notice.uid).or_default() += 1;
        }
    }
    assert_eq!(told.len(), CLONES, "everybody is told");
    assert_eq!(allocator.snapshot().conflicts, CLONES * (CLONES - 1) / 2);
    for i in (1..CLONES).rev() {
        drop(allocator.gone(&format!("clone-{i}"), now()));
        assert_eq!(allocator.snapshot().conflicts, i * (i - 1) / 2);
    }
}

#[test]
fn a_node_that_overlaps_several_names_one_and_counts_the_others() {
    let mut allocator = small();
    for (name, cidr) in [("a", "10.0.0.0/30"), ("b", "10.0.0.4/30"), ("c", "10.0.0.8/30")] {
        drop(allocator.observe(&node(name, name).cidrs(&[cidr]), now()));
    }
    for (name, cidr, tail) in [
        ("two", "10.0.0.0/29", "10.0.0.0/30 of Node a and a pod CIDR of another Node; "),
        ("all", "10.0.0.0/28", "10.0.0.0/29 of Node two and pod CIDRs of 3 other Nodes; "),
    ] {
        let effects = allocator.observe(&node(name, name).cidrs(&[cidr]), now());
        let told = &effects.notices[0];
        assert_eq!(&*told.name, name);
        assert!(told.message.contains(tail), "{}", told.message);
        assert!(told.message.ends_with("all but one of them"), "{}", told.message);
    }
    assert_eq!(allocator.snapshot().conflicts, 6);
}

#[test]
fn who_overlapped_before_is_told_of_the_next_too() {
    let mut allocator = small();
    for name in ["a", "b"] {
        drop(allocator.observe(&node(name, name).cidrs(&["10.0.0.0/30"]), now()));
    }
    let effects = allocator.observe(&node("c", "c").cidrs(&["10.0.0.0/30"]), now());
    let mut told: Vec<_> = effects.notices.iter().map(|notice| &*notice.uid).collect();
    told.sort_unstable();
    assert_eq!(told, ["a", "b", "c"]);
}

#[test]
fn two_nodes_that_overlap_in_both_families_are_one_pair() {
    let mut allocator = small();
    let both = ["10.0.0.0/30", "fd00::/64"];
    drop(allocator.observe(&node("a", "a").cidrs(&both), now()));
    let effects = allocator.observe(&node("b", "b").cidrs(&both), now());
    let told: Vec<_> = effects.notices.iter().filter(|told| told.reason == CONFLICT).collect();
    assert_eq!((told.len(), allocator.snapshot().conflicts), (2, 1));
    drop(allocator.observe(&node("b", "b").cidrs(&["10.0.0.0/30"]), now()));
    assert_eq!(allocator.snapshot().conflicts, 1, "still in one");
    drop(allocator.gone("a", now()));
    assert_eq!(allocator.snapshot().conflicts, 0);
}

#[test]
fn a_node_that_is_given_the_cidr_of_another_before_ours_was_sent_is_a_conflict() {
    let mut allocator = small();
    drop(add(&mut allocator, "ours"));
    drop(allocator.observe(&node("theirs", "theirs").cidrs(&["10.0.0.0/30"]), now()));
    let ours = node("ours", "ours").cidrs(&["10.0.0.0/30"]);
    let effects = allocator.observe(&ours, now());
    assert_eq!(reasons(&effects), [CONFLICT, CONFLICT]);
    let state = allocator.snapshot();
    assert_eq!((state.conflicts, state.foreign_total), (1, 1));
    assert_eq!(reasons(&allocator.observe(&ours, now())), [""; 0], "told once");
}

#[test]
fn crossing_a_warning_line_is_told_on_the_node_that_crossed_it() {
    let mut allocator = Allocator::new(vec![pool("10.0.0.0/27", 32)], &[]);
    let mut told = Vec::new();
    for i in 0..32 {
        let name = format!("n{i}");
        drop(allocator.observe(&node(&name, &name), now()));
        let (_, effects) = allocator.assign(&name.as_str().into());
        told.extend(effects.notices.into_iter().map(|notice| (i + 1, notice)));
    }
    let at: Vec<_> = told.iter().map(|(used, notice)| (*used, notice.reason)).collect();
    assert_eq!(at, [(26, "PodCIDRPoolNearlyFull"), (31, "PodCIDRPoolNearlyFull")]);
    for text in ["10.0.0.0/27", "/32", "26 of 32", "80 %"] {
        assert!(told[0].1.message.contains(text), "{}", told[0].1.message);
    }
}

#[test]
fn a_pool_that_the_first_list_shows_to_be_full_is_no_news() {
    let mut allocator = Allocator::new(vec![pool("10.0.0.0/29", 32)], &[]);
    let mut list = |ids: std::ops::Range<u8>| {
        allocator.set_in_list(true);
        let seen = ids.map(|id| {
            let name = format!("n{id}");
            allocator.observe(&node(&name, &name).cidrs(&[&format!("10.0.0.{id}/32")]), now())
        });
        let told: Vec<_> = seen.flat_map(|effects| effects.notices).collect();
        allocator.set_in_list(false);
        (
            told.iter().map(|it| it.reason).collect::<Vec<_>>(),
            allocator.snapshot().pools[0].pressure,
        )
    };
    assert_eq!(list(0..7), (vec![], 80), "the metric says so");
    assert_eq!(list(0..8), (vec!["PodCIDRPoolNearlyFull"], 95), "it was filled meanwhile");
}

#[test]
fn what_a_cache_that_was_filled_before_shows_without_a_list_is_no_news() {
    let mut allocator = Allocator::new(vec![pool("10.0.0.0/29", 32)], &[]);
    for id in 0..7 {
        let name = format!("n{id}");
        let seen = node(&name, &name).cidrs(&[&format!("10.0.0.{id}/32")]);
        assert_eq!(reasons(&allocator.observe(&seen, now())), [""; 0]);
    }
    drop(allocator.observe(&node("last", "last"), now()));
    let (_, effects) = allocator.assign(&"last".into());
    assert_eq!(reasons(&effects), ["PodCIDRPoolNearlyFull"]);
    assert!(effects.notices[0].message.contains("over 95 %"), "{}", effects.notices[0].message);
}

#[test]
fn the_audit_finds_nothing_in_a_healthy_state_and_mends_a_damaged_one() {
    let mut allocator = small();
    drop(settle(&mut allocator, "a"));
    drop(add(&mut allocator, "b"));
    let live = [node("a", "a").cidrs(&["10.0.0.0/30"]), node("b", "b")];
    assert_eq!(allocator.audit(live.iter(), now()).0, 0);
    let c = node("c", "c").cidrs(&["10.0.0.12/30"]);
    let (mended, effects) = allocator.audit([&live[1], &c].into_iter(), now());
    assert_eq!(mended, 2, "one dead, one unknown");
    assert_eq!(effects.wake, ["b".into()], "in case its key was lost");
    assert_eq!(allocator.snapshot().pools[0].used, 2);
}

#[test]
fn the_audit_counts_each_node_that_it_mends_and_passes_on_what_follows() {
    let mut allocator = small();
    for name in ["changed", "leaving"] {
        drop(allocator.observe(&node(name, name), now()));
    }
    drop(settle(&mut allocator, "strange"));
    let live = [
        node("changed", "changed").cidrs(&["10.0.0.12/30"]),
        node("leaving", "leaving").deleting(),
        node("strange", "strange").cidrs(&["192.168.0.0/24"]),
        node("new", "new"),
        node("held back", "held back").deleting(),
    ];
    let (mended, effects) = allocator.audit(live.iter(), now());
    assert_eq!(mended, 4, "all but the last, which has nothing to keep");
    assert_eq!(reasons(&effects), ["PodCIDROutOfRange"]);
    assert!(effects.wake.contains(&"new".into()), "{:?}", effects.wake);
    assert_eq!(allocator.audit(live.iter(), now()).0, 0);
}

#[test]
fn the_warning_line_in_force_falls_when_blocks_are_freed() {
    let mut allocator = small();
    let line = |allocator: &Allocator| allocator.snapshot().pools[0].pressure;
    for name in ["a", "b", "c", "d"] {
        drop(settle(&mut allocator, name));
    }
    assert_eq!(line(&allocator), 95);
    drop(allocator.gone("a", now()));
    assert_eq!(line(&allocator), 80, "75 % are still near that line");
    drop(allocator.gone("b", now()));
    assert_eq!(line(&allocator), 0);
    // The same when a claim is replaced by one outside the pool.
    for name in ["e", "f"] {
        drop(settle(&mut allocator, name));
    }
    for (name, expected) in [("e", 80), ("f", 0)] {
        drop(allocator.observe(&node(name, name).cidrs(&["192.168.0.0/24"]), now()));
        assert_eq!(line(&allocator), expected, "after {name}");
    }
}

#[test]
fn a_pool_that_services_nearly_fill_is_told_with_the_first_node_and_not_before() {
    let services = ["10.0.0.0/29", "10.0.0.8/30"].map(|text| cidr::parse(text).unwrap());
    let mut allocator = Allocator::new(vec![pool("10.0.0.0/28", 30)], &services);
    drop(allocator.gone("unknown", now()));
    drop(allocator.observe(&node("a", "a"), now()));
    let (_, effects) = allocator.assign(&"a".into());
    assert_eq!(reasons(&effects), ["PodCIDRPoolNearlyFull"]);
}

#[test]
fn a_node_in_the_service_range_is_told_and_counted_until_it_is_gone() {
    let service = cidr::parse("10.0.0.0/30").unwrap();
    let mut allocator = Allocator::new(vec![pool("10.0.0.0/28", 30)], &[service]);
    let odd = node("odd", "odd").cidrs(&["10.0.0.0/29"]);
    let effects = allocator.observe(&odd, now());
    assert_eq!(reasons(&effects), ["PodCIDROverlapsServices"]);
    for text in ["Node odd", "10.0.0.0/29", "10.0.0.0/30"] {
        assert!(effects.notices[0].message.contains(text), "{}", effects.notices[0].message);
    }
    assert_eq!(allocator.snapshot().in_services, 1);
    assert_eq!(reasons(&allocator.observe(&odd, now())), [""; 0], "told once");
    drop(allocator.observe(&node("next", "next").cidrs(&["10.0.0.8/30"]), now()));
    assert_eq!((allocator.snapshot().in_services, allocator.snapshot().conflicts), (1, 0));
    drop(allocator.gone("odd", now()));
    assert_eq!(allocator.snapshot().in_services, 0);
}

#[test]
fn every_node_without_cidrs_is_counted_where_it_stands() {
    let mut allocator = small();
    for i in 0..3 {
        drop(add(&mut allocator, &format!("reserved {i}")));
    }
    drop(settle(&mut allocator, "bound"));
    for i in 0..2 {
        drop(add(&mut allocator, &format!("starved {i}")));
    }
    drop(allocator.observe(&node("pending", "pending"), now()));
    let state = allocator.snapshot();
    assert_eq!((state.pending, state.starved, state.reserved), (1, 2, 3));
}

#[test]
fn ranges_of_one_family_are_told_of_when_they_are_nearly_full_together() {
    let pools = vec![pool("10.0.0.0/28", 32), pool("10.1.0.0/28", 32)];
    let mut allocator = Allocator::new(pools, &[]);
    let mut told = Vec::new();
    for number in 1..=32 {
        let name = format!("n{number}");
        drop(allocator.observe(&node(&name, &name), now()));
        let (_, effects) = allocator.assign(&name.as_str().into());
        told.extend(effects.notices.iter().map(|notice| (number, notice.reason)));
    }
    assert_eq!(told, [(29, "PodCIDRPoolNearlyFull"), (32, "PodCIDRPoolNearlyFull")]);
    assert_eq!(allocator.snapshot().pools[0].pressure, 95, "the metric tells of each");
}

#[test]
fn a_node_that_is_seen_again_goes_on_waiting() {
    let mut allocator = small();
    drop(allocator.observe(&node("a", "a"), now()));
    drop(allocator.observe(&node("a", "a"), now()));
    assert_eq!(sent(allocator.assign(&"a".into()).0), ["10.0.0.0/30"]);
    for name in ["b", "c", "d"] {
        drop(settle(&mut allocator, name));
    }
    assert!(matches!(add(&mut allocator, "starved"), Assignment::Starved(_)));
    drop(allocator.observe(&node("starved", "starved"), now()));
    assert_eq!(allocator.gone("b", now()).wake, ["starved".into()]);
}

#[test]
fn a_pair_counts_until_one_of_it_is_gone_whatever_a_refused_node_does_between_them() {
    let mut allocator = small();
    let cidrs = reserve(&mut allocator, "ours");
    assert!(send(&mut allocator, "ours", &cidrs));
    drop(allocator.observe(&node("b", "b").cidrs(&["10.0.0.0/30"]), now()));
    allocator.refused(&"ours".into());
    drop(allocator.observe(&node("c", "c").cidrs(&["10.0.0.0/30"]), now()));
    let (moved, _) = allocator.assign(&"ours".into());
    assert_eq!(sent(moved), ["10.0.0.4/30"]);
    assert_eq!(allocator.snapshot().conflicts, 1, "b and c");
    drop(allocator.gone("c", now()));
    drop(allocator.observe(&node("d", "d").cidrs(&["10.0.0.0/30"]), now()));
    assert_eq!(allocator.snapshot().conflicts, 1, "b and d");
    drop(allocator.gone("b", now()));
    assert_eq!(allocator.snapshot().conflicts, 0);
}

#[test]
fn nothing_is_kept_of_a_node_that_goes_before_its_notice_is_told() {
    let mut allocator = small();
    drop(allocator.observe(&node("a", "a").cidrs(&["10.0.0.0/30"]), now()));
    let effects = allocator.observe(&node("b", "b").cidrs(&["10.0.0.0/30"]), now());
    drop(allocator.gone("a", now()));
    drop(allocator.gone("b", now()));
    for notice in &effects.notices {
        assert!(!allocator.notice_due(notice, Duration::from_secs(300), now()));
    }
    assert_eq!(allocator.findings.told_nodes(), 0);
}
