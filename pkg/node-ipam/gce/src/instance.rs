//! [`ProviderId`]: which VM a Node is, as `spec.providerID` says. [`Instance`]: a VM as Google shows it,
//! and the pod ranges that it has.

use std::fmt;
use std::net::Ipv6Addr;

use cidr::IpNet;
use serde::{Deserialize, Serialize};

use crate::config::is_project;

/// The fields of a VM that are requested; the others would be most of the answer.
pub(crate) const FIELDS: &str = "name,networkInterfaces(name,ipv6Address,ipv6AccessType,\
    ipv6AccessConfigs(externalIpv6),aliasIpRanges,fingerprint)";

/// A VM has a /96 of its own; pods get the first /112 of it.
const IPV6_POD_PREFIX: u8 = 112;

/// A VM, as far as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Instance {
    /// Name of the VM, unique in its zone.
    pub name: String,
    pub(crate) network_interfaces: Vec<NetworkInterface>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct NetworkInterface {
    pub(crate) name: String,
    pub(crate) alias_ip_ranges: Vec<AliasRange>,
    ipv6_address: String,
    ipv6_access_type: String,
    ipv6_access_configs: Vec<Ipv6Access>,
    /// Changes with every change of the interface.
    pub(crate) fingerprint: String,
}

/// Addresses of the subnetwork that are routed to a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct AliasRange {
    pub(crate) ip_cidr_range: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) subnetwork_range_name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ipv6Access {
    external_ipv6: String,
}

/// Ranges of a VM that pods can use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRanges {
    /// Alias ranges, in Google's order.
    pub aliases: Vec<IpNet>,
    /// The /112 of its IPv6 address.
    pub ipv6: Option<IpNet>,
}

impl PodRanges {
    /// The one that counts where there can be one only.
    pub fn first(&self) -> Option<IpNet> {
        self.aliases.first().copied().or(self.ipv6)
    }
}

/// Google returned a range that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read range {text:?} of the VM's network interface")]
pub struct BadRange {
    text: String,
}

impl Instance {
    /// The interface that pods are reached by: `nic0`, else the first.
    pub(crate) fn primary(&self) -> Option<&NetworkInterface> {
        let named = self.network_interfaces.iter().find(|interface| interface.name == "nic0");
        named.or_else(|| self.network_interfaces.first())
    }

    /// Ranges for pods; empty without an interface.
    ///
    /// # Errors
    /// One of its ranges cannot be read.
    pub fn pod_ranges(&self) -> Result<PodRanges, BadRange> {
        let Some(interface) = self.primary() else { return Ok(PodRanges::default()) };
        Ok(PodRanges { aliases: interface.aliases()?, ipv6: interface.ipv6()? })
    }
}

impl NetworkInterface {
    /// An internal address comes first; of external ones the last counts.
    fn ipv6(&self) -> Result<Option<IpNet>, BadRange> {
        let external = || {
            let is_external = self.ipv6_access_type == "EXTERNAL";
            self.ipv6_access_configs.last().filter(|_| is_external).map(|it| &it.external_ipv6)
        };
        let address = Some(&self.ipv6_address).filter(|text| !text.is_empty()).or_else(external);
        let Some(text) = address.filter(|text| !text.is_empty()) else { return Ok(None) };
        let bad = || BadRange { text: quoted(text) };
        // It may be written as the /96 that it begins.
        let address: Ipv6Addr =
            text.split('/').next().unwrap_or_default().parse().map_err(|_| bad())?;
        let range = IpNet::new(address.into(), IPV6_POD_PREFIX).map_err(|_| bad())?;
        Ok(Some(range.trunc()))
    }

    /// Alias ranges, in Google's order.
    pub(crate) fn aliases(&self) -> Result<Vec<IpNet>, BadRange> {
        self.alias_ip_ranges.iter().map(|alias| range(&alias.ip_cidr_range)).collect()
    }
}

fn range(text: &str) -> Result<IpNet, BadRange> {
    cidr::parse(text).map_err(|_| BadRange { text: quoted(text) })
}

fn quoted(text: &str) -> String {
    text.chars().take(64).collect()
}

/// A VM of GCE.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProviderId {
    /// The project.
    pub project: String,
    /// The zone, such as `europe-west1-b`.
    pub zone: String,
    /// The VM.
    pub instance: String,
}

/// A text does not name a VM.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read providerID {text:?}: it must be gce://PROJECT/ZONE/INSTANCE")]
pub struct ProviderIdError {
    text: String,
}

