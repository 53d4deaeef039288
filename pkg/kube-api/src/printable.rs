//! [`printable`]: keys and names of objects as they stand in a message.

/// `text` with a question mark for each control character: keys and names of an object may have
/// line ends in them, and what is said of it is one line (rule:one-error-is-one-line).
pub fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}
