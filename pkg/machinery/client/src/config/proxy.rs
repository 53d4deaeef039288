//! Which proxy the environment wants for the API server: `HTTPS_PROXY` and `NO_PROXY` with the
//! rules stock has from Go's library (`host.md` 4.1). Loopback is never proxied. A `proxy-url` in
//! the kubeconfig wins over all of this.

use std::net::IpAddr;

use http::Uri;

use crate::error::ConfigError;

/// The proxy for `server`, if the environment (read through `env`) names one.
pub(crate) fn from_env(
    server: &Uri,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, ConfigError> {
    let either = |upper: &str, lower: &str| {
        env(upper).filter(|v| !v.is_empty()).or_else(|| env(lower).filter(|v| !v.is_empty()))
    };
    let Some(host) = server.host().filter(|_| server.scheme_str() == Some("https")) else {
        return Ok(None);
    };
    let Some(proxy) = either("HTTPS_PROXY", "https_proxy") else { return Ok(None) };
    let exceptions = either("NO_PROXY", "no_proxy").unwrap_or_default();
    if is_loopback(host) || is_excepted(host, server.port_u16().unwrap_or(443), &exceptions) {
        return Ok(None);
    }
    let proxy = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
    proxy.parse().map(Some).map_err(|_| ConfigError::Proxy { reason: "it is not an address" })
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || address(host).is_some_and(|a| a.is_loopback())
}

fn is_excepted(host: &str, port: u16, exceptions: &str) -> bool {
    let host = host.to_ascii_lowercase();
    exceptions.split(',').map(str::trim).filter(|e| !e.is_empty()).any(|entry| {
        let entry = entry.to_ascii_lowercase();
        let (name, wanted_port) = split_port(&entry);
        wanted_port.is_none_or(|wanted| wanted == port) && matches(&host, name)
    })
}

fn matches(host: &str, entry: &str) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some(host) = address(host) {
        let range = entry.parse::<ipnet::IpNet>();
        return range.is_ok_and(|r| r.contains(&host)) || address(entry) == Some(host);
    }
    let domain = entry.strip_prefix("*.").or_else(|| entry.strip_prefix('.')).unwrap_or(entry);
    let only_below = domain.len() != entry.len();
    match host.strip_suffix(domain) {
        Some("") => !only_below,
        Some(rest) => rest.ends_with('.'),
        None => false,
    }
}

/// `name:port`, where an IPv6 address has no port unless it is in brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxied(server: &str, no_proxy: &str) -> bool {
        let env = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://proxy.example:3128".to_owned()),
            "NO_PROXY" => Some(no_proxy.to_owned()),
            _ => None,
        };
        from_env(&server.parse().unwrap(), env).unwrap().is_some()
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
            ("https://example:6443", ".example", true),
            ("https://badexample:6443", "example", true),
            ("https://api.example:6443", "other, api.example:6443", false),
            ("https://api.example:6443", "api.example:443", true),
            ("https://10.0.0.1:6443", "10.0.0.0/8", false),
            ("https://10.0.0.1:6443", "10.0.0.1", false),
            ("https://11.0.0.1:6443", "10.0.0.0/8", true),
            ("https://[fd00::1]:6443", "fd00::/8", false),
        ] {
            assert_eq!(proxied(server, no_proxy), expected, "{server} with NO_PROXY={no_proxy}");
        }
    }

    #[test]
    fn a_proxy_without_scheme_is_taken_as_http_and_the_lower_case_name_counts_too() {
        let env = |name: &str| (name == "https_proxy").then(|| "proxy.example:3128".to_owned());
        let proxy = from_env(&Uri::from_static("https://api.example"), env).unwrap().unwrap();
        assert_eq!(proxy, Uri::from_static("http://proxy.example:3128"));
    }
}
