//! rule:no-source-locks-others-out

use super::*;

const BOUNDS: Bounds = Bounds { of_all: 12, of_one_source: 6, newest_wins: false };

/// The open connections of a test, in the order in which they came.
struct Scene {
    sources: Arc<Sources>,
    open: Vec<(ConnectionSlot, Arc<Activity>)>,
}

impl Scene {
    fn new(bounds: Bounds) -> Self {
        Self { sources: Sources::new(bounds), open: Vec::new() }
    }

    /// Whether a connection from `peer` gets in.
    fn enter(&mut self, peer: &str) -> bool {
        let activity = Activity::new();
        let entered = self.sources.enter(peer.parse().unwrap(), Arc::clone(&activity));
        let is_in = entered.is_some();
        self.open.extend(entered.map(|(place, _)| (place, activity)));
        is_in
    }

    fn enter_all(&mut self, peer: &str, times: usize) {
        for _ in 0..times {
            assert!(self.enter(peer), "{peer}");
        }
    }

    /// The positions of those that were evicted.
    fn evicted(&self) -> Vec<usize> {
        let evicted = self.open.iter().map(|(place, _)| place.evicted.is_cancelled());
        evicted.enumerate().filter_map(|(at, evicted)| evicted.then_some(at)).collect()
    }

    fn agree(&self, at: usize) {
        self.open[at].1.agreed();
    }

    /// Makes a connection answer a request without an end.
    fn busy(&self, at: usize) {
        self.agree(at);
        std::mem::forget(self.open[at].1.begin());
    }
}

#[test]
fn a_source_at_its_bound_makes_room_itself_with_the_oldest_that_did_least() {
    let mut scene = Scene::new(BOUNDS);
    scene.enter_all("192.0.2.1", 6);
    scene.busy(0);
    scene.agree(1);
    assert_eq!(scene.evicted(), [0; 0]);
    for (sooner, evicted) in [(2, vec![2]), (3, vec![2, 3])] {
        assert!(scene.enter("192.0.2.1"), "{sooner}");
        assert_eq!(scene.evicted(), evicted, "those without TLS first");
    }
    for at in [4, 5, 6, 7] {
        scene.agree(at);
    }
    scene.enter_all("192.0.2.1", 1);
    assert_eq!(scene.evicted(), [1, 2, 3], "then the oldest that is idle, never a busy one");
}

#[test]
fn a_source_whose_connections_are_all_busy_gets_no_more() {
    let mut scene = Scene::new(BOUNDS);
    scene.enter_all("192.0.2.1", 6);
    (0..6).for_each(|at| scene.busy(at));
    assert!(!scene.enter("192.0.2.1"));
    assert!(scene.enter("192.0.2.2"));
    assert_eq!(scene.evicted(), [0; 0]);
    scene.open.remove(0);
    assert!(scene.enter("192.0.2.1"), "a place that was left is free again");
}

#[test]
fn another_source_always_gets_in_at_the_cost_of_the_largest() {
    for is_busy in [false, true] {
        let mut scene = Scene::new(BOUNDS);
        scene.enter_all("192.0.2.1", 6);
        scene.enter_all("192.0.2.2", 5);
        scene.enter_all("192.0.2.3", 1);
        if is_busy {
            (0..12).for_each(|at| scene.busy(at));
        }
        scene.enter_all("192.0.2.4", 1);
        assert_eq!(scene.evicted(), [0]);
        // Which is not the largest any more than the second.
        scene.enter_all("192.0.2.5", 1);
        assert_eq!(scene.evicted().len(), 2);
        assert!(!scene.evicted().contains(&11) && !scene.evicted().contains(&12));
    }
}

#[test]
fn sources_of_one_connection_each_are_evicted_only_when_idle() {
    let mut scene = Scene::new(BOUNDS);
    for host in 0..12 {
        scene.enter_all(&format!("192.0.2.{host}"), 1);
    }
    scene.busy(0);
    scene.enter_all("198.51.100.1", 1);
    assert_eq!(scene.evicted(), [1]);
    (2..13).for_each(|at| scene.busy(at));
    assert!(!scene.enter("198.51.100.2"), "all do what they came for");
}

#[test]
fn the_addresses_of_one_ipv6_network_are_one_source_and_mapped_ones_are_ipv4() {
    let mut scene = Scene::new(BOUNDS);
    for host in 1..=6 {
        assert!(scene.enter(&format!("2001:db8:1:2:{host}::{host}")));
    }
    (0..6).for_each(|at| scene.busy(at));
    assert!(!scene.enter("2001:db8:1:2:ffff::1"));
    assert!(scene.enter("2001:db8:1:3::1"));
    assert_eq!(Source::of("::ffff:192.0.2.1".parse().unwrap()).0.to_string(), "192.0.2.1");
}

#[test]
fn where_the_newest_wins_it_always_gets_in() {
    let mut scene = Scene::new(Bounds { of_one_source: 12, newest_wins: true, ..BOUNDS });
    scene.enter_all("127.0.0.1", 12);
    (0..12).for_each(|at| scene.busy(at));
    scene.enter_all("127.0.0.1", 12);
    assert_eq!(scene.evicted().len(), 12);
    assert_eq!(scene.sources.open.lock().connections.len(), 12);
}
