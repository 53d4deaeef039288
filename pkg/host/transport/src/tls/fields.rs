//! [`Fields`]: what a refusal tells an operator to change.

/// The fields of whoever configured the trust, as a refusal speaks of them: those of a kubeconfig
/// by default. A member cluster is configured in an object, whose user has never seen a kubeconfig.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Where CA certificates stand.
    pub ca: &'static str,
    /// What to do about a certificate with another name, after "use one of these names as the
    /// server"; empty when nothing else helps.
    pub other_name: &'static str,
}

impl Default for Fields {
    fn default() -> Self {
        Self { ca: "certificate-authority", other_name: ", or set tls-server-name to one" }
    }
}
