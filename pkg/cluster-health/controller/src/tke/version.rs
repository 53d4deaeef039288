//! The version of a member cluster, from what its API server says of itself. Pure.

/// `major.minor.patch` of a version as vendors write it; `None` when it cannot be parsed
/// (`rule:versions-are-read-tolerantly`).
pub(crate) fn parse(text: &str) -> Option<String> {
    let text = text.trim();
    let mut parts = text.strip_prefix('v').unwrap_or(text).splitn(3, '.');
    let (major, minor, patch) = (parts.next()?, parts.next(), parts.next());
    let patch = match patch {
        // What follows the number names a vendor's build.
        Some(patch) => {
            let (number, suffix) = patch.split_at(patch.find(['-', '+']).unwrap_or(patch.len()));
            suffix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-+.".contains(&byte))
                .then_some(number)?
        }
        None => "0",
    };
    let [major, minor, patch] = [number(major)?, number(minor.unwrap_or("0"))?, number(patch)?];
    Some(format!("{major}.{minor}.{patch}"))
}

fn number(text: &str) -> Option<u64> {
    // `u64::from_str` takes a plus sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule:versions-are-read-tolerantly
    #[test]
    fn versions_of_all_vendors_come_to_three_numbers() {
        let rows = [
            ("v1.36.3", "1.36.3"),
            ("1.36.3", "1.36.3"),
            (" v1.14.3-tke.3\n", "1.14.3"),
            ("v1.18.8-aliyun.1", "1.18.8"),
            ("v1.20.4+k3s1", "1.20.4"),
            ("v1.21.0-beta.1.23+abc-dirty", "1.21.0"),
            ("v1.19", "1.19.0"),
            ("v1", "1.0.0"),
            ("v01.02.003", "1.2.3"),
        ];
        for (text, version) in rows {
            assert_eq!(parse(text).as_deref(), Some(version), "{text}");
        }
    }

    /// rule:versions-are-read-tolerantly
    #[test]
    fn what_is_no_version_is_told_apart() {
        for text in [
            "",
            "v",
            "vv1.2.3",
            "1.2-rc.1",
            "1.2+k3s",
            "1..3",
            "1.2.",
            "1.2.x",
            "1.+2.3",
            "a.b.c",
            "1.2.3 or so",
            "1.2.99999999999999999999",
            "-1.2.3",
            "1.2.3-\u{e4}",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
