use super::*;
use crate::client_token;

const NOW: Timestamp = Timestamp(1_000);

fn zone() -> String {
    "us-east-2a".to_owned()
}

fn memory(logical: LogicalId, age: u64, id: Option<&str>, attempt: u32) -> Memory {
    let since = Timestamp(NOW.0 - age);
    let record = Record { since, id: id.map(str::to_owned), attempt };
    Memory { records: BTreeMap::from([(logical, record)]), ..Memory::default() }
}

#[test]
fn what_is_not_seen_is_created_only_when_it_would_be_seen() {
    let absence =
        |logical: LogicalId, age, id| memory(logical.clone(), age, id, 0).absence(&logical, NOW);
    assert_eq!(Memory::default().absence(&LogicalId::Vpc, NOW), Absence::Certain);
    // rule:intent-before-unprotected-create
    assert_eq!(absence(LogicalId::Vpc, 12, None), Absence::Settling(18));
    assert_eq!(absence(LogicalId::Vpc, READS_CATCH_UP, None), Absence::Certain);
    assert_eq!(absence(LogicalId::Address(zone()), 29, None), Absence::Settling(1));
    assert_eq!(absence(LogicalId::Bastion, 1, None), Absence::Certain, "its token protects it");
    assert_eq!(absence(LogicalId::Bastion, 1, Some("i-1")), Absence::Settling(59), "it exists");
    assert_eq!(absence(LogicalId::Vpc, LATE, Some("vpc-1")), Absence::Certain);
}

#[test]
fn the_attempt_rises_with_each_end_and_never_falls() {
    let logical = LogicalId::NatGateway(zone());
    let attempt = |age, id, attempt, ended| {
        memory(logical.clone(), age, id, attempt).attempt(&logical, ended, NOW)
    };
    assert_eq!(Memory::default().attempt(&logical, None, NOW), 0);
    assert_eq!(Memory::default().attempt(&logical, Some(2), NOW), 3, "a dead one is seen");
    assert_eq!(attempt(10, None, 2, None), 2, "the same create is sent again");
    assert_eq!(attempt(LATE, Some("nat-1"), 2, None), 3, "it was made and is gone");
    assert_eq!(attempt(LATE, None, 4, Some(1)), 4);
}

#[test]
fn tokens_differ_by_owner_place_and_attempt_and_by_nothing_else() {
    let (table, nat) =
        (LogicalId::RouteTable("10.0.0.0/24".to_owned()), LogicalId::NatGateway(zone()));
    let token = client_token("owner", &nat, 0);
    assert_eq!(token, client_token("owner", &nat, 0));
    assert_eq!(token.len(), 32);
    assert!(token.chars().all(|letter| letter.is_ascii_hexdigit()));
    for other in [
        client_token("other", &nat, 0),
        client_token("owner", &table, 0),
        client_token("owner", &nat, 1),
    ] {
        assert_ne!(token, other);
    }
}

#[test]
fn what_is_stored_is_read_back() {
    let mut memory = memory(LogicalId::Subnet("10.0.0.0/24".to_owned()), 5, Some("subnet-1"), 3);
    memory.deep_checked = Some(NOW);
    memory.blocked_since = Some(NOW);
    let logicals = [
        LogicalId::Vpc,
        LogicalId::InternetGateway,
        LogicalId::Address(zone()),
        LogicalId::NatGateway(zone()),
        LogicalId::RouteTable("10.0.0.0/24".to_owned()),
        LogicalId::SecurityGroup("node".to_owned()),
        LogicalId::Bastion,
        LogicalId::LoadBalancer,
        LogicalId::TargetGroup,
    ];
    for logical in logicals {
        memory.records.insert(logical, Record { since: NOW, id: None, attempt: 0 });
    }
    let text = serde_json::to_string(&memory).unwrap();
    assert!(
        text.contains(r#""subnet/10.0.0.0/24":{"since":995,"id":"subnet-1","attempt":3}"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), memory);
    assert_eq!(serde_json::from_str::<Memory>("{}").unwrap(), Memory::default());
    for bad in ["house", "vpc/1", "subnet", "subnet/"] {
        let error = bad.parse::<LogicalId>().unwrap_err().to_string();
        assert!(error.contains(&format!("{bad:?}")), "{error}");
    }
}

#[test]
fn reads_are_complete_half_a_minute_after_the_last_create() {
    let mut memory = memory(LogicalId::Vpc, 100, Some("vpc-1"), 0);
    memory.records.insert(LogicalId::Bastion, Record { since: NOW, id: None, attempt: 0 });
    memory.deleting_since = Some(NOW.plus(500));
    assert_eq!(memory.reads_are_complete_from(), NOW.plus(READS_CATCH_UP));
    let lost = Memory { deleting_since: Some(NOW), ..Memory::default() };
    assert_eq!(
        lost.reads_are_complete_from(),
        NOW.plus(READS_CATCH_UP),
        "nothing is known of creates"
    );
}
