//! The patterns of `--vmodule`.

/// Whether `name` matches `pattern`, where `*` is any run of characters and `?` any one.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut seen) = (0, 0);
    // Where to go back to: behind the last star, and how much of the name that star has taken.
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, seen));
                at += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((behind, taken)) => {
                    star = Some((behind, taken + 1));
                    at = behind;
                    seen = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&rest| rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks_match_as_in_file_names() {
        for (pattern, name, expected) in [
            ("server", "server", true),
            ("server", "servers", false),
            ("serv*", "server", true),
            ("*er", "server", true),
            ("s*v*r", "server", true),
            ("se?ver", "server", true),
            ("?", "", false),
            ("*", "", true),
            ("*x*", "server", false),
            ("a*b", "aab", true),
            ("", "server", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }
}
