//! The planner's memory in the words of a status, and of an annotation
//! (`rule:memory-is-in-the-status`). Pure.

use std::collections::BTreeMap;

use aws_network::{Memory, Record, Timestamp};
use objects::{Object, ObjectMeta};

use crate::api::aws_cluster::{AwsCluster, AwsClusterStatus, Created, Resources};
use crate::api::{OWNER_ID_ANNOTATION, REGIONAL_NAT_ANNOTATION};

/// Reads the memory of an AWSCluster.
pub(super) fn read(object: &Object<AwsCluster>) -> Memory {
    Memory { regional_nat_refusal: refusal(&object.metadata), ..read_status(&object.status) }
}

/// Writes what a move must not lose, with the owner id that it is about.
pub(super) fn annotate(
    memory: &Memory,
    owner_id: &str,
    annotations: &mut BTreeMap<String, String>,
) {
    let name = REGIONAL_NAT_ANNOTATION;
    match &memory.regional_nat_refusal {
        Some(code) => drop(annotations.insert(name.to_owned(), format!("{owner_id} {code}"))),
        None => drop(annotations.remove(name)),
    }
}

/// The owner id of an AWSCluster: the UID that it had first, unless a manifest says another.
pub(super) fn owner_id(metadata: &ObjectMeta) -> &str {
    metadata.annotations.get(OWNER_ID_ANNOTATION).map_or(&*metadata.uid, |id| id)
}

/// The code in the annotation, unless that is about another AWSCluster, as in a copied manifest, or is no
/// code of AWS: conditions show it as AWS's answer.
fn refusal(metadata: &ObjectMeta) -> Option<String> {
    let (of, code) = metadata.annotations.get(REGIONAL_NAT_ANNOTATION)?.rsplit_once(' ')?;
    let is_code = (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'.');
    (is_code && of == owner_id(metadata)).then(|| code.to_owned())
}

/// Reads the memory from a status. Entries that cannot be parsed are dropped: resources are found by
/// their tags all the same.
fn read_status(status: &AwsClusterStatus) -> Memory {
    let mut memory = Memory {
        deep_checked: status.last_deep_check_time.as_deref().and_then(time),
        ..Memory::default()
    };
    let none = Resources::default();
    let resources = status.resources.as_ref().unwrap_or(&none);
    memory.deleting_since = resources.deleting_since.as_deref().and_then(time);
    memory.blocked_since = resources.blocked_since.as_deref().and_then(time);
    let created = resources.created.iter();
    let created = created.map(|(name, made)| (name, &made.since, Some(made.id.clone())));
    let pending = status.pending_creates.iter().map(|(name, since)| (name, since, None));
    // What is under way again counts, not what was there before.
    for (name, since, id) in created.chain(pending) {
        let attempt = resources.attempts.get(name).copied().unwrap_or_default();
        if let (Ok(logical), Some(since)) = (name.parse(), time(since)) {
            memory.records.insert(logical, Record { since, id, attempt });
        }
    }
    memory
}

pub(super) fn write(memory: &Memory, status: &mut AwsClusterStatus) {
    let resources = status.resources.get_or_insert_default();
    resources.created.clear();
    resources.attempts.clear();
    status.pending_creates.clear();
    for (logical, record) in &memory.records {
        let (name, since) = (logical.to_string(), text(record.since));
        if record.attempt > 0 {
            resources.attempts.insert(name.clone(), record.attempt);
        }
        match &record.id {
            Some(id) => drop(resources.created.insert(name, Created { id: id.clone(), since })),
            None => drop(status.pending_creates.insert(name, since)),
        }
    }
    resources.deleting_since = memory.deleting_since.map(text);
    resources.blocked_since = memory.blocked_since.map(text);
    status.last_deep_check_time = memory.deep_checked.map(text);
}

fn time(text: &str) -> Option<Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok().map(Timestamp)
}

