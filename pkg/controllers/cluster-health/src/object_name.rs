//! Names of objects that stand in other objects, and become part of a path of the management API.

/// Whether it can be the name of an object or a namespace. One that is none, as `a?b` or
/// `../other/x`, would ask for something else than an object of that name.
pub(crate) fn is_name(text: &str) -> bool {
    let legal = |c: u8| c.is_ascii_alphanumeric() || b"-.".contains(&c);
    !text.is_empty() && !text.starts_with('.') && text.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_elsewhere_in_a_path_is_no_name() {
        for name in ["a", "cc-1", "a.b", "9", "UPPER"] {
            assert!(is_name(name), "{name}");
        }
        for other in ["", ".", "..", "../x", "a/b", "a?b", "a b", "a%2fb", "a#b", "é"] {
            assert!(!is_name(other), "{other}");
        }
    }
}
