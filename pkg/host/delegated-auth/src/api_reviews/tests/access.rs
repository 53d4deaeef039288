use crate::api_reviews::*;

#[test]
fn a_question_holds_all_that_is_known_of_the_user() {
    let user = User {
        name: "ada".into(),
        uid: "7".into(),
        groups: vec!["a".into()],
        extra: [("scope".to_owned(), vec!["one".to_owned()])].into(),
    };
    let expected = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {
            "user": "ada", "uid": "7", "groups": ["a"], "extra": {"scope": ["one"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    });
    assert_eq!(question(&user, &Method::GET, "/metrics"), expected);
}
