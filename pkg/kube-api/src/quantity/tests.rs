use proptest::prelude::*;
use serde_json::{Value, json};

use super::Quantity;
use super::*;

fn total(spec: Value) -> Resources {
    serde_json::from_value::<PodRequests>(spec).unwrap().total()
}

fn cpu(spec: Value) -> String {
    total(spec).get("cpu").rounded_to_milli().to_string()
}

fn container(cpu: &str) -> Value {
    json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "9"}}})
}

fn sidecar(cpu: &str) -> Value {
    let mut sidecar = container(cpu);
    sidecar["restartPolicy"] = json!("Always");
    sidecar
}

#[test]
fn a_pod_requests_the_most_that_it_needs_at_any_time() {
    let table = [
        ("nothing", json!({}), "0"),
        (
            "nulls",
            json!({"containers": null, "initContainers": null, "overhead": null, "resources": null}),
            "0",
        ),
        (
            "no requests",
            json!({"containers": [{"resources": {}}, {"resources": {"requests": null}}]}),
            "0",
        ),
        (
            "containers add up",
            json!({"containers": [container("100m"), container("200m")]}),
            "300m",
        ),
        (
            "a large init container wins",
            json!({"containers": [container("1")], "initContainers": [container("3"), container("2")]}),
            "3",
        ),
        (
            "init containers do not add up",
            json!({"containers": [container("4")], "initContainers": [container("3"), container("3")]}),
            "4",
        ),
        (
            "a sidecar runs with the containers",
            json!({"containers": [container("1")], "initContainers": [sidecar("2")]}),
            "3",
        ),
        (
            "a sidecar runs with later init containers",
            json!({"containers": [container("1")], "initContainers": [sidecar("2"), container("5")]}),
            "7",
        ),
        (
            "and not with earlier ones",
            json!({"containers": [container("1")], "initContainers": [container("5"), sidecar("2")]}),
            "5",
        ),
        (
            "a request of the Pod replaces the rest",
            json!({"containers": [container("1")], "initContainers": [container("9")], "resources": {"requests": {"cpu": "2"}}}),
            "2",
        ),
        (
            "overhead comes on top",
            json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}),
            "1250m",
        ),
        (
            "also on top of the Pod's",
            json!({"containers": [container("1")], "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "250m"}}),
            "2250m",
        ),
        (
            "another restart policy is no sidecar",
            json!({"containers": [container("1")], "initContainers": [{"restartPolicy": "Never", "resources": {"requests": {"cpu": "2"}}}]}),
            "2",
        ),
    ];
    for (name, spec, expected) in table {
        assert_eq!(cpu(spec), expected, "{name}");
    }
}

#[test]
fn a_request_of_the_pod_replaces_only_the_resources_that_it_names() {
    let total = total(json!({
        "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "resources": {"requests": {"memory": "3Gi"}},
        "overhead": {"memory": "1Mi"},
    }));
    assert_eq!(total.get("cpu").rounded_to_milli().to_string(), "1");
    assert_eq!(total.get("memory").as_whole(), (3 << 30) + (1 << 20));
}

#[test]
fn a_request_that_is_no_quantity_is_an_error_and_not_zero() {
    let spec = json!({"containers": [container("lots")]});
    assert!(serde_json::from_value::<PodRequests>(spec).is_err());
}

/// One container of the model: milli cores, and whether it is a sidecar.
type Init = (i64, bool);

/// Goes through the life of the Pod moment by moment, and keeps the highest sum of what runs.
fn naive(inits: &[Init], containers: &[i64], pod: Option<i64>, overhead: i64) -> i64 {
    let mut peak = 0;
    let mut running: Vec<i64> = Vec::new();
    for (request, stays) in inits {
        running.push(*request);
        peak = peak.max(running.iter().sum());
        if !stays {
            running.pop();
        }
    }
    running.extend(containers);
    pod.unwrap_or(peak.max(running.iter().sum())) + overhead
}

proptest! {
    #[test]
    fn the_total_is_the_highest_of_the_pods_life(
        inits in prop::collection::vec((0_i64..5000, any::<bool>()), 0..6),
        containers in prop::collection::vec(0_i64..5000, 0..4),
        pod in prop::option::of(0_i64..5000),
        overhead in 0_i64..100,
    ) {
        let milli = |milli: i64| format!("{milli}m");
        let mut spec = json!({"overhead": {"cpu": milli(overhead)}});
        spec["containers"] = containers.iter().map(|request| container(&milli(*request))).collect();
        spec["initContainers"] = inits.iter().map(|(request, stays)| {
            if *stays { sidecar(&milli(*request)) } else { container(&milli(*request)) }
        }).collect();
        if let Some(pod) = pod {
            spec["resources"] = json!({"requests": {"cpu": milli(pod)}});
        }
        let naive = naive(&inits, &containers, pod, overhead);
        prop_assert_eq!(total(spec).get("cpu").as_milli(), i128::from(naive));
    }
}

#[test]
fn resources_of_pods_add_up_by_name() {
    let mut sum = Resources::default();
    for _ in 0..3 {
        sum += &total(json!({"containers": [container("333333333n")]}));
    }
    assert_eq!(sum.get("cpu"), "999999999n".parse::<Quantity>().unwrap());
    assert_eq!(sum.get("cpu").rounded_to_milli().to_string(), "1");
    assert_eq!(sum.get("memory"), Quantity::ZERO);
}