impl ProviderId {
    /// Reads `gce://project/zone/instance`, where no part is empty and each may stand in a URL. An
    /// instance is named by what comes before the first dot, as hosts are.
    ///
    /// # Errors
    /// It is anything else.
    pub fn parse(text: &str) -> Result<Self, ProviderIdError> {
        let bad = || ProviderIdError { text: text.chars().take(200).collect() };
        let rest = text.strip_prefix("gce://").ok_or_else(bad)?;
        let parts: Vec<_> = rest.split('/').collect();
        let [project, zone, instance] = parts[..] else { return Err(bad()) };
        let instance = instance.split('.').next().unwrap_or_default();
        // It comes from whoever may write Nodes and becomes the path of a URL.
        if !is_project(project) || project.starts_with('.') || !is_name(zone) || !is_name(instance)
        {
            return Err(bad());
        }
        let [project, zone, instance] = [project, zone, instance].map(str::to_owned);
        Ok(Self { project, zone, instance })
    }
}

/// Whether a text can be the name of a zone or VM (RFC 1035, and digits in front are let through).
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.project, self.zone, self.instance)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ranges(interfaces: &Value) -> Result<(Vec<String>, String), BadRange> {
        let vm: Instance =
            serde_json::from_value(json!({"name": "a", "networkInterfaces": interfaces})).unwrap();
        let ranges = vm.pod_ranges()?;
        let aliases = ranges.aliases.iter().map(ToString::to_string).collect();
        Ok((aliases, ranges.ipv6.map(|net| net.to_string()).unwrap_or_default()))
    }

    #[test]
    fn the_interface_nic0_counts_and_otherwise_the_first() {
        let alias = |text: &str| json!([{"ipCidrRange": text}]);
        let two = json!([
            {"name": "nic1", "aliasIpRanges": alias("10.1.0.0/24")},
            {"name": "nic0", "aliasIpRanges": alias("10.0.0.0/24")},
        ]);
        assert_eq!(ranges(&two).unwrap().0, ["10.0.0.0/24"]);
        let other = json!([{"name": "x", "aliasIpRanges": alias("10.1.0.0/24")}, {"name": "y"}]);
        assert_eq!(ranges(&other).unwrap().0, ["10.1.0.0/24"]);
        assert_eq!(ranges(&json!([])).unwrap(), (vec![], String::new()));
    }

    #[test]
    fn the_pods_get_the_first_112_of_the_ipv6_address() {
        let external = json!([{"externalIpv6": "2600::1"}, {"externalIpv6": "2600:1900::f:0:0"}]);
        for (interface, expected) in [
            (json!({"ipv6Address": "fd20:a:b:c:0:0:1:2"}), "fd20:a:b:c::1:0/112"),
            (json!({"ipv6Address": "fd20::1:0/96"}), "fd20::1:0/112"),
            (
                json!({"ipv6AccessType": "EXTERNAL", "ipv6AccessConfigs": external}),
                "2600:1900::f:0:0/112",
            ),
            (json!({"ipv6AccessType": "INTERNAL", "ipv6AccessConfigs": external}), ""),
            (json!({"ipv6AccessType": "EXTERNAL"}), ""),
            (json!({}), ""),
        ] {
            assert_eq!(ranges(&json!([interface])).unwrap().1, expected, "{interface}");
        }
    }

    #[test]
    fn a_range_that_is_none_spoils_the_answer() {
        for interface in [
            json!({"aliasIpRanges": [{"ipCidrRange": "10.0.0.0/24"}, {"ipCidrRange": "/24"}]}),
            json!({"ipv6Address": "nonsense"}),
        ] {
            assert!(ranges(&json!([interface])).is_err(), "{interface}");
        }
    }

    #[test]
    fn an_alias_is_written_as_it_was_read() {
        for alias in [
            json!({"ipCidrRange": "10.0.0.0/24"}),
            json!({"ipCidrRange": "10.0.0.0/24", "subnetworkRangeName": "pods"}),
        ] {
            let read: AliasRange = serde_json::from_value(alias.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), alias);
        }
    }
}

#[cfg(test)]
mod provider_id_tests {
    use super::*;

    #[test]
    fn a_provider_id_has_three_parts_and_the_instance_ends_at_the_first_dot() {
        let vm =
            ProviderId::parse("gce://example.com:p-1/europe-west1-b/vm-7.c.p.internal").unwrap();
        assert_eq!(vm.to_string(), "example.com:p-1/europe-west1-b/vm-7");
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "gce://",
            "gce:///z/i",
            "gce://p//i",
            "gce://p/z/",
            "gce://p/z/.i",
            "gce://p/z",
            "gce://p/z/i/more",
            "aws:///eu/i-1",
            "gce://p/z/i?x",
            "gce://../z/i",
            "gce://p/../i",
            "gce://p/z/i%2f",
            "gce://p/z/i j",
        ] {
            assert!(ProviderId::parse(text).is_err(), "{text:?}");
        }
    }
}
