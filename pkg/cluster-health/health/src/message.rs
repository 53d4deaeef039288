//! Words for people: [`one_line`], text that may stand in a message; [`Causes`], whether a new cause of a failure gets
//! an event.

use std::time::{Duration, Instant};

/// Characters in the longest message.
pub(crate) const MESSAGE_MAX: usize = 1024;

/// `text` in one line of at most [`MESSAGE_MAX`] characters, without what stands before the `@` of
/// a URL: a user name and password must not appear.
pub fn one_line(text: &str) -> String {
    short_line(text, MESSAGE_MAX)
}

/// [`one_line`] of at most `limit` characters; nothing for a limit of 0.
pub(crate) fn short_line(text: &str, limit: usize) -> String {
    let mut line = String::with_capacity(text.len().min(4 * MESSAGE_MAX));
    let printable = |c: char| !c.is_whitespace() && !c.is_control();
    for word in text.split(|c| !printable(c)).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        push_without_login(&mut line, word);
    }
    if let Some((cut, _)) = line.char_indices().nth(limit) {
        let last = line[..cut].char_indices().next_back().map_or(0, |(start, _)| start);
        line.truncate(last);
        if limit > 0 {
            line.push('…');
        }
    }
    line
}

/// Everything between `://` and the last `@` goes, also where a password holds a slash.
fn push_without_login(line: &mut String, word: &str) {
    match word.split_once("://") {
        Some((scheme, rest)) => {
            line.push_str(scheme);
            line.push_str("://");
            line.push_str(rest.rsplit_once('@').map_or(rest, |(_, host)| host));
        }
        None => line.push_str(word),
    }
}

/// Between two causes that are told while the trouble goes on.
const AT_MOST_EVERY: Duration = Duration::from_secs(60);

/// The cause that was told last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Causes {
    told: Option<u64>,
    /// When one took the place of another.
    changed_at: Option<Instant>,
}

impl Causes {
    /// A new state was published with this cause, and its event names the cause.
    pub(crate) fn begin(&mut self, cause: Option<u64>) {
        self.told = cause;
    }

    /// The published state was found again: whether it has another cause that gets an event now.
    pub(crate) fn note(&mut self, cause: Option<u64>, now: Instant) -> bool {
        if cause == self.told {
            return false;
        }
        // What the object of a cluster that was taken over tells is not known.
        if self.told.is_none() || cause.is_none() {
            self.told = cause;
            return false;
        }
        let recent = |at| now.saturating_duration_since(at) < AT_MOST_EVERY;
        if self.changed_at.is_some_and(recent) {
            return false;
        }
        *self = Self { told: cause, changed_at: Some(now) };
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_is_one_line_without_logins() {
        let rows = [
            ("cannot\n\tconnect  ", "cannot connect"),
            ("a\u{0}b\u{1b}[31m", "a b [31m"),
            ("proxy http://user:pass@host:3128: refused", "proxy http://host:3128: refused"),
            ("via socks5://user:pa/ss@w@host refused", "via socks5://host refused"),
            ("mail me@example.org", "mail me@example.org"),
            ("https://host/path", "https://host/path"),
            ("", ""),
        ];
        for (text, line) in rows {
            assert_eq!(one_line(text), line);
        }
    }

    #[test]
    fn a_long_message_is_cut_at_a_character_and_says_so() {
        let line = one_line(&"é".repeat(MESSAGE_MAX + 40));
        assert_eq!(line.chars().count(), MESSAGE_MAX);
        assert!(line.ends_with("é…"));
        let fits = "é".repeat(MESSAGE_MAX);
        assert_eq!(one_line(&fits), fits);
    }

    proptest! {
        #[test]
        fn no_text_makes_more_than_one_short_line(text in any::<String>()) {
            let line = one_line(&text);
            prop_assert!(line.chars().count() <= MESSAGE_MAX);
            prop_assert!(!line.chars().any(char::is_control));
        }
    }
}

#[cfg(test)]
mod causes_tests {
    use super::*;

    #[test]
    fn causes_that_alternate_are_told_once_a_minute_at_most() {
        let (start, mut causes) = (Instant::now(), Causes::default());
        causes.begin(Some(1));
        let mut told =
            |second: u64, cause| causes.note(Some(cause), start + Duration::from_secs(second));
        let rows = [
            (10, 1, false),
            (20, 2, true),
            (30, 2, false),
            (40, 1, false),
            (79, 3, false),
            (80, 3, true),
            (90, 3, false),
            (140, 1, true),
        ];
        for (second, cause, expected) in rows {
            assert_eq!(told(second, cause), expected, "{second}");
        }
    }

    /// rule:a-restart-changes-nothing
    #[test]
    fn the_first_cause_after_a_takeover_is_no_other_one() {
        let (now, mut causes) = (Instant::now(), Causes::default());
        assert!(!causes.note(Some(1), now));
        assert!(causes.note(Some(2), now));
    }
}
