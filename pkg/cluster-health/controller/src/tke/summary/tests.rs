//! Lists that are read page by page, and what they add up to.

use std::collections::BTreeMap;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::StatusCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::list_nodes;
use super::nodes::Roster;
use super::testing::{Paged, node, pod};
use super::{Gathered, PodTotals};
use crate::paging::{Abort, Member, Unread, list};

mod sums;

fn pods(member: &mut dyn Member) -> Result<PodTotals, Abort> {
    list(member, "/api/v1/pods", &[], 2, PodTotals::default)
        .now_or_never()
        .expect("the server answers at once")
}

fn cpu(milli: i64) -> Value {
    pod(Some("n"), &format!("{milli}m"), "1Ki")
}

#[test]
fn every_page_is_asked_for_by_the_token_of_the_one_before() {
    let mut member =
        Paged::of("/api/v1/pods", vec![vec![cpu(1)], vec![cpu(2), cpu(3)], vec![cpu(4)]]);
    let totals = pods(&mut member).unwrap();
    assert_eq!((totals.pods, totals.allocated.get("cpu").as_milli()), (4, 10));
    // The token is sent exactly as it came, whatever is in it.
    let expected = [
        "/api/v1/pods?limit=2",
        "/api/v1/pods?limit=2&continue=page%2F1%3D%26",
        "/api/v1/pods?limit=2&continue=page%2F2%3D%26",
    ];
    assert_eq!(member.asked(), expected);
}

#[test]
fn a_server_that_never_gets_further_does_not_keep_us_for_ever() {
    struct Stuck;
    impl Member for Stuck {
        fn get<'a>(
            &'a mut self,
            _: &'a str,
            take: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
        ) -> BoxFuture<'a, Result<StatusCode, Unread>> {
            let body = json!({"metadata": {"continue": "again"}, "items": [cpu(1)]}).to_string();
            take(body.as_bytes());
            async { Ok(StatusCode::OK) }.boxed()
        }
    }
    assert_eq!(pods(&mut Stuck), Err(Abort::Stalled));
}

#[test]
fn a_page_that_cannot_be_had_or_read_ends_the_list_and_tells_why_without_its_contents() {
    struct Odd(u16, &'static str);
    impl Member for Odd {
        fn get<'a>(
            &'a mut self,
            _: &'a str,
            take: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
        ) -> BoxFuture<'a, Result<StatusCode, Unread>> {
            let Self(status, body) = *self;
            let status = StatusCode::from_u16(status).unwrap();
            if status == StatusCode::OK {
                take(body.as_bytes());
            }
            async move { Ok(status) }.boxed()
        }
    }
    for (status, body, why) in [
        (403, "hunter2", "the API server answered 403"),
        (500, "{}", "the API server answered 500"),
        (200, "hunter2", "cannot decode a page: it is no list in JSON"),
        (200, r#"{"items":[{"hunter2":"#, "cannot decode a page: it is no list in JSON"),
        (
            200,
            r#"{"items":[{"spec":{"containers":[{"resources":{"requests":{"cpu":"hunter2"}}}]}}]}"#,
            "cannot decode a page: items[0].spec.containers[0].resources.requests.cpu is not",
        ),
    ] {
        let Err(Abort::Failed(told)) = pods(&mut Odd(status, body)) else {
            panic!("{body} is a list")
        };
        assert!(told.starts_with(why) && !told.contains("hunter2"), "{told}");
    }
    assert_eq!(pods(&mut Odd(200, r#"{"metadata":{},"items":null}"#)), Ok(PodTotals::default()));
}

/// A member whose Pods are so long that only so many of them fit into a page.
struct Wide {
    fits: usize,
    pods: usize,
    asked: Vec<String>,
}

impl Member for Wide {
    fn get<'a>(
        &'a mut self,
        path: &'a str,
        take: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
    ) -> BoxFuture<'a, Result<StatusCode, Unread>> {
        let asked = |key: &str| {
            let query = path.split_once('?').unwrap().1;
            let value = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == key);
            value.map(|(_, value)| value.parse::<usize>().unwrap())
        };
        let (limit, from) = (asked("limit").unwrap(), asked("continue").unwrap_or_default());
        self.asked.push(path.to_owned());
        let items = (self.pods - from).min(limit);
        let mut next = Some(from + items).filter(|next| *next < self.pods);
        let is_too_long = items > self.fits;
        let token = next.take().map(|next| next.to_string());
        let page = json!({"items": vec![cpu(1); items], "metadata": {"continue": token}});
        let text = page.to_string();
        // What is too long comes as far as it may.
        let end = if is_too_long { text.len() / 2 } else { text.len() };
        take(&text.as_bytes()[..end]);
        let answer = if is_too_long { Err(Unread::TooLong) } else { Ok(StatusCode::OK) };
        async { answer }.boxed()
    }
}

