//! The syntax of gcfg, in which cloud-config files are written: sections, `key = value`, comments.

/// A line of the file cannot be read. Its text is not shown: it may hold a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    line: usize,
    what: &'static str,
}

/// One `key = value` of a section; names in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) section: String,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// Reads all entries, in the order of the file.
///
/// # Errors
/// The first line that cannot be parsed.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, SyntaxError> {
    let (mut section, mut entries) = (None, Vec::new());
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let at = |what| SyntaxError { line: index + 1, what };
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            section = Some(section_name(rest).map_err(at)?);
            continue;
        }
        let Some(section) = &section else { return Err(at("a key is before the first section")) };
        let (key, value) = match line.split_once('=') {
            Some((key, value)) => (key.trim(), value_of(value.trim()).map_err(at)?),
            // gcfg takes a key alone for a switch.
            None => (line, "true".to_owned()),
        };
        if !is_name(key) {
            return Err(at("the key is not letters, digits and dashes"));
        }
        let key = key.to_ascii_lowercase();
        entries.push(Entry { section: section.clone(), key, value });
    }
    Ok(entries)
}

/// Reads the text between the brackets; a subsection in quotes belongs to the name.
fn section_name(rest: &str) -> Result<String, &'static str> {
    let (name, behind) = rest.split_once(']').ok_or("the section's ] is missing")?;
    if !behind.trim().is_empty() && !behind.trim_start().starts_with(['#', ';']) {
        return Err("there is text after the ] of the section");
    }
    let first = name.split_whitespace().next().unwrap_or_default();
    if is_name(first) {
        Ok(name.trim().to_ascii_lowercase())
    } else {
        Err("the section's name is not letters, digits and dashes")
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A value without its quotes, escapes and the comment behind it.
fn value_of(text: &str) -> Result<String, &'static str> {
    let (mut value, mut quoted) = (String::new(), false);
    // Blanks at the end count inside quotes only.
    let mut kept = 0;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => break,
            '\\' => value.push(escaped(characters.next())?),
            other => value.push(other),
        }
        if quoted || !character.is_whitespace() {
            kept = value.len();
        }
    }
    if quoted {
        return Err("a quote is not closed");
    }
    value.truncate(kept);
    Ok(value)
}

fn escaped(character: Option<char>) -> Result<char, &'static str> {
    match character {
        Some(same @ ('"' | '\\')) => Ok(same),
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        _ => Err("a \\ is not followed by \\, \", n or t"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(String, String, String)> {
        parse(text)
            .unwrap()
            .into_iter()
            .map(|entry| (entry.section, entry.key, entry.value))
            .collect()
    }

    fn entry(section: &str, key: &str, value: &str) -> (String, String, String) {
        (section.into(), key.into(), value.into())
    }

    #[test]
    fn keys_and_sections_are_read_without_regard_to_case_comments_and_quotes() {
        let text = "\u{feff}; a comment\n# another\n\n[Global]\nproject-id = my-project ; the one\r\n\
                    Token-URL=nil\nmultizone\nquoted = \" a # b \"  # c\n  empty =\n\
                    escaped = \"a\\\"b\\\\c\\n\"\n[zone \"a\"] # d\nx=1=2\n";
        assert_eq!(
            entries(text),
            [
                entry("global", "project-id", "my-project"),
                entry("global", "token-url", "nil"),
                entry("global", "multizone", "true"),
                entry("global", "quoted", " a # b "),
                entry("global", "empty", ""),
                entry("global", "escaped", "a\"b\\c\n"),
                entry("zone \"a\"", "x", "1=2"),
            ]
        );
    }

    #[test]
    fn what_is_no_entry_is_named_by_its_line_and_never_shown() {
        for (text, line) in [
            ("secret = 1", 1),
            ("[global", 1),
            ("[global] secret", 1),
            ("[]", 1),
            ("[a_b]", 1),
            ("[global]\nsec ret = 1", 2),
            ("[global]\n= secret", 2),
            ("[global]\n\nx = \"secret", 3),
            ("[global]\nx = \\secret", 2),
            ("[global]\nx = a\\", 2),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text:?}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
