//! Objects of every kind with a CRD through validation, as the command and the webhook judge them.

use std::sync::LazyLock;

use cluster_health::admission::Review;
use serde_json::{Value, json};
use validation::{Environment, Kind, Operation, validate};

/// A valid object of each kind that is judged.
static SAMPLES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let texts = [
        include_str!("../../../config/samples/cluster-api.yaml"),
        include_str!("../../../config/samples/cluster-cidrs.yaml"),
        include_str!("../../../config/samples/kubefed.yaml"),
        include_str!("../../../config/samples/tke.yaml"),
    ];
    let read = |text| serde_saphyr::from_multiple::<Value>(text).expect("a sample is YAML");
    texts.into_iter().flat_map(read).filter(|object| Kind::of(object).is_some()).collect()
});

/// The first byte selects what is done to an object of that kind; an object ends with a zero byte, and
/// the stored one follows.
pub(crate) fn are_judged(data: &[u8]) {
    let Some((select, data)) = crate::selected(data) else { return };
    if select == 255 {
        return is_reviewed(data);
    }
    let (new, old) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    let sample = &SAMPLES[select % SAMPLES.len()];
    let kind = Kind::of(sample).expect("samples are of known kinds");
    // The kind must not depend on two words that a mutation breaks first.
    let read = |text: &[u8]| -> Option<Value> {
        let mut object: Value = serde_json::from_slice(text).ok()?;
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), sample["apiVersion"].clone());
            fields.insert("kind".to_owned(), sample["kind"].clone());
        }
        Some(object)
    };
    let Some(new) = read(new) else { return };
    let old = read(old).unwrap_or_else(|| sample.clone());
    let known = environment();
    for operation in [Operation::Create, Operation::Update { old: &old }] {
        let findings = validate(kind, &new, operation, &known);
        for error in &findings.errors {
            assert!(!error.field.is_empty() && !error.detail.is_empty(), "{error:?}");
        }
    }
    // What is stored stays valid: an update that changes nothing is never refused.
    let same = validate(kind, &new, Operation::Update { old: &new }, &known);
    assert!(same.errors.is_empty(), "{:?}", same.errors);
}

/// A body of the webhook.
fn is_reviewed(data: &[u8]) {
    let Ok(review) = Review::read(data) else { return };
    let findings = review.subject.as_ref().map(|subject| {
        let operation = match &subject.old {
            Some(old) => Operation::Update { old },
            None => Operation::Create,
        };
        validate(subject.kind, &subject.object, operation, &environment())
    });
    let answer: Value =
        serde_json::from_str(&review.answer(&findings.unwrap_or_default())).unwrap();
    assert!(answer["response"]["allowed"].is_boolean(), "{answer}");
}

fn environment() -> Environment {
    serde_json::from_value(json!({
        "clusters": [], "machines": [], "clusterCredentials": [], "kubeFedClusters": [],
    }))
    .expect("an environment")
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (place, sample) in SAMPLES.iter().enumerate() {
        let (place, text) = (u8::try_from(place).unwrap(), sample.to_string());
        seeds.push([&[place][..], text.as_bytes()].concat());
        seeds.push([&[place][..], text.as_bytes(), b"\0", text.as_bytes()].concat());
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE", "object": sample}});
        seeds.push([&[255][..], review.to_string().as_bytes()].concat());
    }
    seeds
}
