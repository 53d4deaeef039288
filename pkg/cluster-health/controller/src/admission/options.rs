//! [`WebhookOptions`]: the flags, judged. No I/O.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use crate::webhook_registration::FailurePolicy;
use ::flags::{Flag, Problem, Values};
use validation::{Environment, Licence};

use super::flags;
use crate::flags::{KUBEFED_NAMESPACE, TKE_INSECURE_WHEN_NO_CA, dial_policy};
use crate::network_checker::NetworkOptions;

/// Options of the webhook.
#[derive(Clone, Debug)]
pub(super) struct WebhookOptions {
    pub(super) address: IpAddr,
    /// 0 takes any free one.
    pub(super) port: u16,
    /// `None`: the program makes its certificate.
    pub(super) cert_dir: Option<PathBuf>,
    pub(super) client_ca: Option<PathBuf>,
    pub(super) failure_policy: FailurePolicy,
    pub(super) network: NetworkOptions,
    /// Without any objects.
    pub(super) environment: Environment,
}

/// Judges the values.
///
/// # Errors
/// Every broken rule.
pub(super) fn judge(values: &Values) -> Result<WebhookOptions, Vec<Problem>> {
    let mut problems = Vec::new();
    let path = |flag: &Flag<String>| {
        Some(values.get(flag)).filter(|text| !text.is_empty()).map(PathBuf::from)
    };
    let client_ca = path(&flags::CLIENT_CA_FILE);
    let (address, port) = bind_address(values, client_ca.is_some(), &mut problems);
    let failure_policy = word(
        values,
        &flags::FAILURE_POLICY,
        [("Ignore", FailurePolicy::Ignore), ("Fail", FailurePolicy::Fail)],
        &mut problems,
    );
    let ssh = word(values, &flags::SSH_CHECK, [("tcp", true), ("off", false)], &mut problems);
    let namespace = Some(values.get(&KUBEFED_NAMESPACE)).filter(|text| !text.is_empty());
    let policy = dial_policy(values, &mut problems);
    let environment = environment(values, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(WebhookOptions {
        address,
        port,
        cert_dir: path(&flags::CERT_DIR),
        client_ca,
        failure_policy,
        network: NetworkOptions {
            ssh,
            import: values.get(&flags::IMPORT_CHECK),
            policy,
            insecure_without_ca: values.get(&TKE_INSECURE_WHEN_NO_CA),
            secret_namespace: namespace,
        },
        environment,
    })
}

/// Where to listen. A webhook that does not know its callers is for those on this host, unless the flag says otherwise.
fn bind_address(
    values: &Values,
    knows_callers: bool,
    problems: &mut Vec<Problem>,
) -> (IpAddr, u16) {
    const PORT: u16 = 9443;
    let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let text = values.get(&flags::BIND_ADDRESS);
    if text.is_empty() {
        let address = if knows_callers { everywhere } else { Ipv4Addr::LOCALHOST.into() };
        return (address, PORT);
    }
    let read = || {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = if host.is_empty() { everywhere } else { host.parse().ok()? };
        Some((address, port.parse().ok()?))
    };
    read().unwrap_or_else(|| {
        let rule = format!("{text:?} is not [ADDRESS]:PORT, such as :9443");
        problems.push(flags::BIND_ADDRESS.problem(rule));
        (everywhere, 0)
    })
}

/// Accepts one of two words.
fn word<T>(
    values: &Values,
    flag: &Flag<String>,
    words: [(&str, T); 2],
    problems: &mut Vec<Problem>,
) -> T {
    let given = values.get(flag);
    let [first, second] = words;
    if given != first.0 && given != second.0 {
        let rule = format!("{given:?} is neither {} nor {}", first.0, second.0);
        problems.push(flag.problem(rule));
    }
    if given == second.0 { second.1 } else { first.1 }
}

fn environment(values: &Values, problems: &mut Vec<Problem>) -> Environment {
    let mut count = |flag: &Flag<i64>| {
        u64::try_from(values.get(flag)).unwrap_or_else(|_| {
            problems.push(flag.problem("must be 0 (no limit) or more"));
            0
        })
    };
    let licence = Licence {
        max_clusters: count(&flags::MAX_CLUSTERS),
        max_nodes: count(&flags::MAX_NODES),
        max_cpus: count(&flags::MAX_CPUS),
    };
    let cluster_types = values.get(&flags::CLUSTER_TYPES);
    if cluster_types.is_empty() {
        problems.push(flags::CLUSTER_TYPES.problem("must contain at least one type"));
    }
    let supported_versions = values.get(&flags::SUPPORTED_VERSIONS);
    Environment { cluster_types, supported_versions, licence, ..Environment::default() }
}

#[cfg(test)]
mod tests {
    use super::super::flags::FLAGS;
    use super::*;

    fn judged(given: &[(&str, &str)]) -> Result<WebhookOptions, Vec<String>> {
        let specs = FLAGS.iter().chain(crate::flags::FLAGS);
        let values = Values::from_given(specs, given.iter().copied()).unwrap();
        judge(&values).map_err(|problems| problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_defaults_are_valid_and_dial_nothing() {
        let options = judged(&[]).unwrap();
        assert_eq!((options.port, options.failure_policy), (9443, FailurePolicy::Ignore));
        assert!(options.address.is_loopback() && options.network.ssh && !options.network.import);
        assert!(!options.network.insecure_without_ca);
        let authenticated = judged(&[("webhook-client-ca-file", "ca.crt")]).unwrap();
        assert!(authenticated.address.is_unspecified() && authenticated.port == 9443);
        let given = judged(&[("webhook-bind-address", ":9444")]).unwrap();
        assert!(given.address.is_unspecified() && given.port == 9444);
        let insecure = judged(&[("tke-insecure-when-no-ca", "true")]).unwrap();
        assert!(insecure.network.insecure_without_ca);
        assert_eq!(options.environment.cluster_types, Environment::default().cluster_types);
        assert_eq!(options.environment.licence, Licence::default());
        let local = judged(&[("webhook-bind-address", "[::1]:0")]).unwrap();
        assert_eq!((local.address.to_string(), local.port), ("::1".to_owned(), 0));
    }

    #[test]
    fn every_broken_value_is_reported_by_its_flag() {
        for (name, value) in [
            ("webhook-bind-address", "9443"),
            ("webhook-bind-address", "here:9443"),
            ("webhook-bind-address", ":99999"),
            ("webhook-failure-policy", "ignore"),
            ("ssh-check", "auth"),
            ("dial-deny-cidrs", "10.0.0.0"),
            ("dial-allow-cidrs", "x"),
            ("license-max-nodes", "-1"),
            ("tke-cluster-types", ""),
        ] {
            let problems = judged(&[(name, value)]).unwrap_err();
            assert!(matches!(&problems[..], [one] if one.contains(name)), "{name}: {problems:?}");
        }
    }
}
