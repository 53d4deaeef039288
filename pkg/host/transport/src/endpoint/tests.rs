//! Servers that are reached through a proxy, and valid addresses of proxies.

use super::*;

fn proxied(server: &str, no_proxy: &str) -> bool {
    let env = |name: &str| match name {
        "HTTPS_PROXY" => Some("http://proxy.example:3128".to_owned()),
        "NO_PROXY" => Some(no_proxy.to_owned()),
        _ => None,
    };
    Proxy::from_environment(&server.parse().unwrap(), env).unwrap().is_some()
}

#[test]
fn the_printed_form_of_a_proxy_shows_where_it_is_and_not_who_we_are_there() {
    for scheme in ["http", "https", "socks5"] {
        let proxy = Proxy::parse(&format!("{scheme}://me:hunter2@proxy:3128")).unwrap();
        assert_eq!(format!("{proxy:?}"), "Proxy(proxy)");
    }
}

#[test]
fn the_proxy_is_used_unless_no_proxy_excepts_the_server() {
    for (server, no_proxy, expected) in [
        ("https://api.example:6443", "", true),
        ("http://api.example:6443", "", false),
        ("https://127.0.0.1:6443", "", false),
        ("https://[::1]:6443", "", false),
        ("https://localhost:6443", "", false),
        ("https://api.example:6443", "*", false),
        ("https://api.example:6443", "example", false),
        ("https://api.example:6443", ".example", false),
        ("https://api.example:6443", "*.example", false),
        ("https://badexample:6443", "example", true),
        ("https://api.example:6443", "other, api.example:6443", false),
        ("https://api.example:6443", "api.example:443", true),
        ("https://api.example", "api.example:443", false),
        ("https://10.0.0.1:6443", "10.0.0.0/8", false),
        ("https://10.0.0.1:6443", "10.0.0.1", false),
        ("https://11.0.0.1:6443", "10.0.0.0/8", true),
        ("https://[fd00::1]:6443", "fd00::/8", false),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", false),
        ("https://[fd00::1]:6443", "[fd00::1]:443", true),
    ] {
        assert_eq!(proxied(server, no_proxy), expected, "{server} with NO_PROXY={no_proxy}");
    }
}

#[test]
fn a_proxy_without_scheme_is_taken_as_http_and_the_lower_case_name_counts_too() {
    let env = |name: &str| (name == "https_proxy").then(|| "proxy.example:3128".to_owned());
    let server = Uri::from_static("https://api.example");
    let proxy = Proxy::from_environment(&server, env).unwrap().unwrap();
    assert_eq!(proxy.uri(), Uri::from_static("http://proxy.example:3128"));
    assert_eq!(proxy.kind(), Some(Kind::Http));
}

#[test]
fn credentials_of_a_proxy_are_read_and_never_shown() {
    let proxy = Proxy::parse("https://me:se%20cret@proxy.example:3128").unwrap();
    assert_eq!(proxy.kind(), Some(Kind::Https));
    assert_eq!(proxy.uri(), Uri::from_static("https://proxy.example:3128"));
    assert_eq!(proxy.basic_auth().unwrap(), "Basic bWU6c2UgY3JldA==");
    assert!(!format!("{proxy:?}").contains("cret"));

    let socks = Proxy::parse("socks5://me:secret@proxy.example:1080").unwrap();
    assert_eq!(socks.kind(), Some(Kind::Socks5));
    assert_eq!(socks.login(), Some(("me".to_owned(), "secret".to_owned())));
    assert_ne!(proxy, Proxy::parse("https://me:other@proxy.example:3128").unwrap());
}

#[test]
fn what_is_no_proxy_is_refused_without_being_quoted() {
    for address in ["ftp://a:se@cret", "socks4://a:secret@b", "http://", "", "a b://secret"] {
        assert_eq!(Proxy::parse(address), Err(ProxyError), "{address}");
    }
    assert!(!ProxyError.to_string().contains("secret"));
}
