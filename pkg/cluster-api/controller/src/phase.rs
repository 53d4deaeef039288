//! [`Phase`]: a Cluster in one word, for people. Nothing is decided by it. Pure.

use crate::api::reference::Dialect;

/// How far a Cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Nothing makes its infrastructure yet.
    Pending,
    /// Its infrastructure is being made.
    Provisioning,
    /// Its infrastructure is there.
    Provisioned,
    /// It is being deleted.
    Deleting,
    /// Its infrastructure cannot be made without help.
    Failed,
}

/// What the phase of a Cluster follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Facts {
    /// Something is to make its infrastructure.
    pub has_infrastructure_ref: bool,
    /// Its infrastructure was ready once.
    pub infrastructure_ready: bool,
    /// Its infrastructure says that it cannot go on.
    pub failed: bool,
    /// Its deletion was asked for.
    pub deleting: bool,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Provisioning, Self::Provisioned, Self::Deleting, Self::Failed];

    /// Of these facts. v1beta2 has no word for failed.
    pub fn of(facts: Facts, dialect: Dialect) -> Self {
        match facts {
            Facts { deleting: true, .. } => Self::Deleting,
            Facts { failed: true, .. } if dialect == Dialect::V1Alpha2 => Self::Failed,
            Facts { infrastructure_ready: true, .. } => Self::Provisioned,
            Facts { has_infrastructure_ref: true, .. } => Self::Provisioning,
            Facts { .. } => Self::Pending,
        }
    }

    /// As in the status of a Cluster of this dialect.
    pub fn word(self, dialect: Dialect) -> &'static str {
        let [older, newer] = match self {
            Self::Pending => ["pending", "Pending"],
            Self::Provisioning => ["provisioning", "Provisioning"],
            Self::Provisioned => ["provisioned", "Provisioned"],
            Self::Deleting => ["deleting", "Deleting"],
            Self::Failed => ["failed", "Failed"],
        };
        match dialect {
            Dialect::V1Alpha2 => older,
            Dialect::V1Beta2 => newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_is_the_last_that_the_facts_allow() {
        let facts = |digits: [bool; 4]| {
            let [has_infrastructure_ref, infrastructure_ready, failed, deleting] = digits;
            Facts { has_infrastructure_ref, infrastructure_ready, failed, deleting }
        };
        // (facts, word of v1alpha2, word of v1beta2)
        for (digits, older, newer) in [
            ([false, false, false, false], "pending", "Pending"),
            ([true, false, false, false], "provisioning", "Provisioning"),
            ([true, true, false, false], "provisioned", "Provisioned"),
            ([false, true, false, false], "provisioned", "Provisioned"),
            ([true, false, true, false], "failed", "Provisioning"),
            ([true, true, true, false], "failed", "Provisioned"),
            ([true, true, true, true], "deleting", "Deleting"),
            ([false, false, false, true], "deleting", "Deleting"),
        ] {
            let word = |dialect: Dialect| Phase::of(facts(digits), dialect).word(dialect);
            assert_eq!(word(Dialect::V1Alpha2), older, "{digits:?}");
            assert_eq!(word(Dialect::V1Beta2), newer, "{digits:?}");
        }
    }
}
