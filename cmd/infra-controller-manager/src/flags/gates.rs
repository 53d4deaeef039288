//! The feature gates this program knows and what they resolve to.

use flags::Values;
use flags::syntax::composite::DEFAULT_COMPONENT;

use super::table::generic::{FEATURE_GATES, LEADER_ELECT_RELEASE_ON_EXIT};

pub(super) const ALL_ALPHA: &str = "AllAlpha";
pub(super) const ALL_BETA: &str = "AllBeta";
pub(super) const COORDINATED_ELECTION: &str = "CoordinatedLeaderElection";
pub(super) const FLAGZ: &str = "ComponentFlagz";
pub(super) const STATUSZ: &str = "ComponentStatusz";
pub(super) const LOGGING_ALPHA: &str = "LoggingAlphaOptions";
pub(super) const LOGGING_BETA: &str = "LoggingBetaOptions";
const RELEASE_ON_EXIT: &str = "ControllerManagerReleaseLeaderElectionLockOnExit";

/// A gate whose value changes what this program does.
struct Known {
    name: &'static str,
    /// The umbrella gate that sets it when it is not set itself.
    umbrella: &'static str,
    default: bool,
}

const KNOWN: [Known; 5] = [
    // Off upstream; ours is on, since a lease left held costs the successor 15 s.
    Known { name: RELEASE_ON_EXIT, umbrella: ALL_ALPHA, default: true },
    Known { name: FLAGZ, umbrella: ALL_BETA, default: true },
    Known { name: STATUSZ, umbrella: ALL_BETA, default: true },
    Known { name: LOGGING_ALPHA, umbrella: ALL_ALPHA, default: false },
    Known { name: LOGGING_BETA, umbrella: ALL_BETA, default: true },
];

/// Whether a gate of [`KNOWN`] is on: its own setting, else its umbrella's, else the default.
pub(super) fn enabled(values: &Values, name: &str) -> bool {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else { return false };
    setting(values, name).or_else(|| setting(values, known.umbrella)).unwrap_or(known.default)
}

/// The user's own setting of a gate.
pub(super) fn setting(values: &Values, name: &str) -> Option<bool> {
    values
        .get(&FEATURE_GATES)
        .iter()
        .find(|gate| gate.component == DEFAULT_COMPONENT && gate.name == name)
        .map(|gate| gate.enabled)
}

/// The gates set by the user that change nothing here, as written.
pub(super) fn without_effect(values: &Values) -> Vec<String> {
    let has_effect = |name: &str| {
        [ALL_ALPHA, ALL_BETA, COORDINATED_ELECTION].contains(&name)
            || KNOWN.iter().any(|known| known.name == name)
    };
    values
        .get(&FEATURE_GATES)
        .iter()
        .filter(|gate| gate.component != DEFAULT_COMPONENT || !has_effect(&gate.name))
        .map(ToString::to_string)
        .collect()
}

/// Name, stage and value of each gate, in the words of Kubernetes' components.
pub fn features(values: &Values) -> Vec<(&'static str, &'static str, bool)> {
    let shown = |known: &Known| {
        let stage = if known.umbrella == ALL_ALPHA { "ALPHA" } else { "BETA" };
        (known.name, stage, enabled(values, known.name))
    };
    KNOWN.iter().map(shown).collect()
}

/// Names and defaults for help.
pub(super) fn described() -> String {
    let gates: Vec<String> =
        KNOWN.iter().map(|known| format!("{} (default {})", known.name, known.default)).collect();
    gates.join(", ")
}

/// Whether the log options that are alpha may be used.
pub fn has_alpha_logging(values: &Values) -> bool {
    enabled(values, LOGGING_ALPHA)
}

/// Whether `/flagz` is served.
pub fn has_flagz(values: &Values) -> bool {
    enabled(values, FLAGZ)
}

/// Whether `/statusz` is served.
pub fn has_statusz(values: &Values) -> bool {
    enabled(values, STATUSZ)
}

/// Whether a clean exit gives the lease up; flag and gate must agree.
pub fn release_on_exit(values: &Values) -> bool {
    values.get(&LEADER_ELECT_RELEASE_ON_EXIT) && enabled(values, RELEASE_ON_EXIT)
}
