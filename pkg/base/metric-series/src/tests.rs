use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts};

use super::*;

struct Scene {
    requests: IntCounterVec,
    durations: HistogramVec,
    hosts: SeriesByLabel,
}

fn scene() -> Scene {
    let requests = IntCounterVec::new(Opts::new("requests", "r"), &["code", "host"]).unwrap();
    let durations = HistogramVec::new(HistogramOpts::new("durations", "d"), &["host"]).unwrap();
    let families: Vec<Box<dyn Family>> =
        vec![Box::new(requests.clone()), Box::new(durations.clone())];
    Scene { requests, durations, hosts: SeriesByLabel::new("host", families) }
}

impl Scene {
    fn write(&self, host: &str) {
        self.requests.with_label_values(&["200", host]).inc();
        self.requests.with_label_values(&["500", host]).inc();
        self.durations.with_label_values(&[host]).observe(1.0);
    }

    fn series(&self) -> usize {
        let families = [self.requests.collect(), self.durations.collect()].concat();
        families.iter().map(|family| family.get_metric().len()).sum()
    }
}

#[test]
fn the_series_of_a_thing_end_with_its_last_holder_and_others_stay() {
    let scene = scene();
    let [first, second] = [scene.hosts.hold("a"), scene.hosts.hold("a")];
    let _other = scene.hosts.hold("b");
    scene.write("a");
    scene.write("b");
    drop(first);
    assert_eq!(scene.series(), 6, "it is still held");
    drop(second);
    assert_eq!(scene.series(), 3);
    assert_eq!(scene.requests.with_label_values(&["200", "b"]).get(), 1);
}

#[test]
fn a_thing_that_comes_back_begins_anew() {
    let scene = scene();
    drop(scene.hosts.hold("a"));
    let held = scene.hosts.hold("a");
    scene.write("a");
    assert_eq!(scene.series(), 3);
    drop(held);
    assert_eq!(scene.series(), 0);
}

#[test]
fn a_value_that_is_another_label_of_the_family_is_left_alone() {
    let scene = scene();
    let _held = scene.hosts.hold("b");
    scene.write("b");
    drop(scene.hosts.hold("200"));
    assert_eq!(scene.series(), 3);
}
