//! [`chain`]: the identities that an AWSCluster gets its credentials from. Each must permit its
//! namespace (`rule:an-awscluster-stays-in-its-account`). Pure.

mod allowed_namespaces;

use std::sync::Arc;

use objects::Object;

use crate::api::aws_identity::{
    AwsIdentity, AwsIdentitySpec, CONTROLLER_IDENTITY_NAME, IdentityKind, IdentityReference,
};

pub(crate) use allowed_namespaces::Labels;

/// Maximum of identities in a chain.
const LONGEST: usize = 5;
/// The longest session that AWS allows when one role assumes another.
const CHAINED_SECONDS: i32 = 3600;
/// The duration of a session when the identity names none.
const DEFAULT_SECONDS: i32 = 900;
/// Maximum length of the name of a session at AWS.
const SESSION_NAME: usize = 64;

/// One identity of a chain.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) kind: IdentityKind,
    pub(crate) name: String,
    /// `None` for the program's own credentials without an object that limits their use.
    pub(crate) object: Option<Arc<Object<AwsIdentity>>>,
}

/// Why an AWSCluster gets no credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChainError {
    #[error("Namespace is not permitted to use {kind}: {name}")]
    NotPermitted { kind: &'static str, name: String, is_source: bool },
    #[error("cannot use {0}: it is not served or does not exist; create it")]
    Missing(String),
    #[error("cannot use {identity}: {problem}")]
    Invalid { identity: String, problem: String },
    #[error("cannot use {identity}: sourceIdentityRef cycle at {name}")]
    Cycle { identity: String, name: String },
    /// Caches do not have it yet.
    #[error("cannot read {0}")]
    Unknown(String),
}

impl ChainError {
    /// Whether a namespace is not permitted; otherwise the credentials cannot be had.
    pub(crate) fn is_about_usage(&self) -> bool {
        matches!(self, Self::NotPermitted { .. })
    }

    /// Upstream's reason.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NotPermitted { is_source: false, .. } => "PrincipalUsageUnauthorized",
            Self::NotPermitted { is_source: true, .. } => "SourcePrincipalUsageUnauthorized",
            _ => "PrincipalCredentialRetrievalFailed",
        }
    }

    fn invalid(kind: &str, name: &str, problem: impl Into<String>) -> Self {
        Self::Invalid { identity: format!("{kind} {name}"), problem: problem.into() }
    }
}

/// What the API server has, as far as it is known.
pub(crate) trait Known {
    /// An identity; `None` if it does not exist.
    fn identity(
        &self,
        kind: IdentityKind,
        name: &str,
    ) -> Result<Option<Arc<Object<AwsIdentity>>>, String>;

    /// The labels of the namespace; `None` if it does not exist.
    fn labels(&self) -> Result<Option<Labels>, String>;
}

/// The identities behind a reference, the innermost source first. Without a reference it is the
/// controller's.
pub(crate) fn chain(
    reference: Option<&IdentityReference>,
    namespace: &str,
    known: &impl Known,
) -> Result<Vec<Link>, ChainError> {
    let own = || IdentityReference {
        kind: IdentityKind::Controller.as_str().to_owned(),
        name: CONTROLLER_IDENTITY_NAME.to_owned(),
    };
    let (mut chain, mut next) = (Vec::new(), Some(reference.cloned().unwrap_or_else(own)));
    while let Some(reference) = next {
        let link = link(&reference, known)?;
        if chain.iter().any(|it: &Link| (it.kind, &it.name) == (link.kind, &link.name)) {
            let outermost: &Link = &chain[0];
            let identity = format!("{} {}", outermost.kind.as_str(), outermost.name);
            return Err(ChainError::Cycle { identity, name: link.name });
        }
        if chain.len() == LONGEST {
            let problem = format!("more than {LONGEST} identities follow sourceIdentityRef");
            let outermost = &chain[0];
            return Err(ChainError::invalid(outermost.kind.as_str(), &outermost.name, problem));
        }
        permitted(&link, namespace, !chain.is_empty(), known)?;
        next = source(&link)?;
        chain.push(link);
    }
    chain.reverse();
    check_sessions(&chain)?;
    Ok(chain)
}

fn link(reference: &IdentityReference, known: &impl Known) -> Result<Link, ChainError> {
    let IdentityReference { kind, name } = reference;
    let Some(known_kind) = IdentityKind::of(kind) else {
        let words = IdentityKind::ALL.map(IdentityKind::as_str).join(", ");
        return Err(ChainError::invalid(kind, name, format!("its kind is not one of {words}")));
    };
    let is_own = known_kind == IdentityKind::Controller;
    if is_own && name != CONTROLLER_IDENTITY_NAME {
        let problem = format!("its only name is {CONTROLLER_IDENTITY_NAME}");
        return Err(ChainError::invalid(kind, name, problem));
    }
    let object = known.identity(known_kind, name).map_err(ChainError::Unknown)?;
    if object.is_none() && !is_own {
        return Err(ChainError::Missing(format!("{kind} {name}")));
    }
    Ok(Link { kind: known_kind, name: name.clone(), object })
}

fn permitted(
    link: &Link,
    namespace: &str,
    is_source: bool,
    known: &impl Known,
) -> Result<(), ChainError> {
    let Some(object) = &link.object else { return Ok(()) };
    let (kind, allowed) = (link.kind.as_str(), object.body.spec.allowed_namespaces.as_ref());
    let answer = allowed_namespaces::permit(allowed, namespace, || known.labels());
    match answer.map_err(ChainError::Unknown)? {
        Ok(true) => Ok(()),
        Ok(false) => Err(ChainError::NotPermitted { kind, name: link.name.clone(), is_source }),
        Err(problem) => Err(ChainError::invalid(kind, &link.name, problem)),
    }
}

/// The identity that assumes a role.
fn source(link: &Link) -> Result<Option<IdentityReference>, ChainError> {
    let Some(spec) = link.spec().filter(|_| link.kind == IdentityKind::Role) else {
        return Ok(None);
    };
    let source = spec.source_identity_ref.clone();
    let lacking = || {
        let problem = "spec.sourceIdentityRef is not set";
        ChainError::invalid(link.kind.as_str(), &link.name, problem)
    };
    source.ok_or_else(lacking).map(Some)
}

fn check_sessions(chain: &[Link]) -> Result<(), ChainError> {
    let roles = chain.windows(2).filter(|pair| pair[0].kind == IdentityKind::Role);
    for pair in roles {
        if pair[1].seconds() > CHAINED_SECONDS {
            let problem = format!(
                "a role that another role assumes has sessions of at most {CHAINED_SECONDS} \
                 seconds; reduce spec.durationSeconds"
            );
            return Err(ChainError::invalid(pair[1].kind.as_str(), &pair[1].name, problem));
        }
    }
    Ok(())
}

impl Link {
    fn spec(&self) -> Option<&AwsIdentitySpec> {
        self.object.as_ref().map(|object| &object.body.spec)
    }

    /// The duration of a session of its role.
    pub(crate) fn seconds(&self) -> i32 {
        self.spec().and_then(|spec| spec.duration_seconds).unwrap_or(DEFAULT_SECONDS)
    }

    /// The name of a session of its role. All AWSClusters that use the identity share a session, so
    /// the default has no name of one of them.
    pub(crate) fn session_name(&self) -> String {
        let named = self.spec().map(|spec| spec.session_name.clone()).unwrap_or_default();
        let name = if named.is_empty() { format!("icm-{}", self.name) } else { named };
        name.chars().take(SESSION_NAME).collect()
    }
}

#[cfg(test)]
mod tests;