/// In RFC 3339; a time that no clock shows is the last that one can.
fn text(time: Timestamp) -> String {
    let second = i64::try_from(time.0).unwrap_or(i64::MAX);
    let time = jiff::Timestamp::from_second(second).unwrap_or(jiff::Timestamp::MAX);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use aws_network::LogicalId;

    use super::*;

    fn record(since: u64, id: Option<&str>, attempt: u32) -> Record {
        Record { since: Timestamp(since), id: id.map(str::to_owned), attempt }
    }

    #[test]
    fn a_memory_is_read_as_it_was_written() {
        let mut memory = Memory {
            deep_checked: Some(Timestamp(1_800_000_000)),
            deleting_since: Some(Timestamp(5)),
            blocked_since: Some(Timestamp(6)),
            regional_nat_refusal: Some("UnsupportedOperation".to_owned()),
            ..Memory::default()
        };
        memory.records.insert(LogicalId::Vpc, record(10, Some("vpc-1"), 0));
        memory.records.insert(LogicalId::InternetGateway, record(11, None, 0));
        memory.records.insert(LogicalId::NatGateway("a".into()), record(12, Some("nat-1"), 2));
        memory.records.insert(LogicalId::Bastion, record(0, None, 3));
        let mut object: Object<AwsCluster> = Object::read(serde_json::json!({
            "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        }))
        .unwrap();
        let store = |memory: &Memory, object: &mut Object<AwsCluster>| {
            write(memory, &mut object.status);
            annotate(memory, "u", &mut object.metadata.annotations);
        };
        store(&memory, &mut object);
        assert_eq!(read(&object), memory);
        assert_eq!(object.status.pending_creates["internet-gateway"], "1970-01-01T00:00:11Z");
        // And through JSON, as it is stored.
        let stored = serde_json::to_value(&object.status).unwrap();
        object.status = serde_json::from_value(stored).unwrap();
        assert_eq!(read(&object), memory);
        // A move keeps annotations and no status.
        let status = std::mem::take(&mut object.status);
        assert_eq!(read(&object).regional_nat_refusal, memory.regional_nat_refusal);
        object.status = status;
        // What is forgotten leaves no trace.
        store(&Memory::default(), &mut object);
        assert_eq!(read(&object), Memory::default());
        assert!(object.metadata.annotations.is_empty());
    }

    #[test]
    fn a_refusal_of_another_owner_id_and_what_is_no_code_do_not_count() {
        let read = |owner_id: Option<&str>, value: &str| {
            let mut object: Object<AwsCluster> = Object::read(serde_json::json!({
                "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1",
                    "annotations": {REGIONAL_NAT_ANNOTATION: value}},
            }))
            .unwrap();
            let owner_id = owner_id.map(|id| (OWNER_ID_ANNOTATION.to_owned(), id.to_owned()));
            object.metadata.annotations.extend(owner_id);
            read(&object).regional_nat_refusal
        };
        let code = "Client.UnknownParameter";
        let longest = "C".repeat(64);
        assert_eq!(read(None, &format!("u {code}")).as_deref(), Some(code));
        assert_eq!(read(Some("first"), &format!("first {code}")).as_deref(), Some(code));
        assert_eq!(read(None, &format!("u {longest}")), Some(longest.clone()));
        assert_eq!(read(Some("first"), &format!("u {code}")), None);
        assert_eq!(read(None, &format!("first {code}")), None);
        for value in [code, "", "u", "u ", "u see <a>", "u true!", &format!("u {longest}C")] {
            assert_eq!(read(None, value), None, "{value}");
        }
    }

    /// rule:memory-is-in-the-status
    #[test]
    fn what_cannot_be_read_was_not_said() {
        let status: AwsClusterStatus = serde_json::from_value(serde_json::json!({
            "pendingCreates": {"vpc": "yesterday", "castle": "2026-01-01T00:00:00Z",
                "address/a": "2026-01-01T00:00:00Z"},
            "lastDeepCheckTime": "never",
        }))
        .unwrap();
        let memory = read_status(&status);
        let known: Vec<_> = memory.records.keys().map(ToString::to_string).collect();
        assert_eq!(known, ["address/a"]);
        assert_eq!(memory.deep_checked, None);
    }
}
