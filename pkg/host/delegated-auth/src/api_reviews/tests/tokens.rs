use crate::api_reviews::*;
use http::HeaderValue;

#[test]
fn a_bearer_token_is_the_second_word_of_its_scheme() {
    for (header, token) in [
        ("Bearer abc", Some("abc")),
        ("bearer abc", Some("abc")),
        ("BEARER abc.d-e_f", Some("abc.d-e_f")),
        ("  Bearer abc ", Some("abc")),
        ("Bearer abc more", Some("abc")),
        ("Bearer", None),
        ("Bearer ", None),
        ("Bearer  abc", None),
        ("Basic dTpw", None),
        ("abc", None),
        ("", None),
    ] {
        let headers = [(AUTHORIZATION, HeaderValue::from_static(header))].into_iter().collect();
        assert_eq!(bearer(&headers), token.map(Ok), "{header:?}");
    }
    assert_eq!(bearer(&HeaderMap::new()), None);
    let bytes = HeaderValue::from_bytes(b"Bearer \xff").unwrap();
    let headers: HeaderMap = [(AUTHORIZATION, bytes)].into_iter().collect();
    assert!(bearer(&headers).unwrap().is_err(), "a token is ASCII");
}

#[test]
fn a_key_shows_nothing_of_its_question_and_differs_between_processes() {
    let random = ring::rand::SystemRandom::new();
    let [one, other] = [(); 2].map(|()| hmac::Key::generate(hmac::HMAC_SHA256, &random).unwrap());
    assert_eq!(hashed(&one, b"token"), hashed(&one, b"token"));
    assert_ne!(hashed(&one, b"token"), hashed(&one, b"token2"));
    assert_ne!(hashed(&one, b"token"), hashed(&other, b"token"));
}