/// rule:lists-of-members-are-bounded
#[test]
fn a_page_that_is_too_long_is_asked_for_with_fewer_objects_and_counts_once() {
    let totals = |fits, pods| {
        let mut member = Wide { fits, pods, asked: Vec::new() };
        let listed = list(&mut member, "/api/v1/pods", &[], 500, PodTotals::default);
        let listed = listed.now_or_never().expect("the server answers at once");
        (listed.map(|totals| totals.pods), member.asked.len())
    };
    assert_eq!(totals(500, 700), (Ok(700), 2), "the control");
    assert_eq!(totals(130, 700), (Ok(700), 2 + 6));
    assert_eq!(totals(1, 3), (Ok(3), 8 + 3), "500, 250, 125, 62, 31, 15, 7 and 3 are too many");
    let (listed, asked) = totals(0, 3);
    assert!(matches!(listed, Err(Abort::TooLarge(_))) && asked == 9, "{listed:?} {asked}");
}

/// rule:lists-of-members-are-bounded
#[test]
fn a_page_with_more_objects_than_can_be_asked_for_ends_the_list_while_it_comes() {
    struct Endless(usize);
    impl Member for Endless {
        fn get<'a>(
            &'a mut self,
            _: &'a str,
            take: &'a mut (dyn FnMut(&[u8]) -> bool + Send),
        ) -> BoxFuture<'a, Result<StatusCode, Unread>> {
            let item = format!("{},", cpu(1));
            take(br#"{"items":["#);
            while take(item.as_bytes()) {
                self.0 += 1;
            }
            async { Ok(StatusCode::OK) }.boxed()
        }
    }
    let mut member = Endless(0);
    assert!(matches!(pods(&mut member), Err(Abort::TooLarge(_))));
    assert_eq!(member.0, 5_000);
}

/// Cuts a list at these places, each counted from the one before.
fn split(mut objects: Vec<Value>, cuts: &[usize]) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    for cut in cuts {
        let rest = objects.split_off((*cut).min(objects.len()));
        pages.push(std::mem::replace(&mut objects, rest));
    }
    pages.push(objects);
    pages
}

proptest! {
    #[test]
    fn totals_are_exact_for_any_split_into_pages_with_expiries_in_between(
        requests in prop::collection::vec((0_i64..4000, 0_i64..1 << 40, any::<bool>()), 0..60),
        machines in prop::collection::vec((0_i64..64_000, any::<bool>(), any::<bool>()), 0..20),
        cuts in prop::collection::vec(0_usize..9, 0..12),
        expiries in prop::collection::btree_set(0_usize..40, 0..4),
    ) {
        let bound = |bound: bool| bound.then_some("n");
        let requesting = requests.iter().map(|(cpu, memory, is_bound)| {
            pod(bound(*is_bound), &format!("{cpu}m"), &memory.to_string())
        });
        let machine_nodes = machines.iter().enumerate().map(|(at, (cpu, ready, cordoned))| {
            node(&format!("n{at}"), &format!("{cpu}m"), *ready, *cordoned)
        });
        let mut lists = BTreeMap::from([
            ("/api/v1/pods", split(requesting.collect(), &cuts)),
            ("/api/v1/nodes", split(machine_nodes.collect(), &cuts)),
        ]);
        let mut member = Paged::with_expiries(std::mem::take(&mut lists), expiries);
        let gathering = async {
            let nodes = list_nodes(&mut member, 2, &Roster::default()).await?.totals;
            Ok::<_, Abort>(Gathered { nodes, pods: super::list_pods(&mut member, 2).await? })
        };
        let gathered = gathering.now_or_never().expect("the server answers at once");

        let most = member.expired().into_values().max().unwrap_or_default();
        prop_assert_eq!(gathered.is_err(), most > 1);
        let Ok(gathered) = gathered else {
            prop_assert_eq!(gathered.unwrap_err(), Abort::Expired);
            return Ok(());
        };
        let sum = |bound: bool, of: fn(&(i64, i64, bool)) -> i64| -> i128 {
            requests.iter().filter(|pod| pod.2 == bound).map(|pod| i128::from(of(pod))).sum()
        };
        for (totals, is_bound) in [(&gathered.pods.allocated, true), (&gathered.pods.allocating, false)] {
            prop_assert_eq!(totals.get("cpu").as_milli(), sum(is_bound, |pod| pod.0));
            prop_assert_eq!(totals.get("memory").as_whole(), sum(is_bound, |pod| pod.1));
        }
        prop_assert_eq!(gathered.pods.pods, i64::try_from(requests.len()).unwrap());
        let counts = gathered.nodes.counts;
        let count = |wanted: fn(&&(i64, bool, bool)) -> bool| {
            i64::try_from(machines.iter().filter(wanted).count()).unwrap()
        };
        prop_assert_eq!(counts.total, count(|_| true));
        prop_assert_eq!(counts.ready, count(|machine| machine.1));
        prop_assert_eq!(counts.schedulable, count(|machine| machine.1 && !machine.2));
        let capacity: i128 = machines.iter().map(|machine| i128::from(machine.0)).sum();
        prop_assert_eq!(gathered.nodes.capacity.get("cpu").as_milli(), capacity);
    }
}
