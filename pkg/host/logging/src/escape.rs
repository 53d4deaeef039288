//! Values in quotes, in a form that both formats share.

use std::fmt::{self, Display, Write};

/// Appends `value` in quotes. Quotes, backslashes and control characters are escaped as in JSON,
/// which klog's text readers understand too: no value can break a line, end its own quotes, or
/// send commands to a terminal.
pub(crate) fn quoted(out: &mut String, value: impl Display) {
    out.push('"');
    // Fails only when the value's own Display does: what it wrote until then stays.
    write!(Escaping(out), "{value}").ok();
    out.push('"');
}

struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut plain = 0;
        for (at, char) in text.char_indices() {
            if !needs_escape(char) {
                continue;
            }
            self.0.push_str(&text[plain..at]);
            plain = at + char.len_utf8();
            match char {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '\r' => self.0.push_str("\\r"),
                '\t' => self.0.push_str("\\t"),
                other => write!(self.0, "\\u{:04x}", u32::from(other))?,
            }
        }
        self.0.push_str(&text[plain..]);
        Ok(())
    }
}

/// The line and paragraph separators end lines for some readers.
fn needs_escape(char: char) -> bool {
    matches!(char, '"' | '\\' | '\u{2028}' | '\u{2029}') || char.is_control()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_value_cannot_leave_its_quotes_or_its_line() {
        let mut out = String::new();
        quoted(&mut out, "a\"b\\c\nd\re\tf\u{1b}[31m\u{85}\u{2028}é");
        assert_eq!(out, r#""a\"b\\c\nd\re\tf\u001b[31m\u0085\u2028é""#);
        assert!(serde_json::from_str::<String>(&out).is_ok(), "the same text is JSON");
    }
}
