use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

use crate::names::{OF_AN_ASKER, QUICK, SLOW, SLOW_AFTER};

impl Names {
    /// A new asker for each call.
    async fn ask(&self, host: &str) -> Answer {
        self.addresses(host, &Asker::default()).await
    }
}

/// Counts lookups. Each waits until `open` allows it and then returns `answer`.
fn counted(
    answer: fn(usize) -> io::Result<Vec<IpAddr>>,
    open: &watch::Sender<bool>,
) -> (Names, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (seen, open) = (Arc::clone(&count), open.subscribe());
    let names = Names::new(move |_| {
        let (number, mut open) = (seen.fetch_add(1, Ordering::SeqCst), open.clone());
        let answer = async move {
            open.wait_for(|open| *open).await.expect("the test holds the sender");
            answer(number)
        };
        answer.boxed()
    });
    (names, count)
}

#[allow(clippy::unnecessary_wraps, reason = "a lookup may fail")]
fn address(number: usize) -> io::Result<Vec<IpAddr>> {
    Ok(vec![IpAddr::from([10, 0, 0, u8::try_from(number).unwrap()])])
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_good_for_a_minute() {
    let open = watch::Sender::new(true);
    let (names, count) = counted(address, &open);
    let first = names.ask("api.example").await.unwrap();
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(names.ask("api.example").await.unwrap(), first);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_ne!(names.ask("api.example").await.unwrap(), first);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    names.ask("other.example").await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn all_who_ask_while_a_lookup_hangs_share_it_however_long_it_takes() {
    let open = watch::Sender::new(false);
    let (names, count) = counted(address, &open);
    for _ in 0..100 {
        let asked = tokio::time::timeout(Duration::from_secs(3), names.ask("api.example"));
        assert!(asked.await.is_err());
    }
    open.send_replace(true);
    names.ask("api.example").await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_waiting_caller_ages_from_its_arrival() {
    let open = watch::Sender::new(false);
    let (names, count) = counted(address, &open);
    let asked = tokio::time::timeout(Duration::from_secs(3), names.ask("api.example"));
    assert!(asked.await.is_err());
    open.send_replace(true);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let first = names.ask("api.example").await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_ne!(names.ask("api.example").await.unwrap(), first);
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// Names whose lookups take 20 s when the host begins with `slow`, and the hosts that were looked up.
fn with_slow_hosts() -> (Names, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let names = Names::new(move |host| {
        seen.lock().push(host.clone());
        let answer = async move {
            if host.starts_with("slow") {
                tokio::time::sleep(Duration::from_secs(20)).await;
                return Err(io::Error::other("no name server"));
            }
            address(1)
        };
        answer.boxed()
    });
    (names, asked)
}

fn slow_hosts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("slow-{number}.example")).collect()
}

/// Asks for all of them at the same time, each for 3 s.
async fn probe(names: &Names, hosts: &[String]) {
    let ask = |host| tokio::time::timeout(Duration::from_secs(3), names.ask(host));
    futures::future::join_all(hosts.iter().map(|host| ask(host))).await;
}

/// rule:slow-names-do-not-block-others
#[tokio::test(start_paused = true)]
async fn slow_names_are_looked_up_apart_from_all_others_once_they_are_known() {
    let (names, asked) = with_slow_hosts();
    let hosts = slow_hosts(600);
    for _ in 0..30 {
        probe(&names, &hosts).await;
    }
    let begun = Instant::now();
    asked.lock().clear();
    let others = (0..QUICK).map(|number| format!("{number}.example")).collect::<Vec<_>>();
    let found = futures::future::join_all(others.iter().map(|host| names.ask(host))).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(begun.elapsed(), Duration::ZERO, "all of them at once");
    assert_eq!(asked.lock().len(), others.len(), "no slow one between them");
}

/// rule:slow-names-do-not-block-others
#[tokio::test(start_paused = true)]
async fn names_that_turn_out_to_be_slow_leave_their_turns_to_others() {
    let (names, asked) = with_slow_hosts();
    let (hosts, begun) = (slow_hosts(150), Instant::now());
    let slow = probe(&names, &hosts);
    let healthy = async {
        tokio::task::yield_now().await;
        names.ask("new.example").await.unwrap();
        begun.elapsed()
    };
    let ((), waited) = futures::join!(slow, healthy);
    assert!(waited <= 3 * SLOW_AFTER, "{waited:?}");
    assert_eq!(asked.lock().len(), 151);
}

/// rule:slow-names-do-not-block-others
#[tokio::test(start_paused = true)]
async fn lookups_that_hang_hold_a_limited_number_of_threads_and_those_in_line_have_their_turn() {
    let open = watch::Sender::new(false);
    let (names, count) = counted(|_| address(1), &open);
    let hosts: Vec<_> = (0..1000).map(|number| format!("{number}.example")).collect();
    let all = futures::future::join_all(hosts.iter().map(|host| names.ask(host)));
    let mut all = Box::pin(all);
    assert!(tokio::time::timeout(Duration::from_secs(30), &mut all).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), QUICK + SLOW);
    open.send_replace(true);
    assert!(all.await.iter().all(Result::is_ok));
    assert_eq!(count.load(Ordering::SeqCst), 1000);
}

/// rule:slow-names-do-not-block-others
#[tokio::test(start_paused = true)]
async fn one_asker_has_two_lookups_under_way_and_delays_no_other_asker_of_the_same_host() {
    let open = watch::Sender::new(false);
    let (names, count) = counted(|_| address(1), &open);
    let (asker, hosts) = (Asker::default(), slow_hosts(64));
    let mut all =
        Box::pin(futures::future::join_all(hosts.iter().map(|it| names.addresses(it, &asker))));
    let limit = Duration::from_secs(3);
    assert!(tokio::time::timeout(limit, &mut all).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), OF_AN_ASKER);
    assert!(tokio::time::timeout(limit, names.ask("slow-9.example")).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), OF_AN_ASKER + 1, "it waits for its own turn");
    open.send_replace(true);
    assert!(all.await.iter().all(Result::is_ok));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_longer_good_is_used_while_the_next_lookup_is_slow() {
    let open = watch::Sender::new(true);
    let (names, _) = counted(address, &open);
    let first = names.ask("api.example").await.unwrap();
    tokio::time::advance(REMEMBERED).await;
    open.send_replace(false);
    for _ in 0..3 {
        assert_eq!(names.ask("api.example").await.unwrap(), first);
    }
    open.send_replace(true);
    tokio::time::sleep(PATIENCE).await;
    let second = names.ask("api.example").await.unwrap();
    assert_ne!(second, first, "the next answer is used when it is there");

    open.send_replace(false);
    names.forget("api.example");
    let asked = tokio::time::timeout(Duration::from_secs(3), names.ask("api.example"));
    assert!(asked.await.is_err(), "no server at the old addresses");
}

