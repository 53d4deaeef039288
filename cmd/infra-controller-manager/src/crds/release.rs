//! Which release a CRD in the cluster is of.

use objects::{Dynamic, Object};

use crate::build;

/// Annotation of every manifest: the release that it is of.
pub(super) const RELEASE: &str = "infra-controller-manager/release";

/// While a release is rolled out, or rolled back, an older leader must not take fields away that a
/// newer one writes (rule:newer-crds-stay).
pub(super) fn newer_release(crd: &Object<Dynamic>) -> Option<&str> {
    let release = crd.metadata.annotations.get(RELEASE)?;
    is_newer(release, build::INFO.version).then_some(release)
}

/// By major, minor and patch. What cannot be read is no release.
fn is_newer(release: &str, than: &str) -> bool {
    numbers(release).is_some_and(|release| Some(release) > numbers(than))
}

fn numbers(release: &str) -> Option<[u64; 3]> {
    let core = release.trim_start_matches('v').split(['-', '+']).next()?;
    let parts: Vec<u64> = core.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule:newer-crds-stay
    #[test]
    fn releases_are_compared_by_number() {
        // (release of the CRD, of the program, whether the CRD is newer)
        let rows = [
            ("0.2.0", "0.1.0", true),
            ("0.10.0", "0.9.9", true),
            ("v1.0.0", "0.99.0", true),
            ("0.1.1-rc.1", "0.1.0", true),
            ("0.1.0", "0.1.0", false),
            ("0.1.0+build", "0.1.0", false),
            ("0.0.9", "0.1.0", false),
            ("tomorrow", "0.1.0", false),
            ("1.0", "0.1.0", false),
            ("", "0.1.0", false),
        ];
        for (crd, program, newer) in rows {
            assert_eq!(is_newer(crd, program), newer, "{crd} {program}");
        }
    }
}
