//! The one-line CSV of list flags: fields split at commas, `"a,b"` keeps a comma, `""` inside
//! quotes is one quote, blanks belong to the field.

use super::SyntaxError;

/// The fields of `text`; nothing for an empty text.
///
/// A line break at the very end is dropped, since YAML block scalars leave one.
pub fn read(text: &str) -> Result<Vec<String>, SyntaxError> {
    let mut rest = text.trim_end_matches(['\n', '\r']);
    if rest.is_empty() {
        return Ok(Vec::new());
    }
    let mut fields = Vec::new();
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_field(quoted)?,
            None => plain_field(rest)?,
        };
        fields.push(field);
        match after {
            Some(more) => rest = more,
            None => return Ok(fields),
        }
    }
}

/// A field and, when a comma ended it, what follows the comma.
type Field<'a> = (String, Option<&'a str>);

fn plain_field(text: &str) -> Result<Field<'_>, SyntaxError> {
    let (field, after) = match text.split_once(',') {
        Some((field, after)) => (field, Some(after)),
        None => (text, None),
    };
    if field.contains('"') {
        return Err(SyntaxError::BareQuote);
    }
    if field.contains(['\n', '\r']) {
        return Err(SyntaxError::LineBreak);
    }
    Ok((field.to_owned(), after))
}

/// `text` starts behind the opening quote.
fn quoted_field(text: &str) -> Result<Field<'_>, SyntaxError> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (inside, after) = rest.split_once('"').ok_or(SyntaxError::UnclosedQuote)?;
        field.push_str(inside);
        if let Some(more) = after.strip_prefix('"') {
            field.push('"');
            rest = more;
        } else if after.is_empty() {
            return Ok((field, None));
        } else if let Some(more) = after.strip_prefix(',') {
            return Ok((field, Some(more)));
        } else {
            return Err(SyntaxError::UnclosedQuote);
        }
    }
}

/// The inverse of [`read`], for printing effective values.
pub fn write<T: AsRef<str>>(fields: impl IntoIterator<Item = T>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|field| quote(field.as_ref())).collect();
    fields.join(",")
}

fn quote(field: &str) -> String {
    // An empty field alone would read back as an empty list, so it is always quoted.
    if field.is_empty() || field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
