//! [`ProviderId`]: which VM a Node is, as `spec.providerID` says.

use std::fmt;

use crate::config::is_project;

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