#[tokio::test]
async fn a_lookup_that_panics_is_a_failure_and_is_made_again() {
    let count = AtomicUsize::new(0);
    let names = Names::new(move |_| {
        assert!(count.fetch_add(1, Ordering::SeqCst) > 0, "the first lookup panics");
        std::future::ready(address(1)).boxed()
    });
    assert!(names.ask("api.example").await.is_err());
    assert!(names.ask("api.example").await.is_ok());
}

#[tokio::test]
async fn a_failure_and_an_address_without_a_server_are_not_remembered() {
    let open = watch::Sender::new(true);
    let (names, count) = counted(
        |number| match number {
            0 => Err(io::Error::other("no name server")),
            1 => Ok(vec![]),
            _ => address(number),
        },
        &open,
    );
    assert!(names.ask("api.example").await.is_err());
    assert_eq!(names.ask("api.example").await.unwrap_err().kind(), io::ErrorKind::NotFound);
    let found = names.ask("api.example").await.unwrap();
    names.forget("api.example");
    assert_ne!(names.ask("api.example").await.unwrap(), found);
    assert_eq!(count.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn old_answers_of_many_names_are_forgotten() {
    let open = watch::Sender::new(true);
    let (names, _) = counted(|_| address(1), &open);
    for number in 0..1000 {
        names.ask(&format!("{number}.example")).await.unwrap();
        tokio::time::advance(Duration::from_secs(6)).await;
    }
    assert!(names.known.lock().len() < 250);
}

#[tokio::test]
async fn the_system_knows_this_machine() {
    let found = Names::default().ask("localhost").await.unwrap();
    assert!(found.iter().all(IpAddr::is_loopback));
}
