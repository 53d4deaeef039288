use crate::user::*;
use http::HeaderValue;

fn proxy() -> RequestHeaders {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    RequestHeaders {
        allowed_names: names(&["front"]),
        user: names(&["X-Remote-User", "x-user"]),
        uid: names(&["x-remote-uid"]),
        groups: names(&["x-remote-group", "X-Group"]),
        extra_prefixes: names(&["X-Remote-Extra-"]),
    }
}

fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
    given
        .iter()
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
        .collect()
}

#[test]
fn headers_name_user_groups_and_extras() {
    let mut given = headers(&[
        ("x-remote-user", ""),
        ("x-user", "ada"),
        ("x-remote-uid", "7"),
        ("x-group", "c"),
        ("x-remote-extra-scopes%2fall", "one"),
        ("x-other", "no"),
    ]);
    for group in ["a", "", "b"] {
        given.append("x-remote-group", HeaderValue::from_static(group));
    }
    given.append("x-remote-extra-scopes%2fall", HeaderValue::from_static("two"));
    let user = proxy().user(&given).unwrap();
    assert_eq!((&*user.name, &*user.uid), ("ada", "7"), "the first one that is not empty");
    assert_eq!(user.groups, ["a", "b", "c", "system:authenticated"]);
    assert_eq!(
        user.extra.into_iter().collect::<Vec<_>>(),
        [("scopes/all".to_owned(), vec!["one".to_owned(), "two".to_owned()])]
    );
}

#[test]
fn without_a_user_header_there_is_no_user() {
    assert_eq!(proxy().user(&headers(&[("x-remote-group", "system:masters")])), None);
    assert_eq!(proxy().user(&headers(&[("x-remote-user", "")])), None);
}

#[test]
fn who_speaks_for_an_anonymous_peer_does_not_make_it_authenticated() {
    let given = [("x-user", "system:anonymous"), ("x-group", "system:unauthenticated")];
    assert_eq!(proxy().user(&headers(&given)).unwrap().groups, ["system:unauthenticated"]);
}

#[test]
fn allowed_names_are_exact_and_none_means_any() {
    assert!(proxy().allow("front"));
    assert!(!proxy().allow("front2") && !proxy().allow(""));
    assert!(RequestHeaders::default().allow("anybody"));
}
