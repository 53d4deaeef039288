use prometheus::core::Metric;
use prometheus::proto::{self, MetricType};
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
    Scene { requests, durations, hosts: SeriesByLabel::default() }
}

impl Scene {
    fn write(&self, host: &Held, name: &str) {
        host.series(&self.requests, &["200", name]).inc();
        host.series(&self.requests, &["500", name]).inc();
        host.series(&self.durations, &[name]).observe(1.0);
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
    let other = scene.hosts.hold("b");
    scene.write(&first, "a");
    scene.write(&other, "b");
    drop(first);
    assert_eq!(scene.series(), 6, "it is still held");
    drop(second);
    assert_eq!(scene.series(), 3);
    assert_eq!(scene.requests.with_label_values(&["200", "b"]).get(), 1);
}

#[test]
fn a_series_that_comes_back_starts_at_zero() {
    let scene = scene();
    let held = scene.hosts.hold("a");
    scene.write(&held, "a");
    drop(held);
    let held = scene.hosts.hold("a");
    scene.write(&held, "a");
    assert_eq!(held.series(&scene.requests, &["200", "a"]).get(), 1);
    drop(held);
    assert_eq!(scene.series(), 0);
}

#[test]
fn a_value_that_is_another_label_of_the_family_is_left_alone() {
    let scene = scene();
    let held = scene.hosts.hold("b");
    scene.write(&held, "b");
    drop(scene.hosts.hold("200"));
    assert_eq!(scene.series(), 3);
}

/// A metric that cannot be read out.
#[derive(Clone)]
struct Unread;

impl Metric for Unread {
    fn metric(&self) -> proto::Metric {
        panic!("the family is read out");
    }
}

impl MetricVecBuilder for Unread {
    type M = Self;
    type P = Opts;

    fn build<V: AsRef<str>>(&self, _: &Opts, _: &[V]) -> prometheus::Result<Self> {
        Ok(Self)
    }
}

#[test]
fn the_end_of_a_thing_reads_no_series_of_others() {
    let opts = Opts::new("unread", "u").variable_label("host");
    let family = MetricVec::create(MetricType::COUNTER, Unread, opts).unwrap();
    let hosts = SeriesByLabel::default();
    let [left, stays] = [hosts.hold("a"), hosts.hold("b")];
    left.series(&family, &["a"]);
    stays.series(&family, &["b"]);
    drop(left);
    assert!(family.remove_label_values(&["a"]).is_err(), "it is gone");
    assert!(family.remove_label_values(&["b"]).is_ok(), "it is there");
}
