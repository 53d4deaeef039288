//! Messages as the API server writes them, made by hand from the numbers in `generated.proto`.

use kube_api::Node;

use super::*;

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    // Two bytes of length are enough here.
    let low = u8::try_from(bytes.len() & 0x7f).unwrap() | 0x80;
    let high = u8::try_from(bytes.len() >> 7).unwrap();
    [&[number << 3 | 2, low, high], bytes].concat()
}

fn envelope(object: &[u8]) -> Vec<u8> {
    let type_meta = field(1, &[field(1, b"v1"), field(2, b"Node")].concat());
    [ENVELOPE, &type_meta, &field(2, object), &field(3, b""), &field(4, b"")].concat()
}

fn node(name: &str, version: &str, spec: &[u8]) -> Vec<u8> {
    let meta = [field(1, name.as_bytes()), field(5, b"uid-1"), field(6, version.as_bytes())];
    [field(1, &meta.concat()), field(2, spec), field(3, b"")].concat()
}

fn watch_event(kind: &str, object: &[u8]) -> Vec<u8> {
    [field(1, kind.as_bytes()), field(2, &field(1, &envelope(object)))].concat()
}

fn read(kind: &str, object: &[u8]) -> Result<Event<Node>, Fault> {
    event_from_protobuf(&watch_event(kind, object))
}

#[test]
fn each_type_of_event_is_recognized() {
    let object = node("a", "7", b"");
    assert!(matches!(read("ADDED", &object), Ok(Event::Added(n)) if n.resource_version == 7));
    assert!(matches!(read("MODIFIED", &object), Ok(Event::Modified(n)) if &*n.name == "a"));
    assert!(matches!(read("DELETED", &object), Ok(Event::Deleted(n)) if &*n.uid == "uid-1"));
    assert!(matches!(read("RENAMED", &object), Err(Fault::Undecodable { .. })));
}

#[test]
fn pod_cidrs_are_the_list_or_else_the_single_one() {
    let cidrs = |spec: &[u8]| -> Vec<String> {
        match read("ADDED", &node("a", "7", spec)) {
            Ok(Event::Added(node)) => node.pod_cidrs.iter().map(ToString::to_string).collect(),
            other => panic!("{other:?}"),
        }
    };
    let both = [field(1, b"10.0.0.0/24"), field(7, b"10.0.0.0/24"), field(7, b"fd00::/64")];
    let none: Vec<String> = Vec::new();
    assert_eq!(cidrs(&both.concat()), ["10.0.0.0/24", "fd00::/64"]);
    assert_eq!(cidrs(&field(1, b"10.0.0.0/24")), ["10.0.0.0/24"]);
    assert_eq!(cidrs(&field(1, b"")), none);
    assert_eq!(cidrs(b""), none);
}

#[test]
fn only_the_annotated_bookmark_ends_the_list() {
    let mark = |key: &str, value: &str| {
        let entry = [field(1, key.as_bytes()), field(2, value.as_bytes())].concat();
        let meta = [field(6, b"9"), field(12, &entry)].concat();
        match read("BOOKMARK", &field(1, &meta)) {
            Ok(Event::Bookmark(mark)) => (mark.version, mark.ends_list),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(mark(LIST_END, "true"), (9, true));
    assert_eq!(mark(LIST_END, "false"), (9, false));
    assert_eq!(mark("other", "true"), (9, false));
}

#[test]
fn an_error_event_keeps_code_reason_and_message() {
    let status =
        [field(3, b"too old resource version"), field(4, b"Expired"), vec![6 << 3, 0x9a, 0x03]];
    let Ok(Event::Error(status)) = read("ERROR", &status.concat()) else { panic!() };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert_eq!(status.message, "too old resource version");
}

#[test]
fn a_page_shows_its_version_and_whether_more_follows() {
    let items = [field(2, &node("a", "3", b"")), field(2, &node("b", "4", b""))].concat();
    let meta = field(1, &[field(2, b"5"), field(3, b"token")].concat());
    let first: Page<Node> = page_from_protobuf(&envelope(&[meta, items].concat())).unwrap();
    assert_eq!((first.version, first.next, first.items.len()), (5, Some("token".into()), 2));
    let last: Page<Node> = page_from_protobuf(&envelope(&field(1, &field(2, b"5")))).unwrap();
    assert_eq!((last.version, last.next), (5, None));
    let list = envelope(&[field(1, &field(2, b"7")), field(2, b"whatever")].concat());
    assert_eq!(list_version_from_protobuf(&list).unwrap(), 7);
}

#[test]
fn an_object_that_cannot_be_read_is_named_as_far_as_it_names_itself() {
    let named = |meta: &[Vec<u8>]| {
        let meta = [&meta.concat()[..], &field(6, b"no version")].concat();
        match read("ADDED", &field(1, &meta)) {
            Err(Fault::Undecodable { object, .. }) => object,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(named(&[field(1, b"a")]), r#"object "a""#);
    assert_eq!(named(&[field(1, b"a"), field(3, b"b")]), r#"object "b/a""#);
    assert_eq!(named(&[]), "an object of 16 bytes");
}

#[test]
fn broken_messages_are_unreadable_and_never_panic() {
    let good = watch_event("ADDED", &node("a", "7", &field(7, b"10.0.0.0/24")));
    for cut in 0..good.len() {
        assert!(event_from_protobuf::<Node>(&good[..cut]).is_err(), "cut at {cut}");
        for byte in 0..=255 {
            let mut changed = good.clone();
            changed[cut] = byte;
            let _outcome = event_from_protobuf::<Node>(&changed);
            let _outcome = page_from_protobuf::<Node>(&changed);
            let _outcome = Status::read(&changed);
        }
    }
}
