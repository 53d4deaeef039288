//! The names of Events. `correlate.rs` gives one to each series.

/// Longest name the server accepts (DNS subdomain).
const NAME_LIMIT: usize = 253;

/// `<object>.<hex>`, as client-go names Events; the object's name is cut where the whole would be too
/// long.
pub(crate) fn event_name(object: &str, series: u64) -> String {
    let suffix = format!(".{series:x}");
    let mut end = object.len().min(NAME_LIMIT - suffix.len());
    while !object.is_char_boundary(end) {
        end -= 1;
    }
    // A label may not end in a dash, nor may there be an empty one.
    let object = object[..end].trim_end_matches(['.', '-']);
    format!("{object}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_object_and_the_series_in_hex() {
        assert_eq!(event_name("node-1", 0x17f0_abcd), "node-1.17f0abcd");
    }

    #[test]
    fn a_name_too_long_is_cut_without_leaving_an_empty_label() {
        let series = 0x17f0_1234_5678_9abc; // 16 digits
        let name = event_name(&"a".repeat(253), series);
        assert_eq!(name.len(), 253);
        assert!(name.ends_with(".17f0123456789abc"));
        let cut_at_a_dash = format!("{}-.-{}", "a".repeat(233), "b".repeat(17));
        assert_eq!(event_name(&cut_at_a_dash, series), format!("{}.{series:x}", "a".repeat(233)));
    }
}
