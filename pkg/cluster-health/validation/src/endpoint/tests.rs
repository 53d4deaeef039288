use super::*;

#[test]
fn two_writings_of_one_address_are_equal() {
    let parse = |text: &str| Endpoint::parse(text).unwrap();
    for (one, other) in [
        ("a", "https://A:443/"),
        ("HTTP://a", "http://a:80"),
        ("fd00::1", "https://[fd00::1]"),
        ("https://a/b/", "https://a/b"),
    ] {
        assert_eq!(parse(one), parse(other), "{one}");
    }
    assert_ne!(parse("a"), parse("http://a"));
    assert_ne!(parse("https://a/b"), parse("https://a/c"));
}
