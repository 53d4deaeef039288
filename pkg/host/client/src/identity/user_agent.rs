//! The user agent in stock's form, so that audit logs and flow control read the same.

use http::HeaderValue;

use crate::config::ClientOptions;
use crate::error::ConfigError;

/// `<product>/<version> (<os>/<arch>) kubernetes/<commit>/<suffix>`, version up to the first `-`,
/// commit of 7 characters.
pub(crate) fn user_agent(o: &ClientOptions, suffix: &str) -> Result<HeaderValue, ConfigError> {
    let version = o.version.split('-').next().unwrap_or_default();
    let commit: String = o.commit.chars().take(7).collect();
    let text = format!(
        "{}/{version} ({}) kubernetes/{commit}/{suffix}",
        o.product,
        kube_api::go::platform(),
    );
    HeaderValue::from_str(&text).map_err(|_| ConfigError::UserAgent(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(version: &str) -> ClientOptions {
        ClientOptions {
            kubeconfig: None,
            master: None,
            product: "infra-controller-manager".to_owned(),
            version: version.to_owned(),
            commit: "0123456789abcdef".to_owned(),
        }
    }

    #[test]
    fn the_user_agent_has_stocks_form() {
        let agent = user_agent(&options("v1.2.3-rc.1+dirty"), "leader-election").unwrap();
        let agent = agent.to_str().unwrap();
        let (head, tail) = agent.split_once(" (").unwrap();
        assert_eq!(head, "infra-controller-manager/v1.2.3");
        assert!(tail.ends_with(") kubernetes/0123456/leader-election"), "{tail}");
    }

    #[test]
    fn a_suffix_that_no_header_may_hold_is_an_error_and_not_a_panic() {
        let error = user_agent(&options("v1"), "new\nline").unwrap_err();
        assert!(matches!(error, ConfigError::UserAgent(_)), "{error}");
    }
}
