//! `rule:names-are-looked-up-once`

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

use super::*;

/// Counts lookups, each of which waits until `open` says so and then tells `answer`.
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
    let first = names.addresses("api.example").await.unwrap();
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(names.addresses("api.example").await.unwrap(), first);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_ne!(names.addresses("api.example").await.unwrap(), first);
    assert_eq!(count.load(Ordering::SeqCst), 2);
    names.addresses("other.example").await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn all_who_ask_while_a_lookup_hangs_share_it_however_long_it_takes() {
    let open = watch::Sender::new(false);
    let (names, count) = counted(address, &open);
    for _ in 0..100 {
        let asked = tokio::time::timeout(Duration::from_secs(3), names.addresses("api.example"));
        assert!(asked.await.is_err());
    }
    open.send_replace(true);
    names.addresses("api.example").await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_waited_for_ages_from_when_it_came() {
    let open = watch::Sender::new(false);
    let (names, count) = counted(address, &open);
    let asked = tokio::time::timeout(Duration::from_secs(3), names.addresses("api.example"));
    assert!(asked.await.is_err());
    open.send_replace(true);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let first = names.addresses("api.example").await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_ne!(names.addresses("api.example").await.unwrap(), first);
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn lookups_that_hang_leave_threads_to_others_and_those_in_line_have_their_turn() {
    let open = watch::Sender::new(false);
    let (names, count) = counted(|_| address(1), &open);
    let hosts: Vec<_> = (0..200).map(|number| format!("{number}.example")).collect();
    let all = futures::future::join_all(hosts.iter().map(|host| names.addresses(host)));
    let mut all = Box::pin(all);
    assert!(tokio::time::timeout(Duration::from_secs(3), &mut all).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), AT_ONCE);
    open.send_replace(true);
    assert!(all.await.iter().all(Result::is_ok));
    assert_eq!(count.load(Ordering::SeqCst), 200);
}

#[tokio::test]
async fn a_lookup_that_panics_is_a_failure_and_is_made_again() {
    let count = AtomicUsize::new(0);
    let names = Names::new(move |_| {
        assert!(count.fetch_add(1, Ordering::SeqCst) > 0, "the first lookup panics");
        std::future::ready(address(1)).boxed()
    });
    assert!(names.addresses("api.example").await.is_err());
    assert!(names.addresses("api.example").await.is_ok());
}

#[tokio::test]
async fn a_failure_and_an_address_where_nobody_was_are_not_remembered() {
    let open = watch::Sender::new(true);
    let (names, count) = counted(
        |number| match number {
            0 => Err(io::Error::other("no name server")),
            1 => Ok(vec![]),
            _ => address(number),
        },
        &open,
    );
    assert!(names.addresses("api.example").await.is_err());
    assert_eq!(names.addresses("api.example").await.unwrap_err().kind(), io::ErrorKind::NotFound);
    let found = names.addresses("api.example").await.unwrap();
    names.forget("api.example");
    assert_ne!(names.addresses("api.example").await.unwrap(), found);
    assert_eq!(count.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn old_answers_of_many_names_are_forgotten() {
    let open = watch::Sender::new(true);
    let (names, _) = counted(|_| address(1), &open);
    for number in 0..1000 {
        names.addresses(&format!("{number}.example")).await.unwrap();
        tokio::time::advance(Duration::from_secs(6)).await;
    }
    assert!(names.known.lock().len() < 40);
}

#[tokio::test]
async fn the_system_knows_this_machine() {
    let found = Names::default().addresses("localhost").await.unwrap();
    assert!(found.iter().all(IpAddr::is_loopback));
}
