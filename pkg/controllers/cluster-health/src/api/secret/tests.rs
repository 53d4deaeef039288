use secrecy::ExposeSecret as _;

use super::*;

#[test]
fn base64_is_decoded_to_the_byte_and_anything_else_is_refused() {
    for (text, bytes) in
        [("", &b""[..]), ("YQ==", b"a"), ("YWI=", b"ab"), ("YWJj", b"abc"), ("YWJj\n", b"abc")]
    {
        assert_eq!(decode(text).unwrap().expose_secret(), bytes, "{text:?}");
    }
    for text in ["=", "==", "YQ", "YQ=", "Y===", "a b=", "YWJj!", "YR=="] {
        assert!(decode(text).is_none(), "{text:?}");
    }
}
