//! [`LabelSelector`]: which objects are selected by their labels, in the syntax of kubectl, which is read as apimachinery's
//! `labels.Parse` reads it.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Longest symbols first: `==` is one token.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];
const KEY: &str = "a label key, or ! and a label key";
const OPERATOR: &str = "one of = == != in notin > < or a comma";

/// A label selector such as `tier in (web,db),!spot`; the empty one selects everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    text: Arc<str>,
    /// An object is selected when it fulfils all of them.
    requirements: Arc<[Requirement]>,
}

impl LabelSelector {
    /// Reads a selector as kubectl does.
    ///
    /// # Errors
    /// The first part that does not follow the syntax.
    pub fn parse(text: &str) -> Result<Self, LabelSelectorError> {
        let requirements = Tokens::of(text).requirements()?;
        Ok(Self { text: text.trim().into(), requirements: requirements.into() })
    }

    /// Whether an object is selected; `label` gives the value of its label with a key.
    pub fn selects<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|wanted| wanted.test.passes(label(&wanted.key)))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl LabelTest {
    /// Whether a label with this value passes; `None` is a missing label.
    pub fn passes(&self, value: Option<&str>) -> bool {
        let is_one_of = |values: &[Box<str>]| {
            value.is_some_and(|value| values.iter().any(|one| **one == *value))
        };
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(values) => is_one_of(values),
            Self::NotIn(values) => !is_one_of(values),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Greater(than) => number().is_some_and(|number| number > *than),
            Self::Less(than) => number().is_some_and(|number| number < *than),
        }
    }
}

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Requirement {
    key: Box<str>,
    test: LabelTest,
}

/// What the value of a label has to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LabelTest {
    /// One of these.
    In(Vec<Box<str>>),
    /// None of these; the label may be missing, as everywhere in Kubernetes.
    NotIn(Vec<Box<str>>),
    /// Anything.
    Exists,
    /// Nothing: the label is missing.
    DoesNotExist,
    /// A whole number above this one.
    Greater(i64),
    /// A whole number below this one.
    Less(i64),
}

/// The text of a selector does not follow the syntax.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LabelSelectorError {
    /// Something stands in the wrong place.
    #[error("found {found}, expected {expected}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// What can stand there.
        expected: &'static str,
    },
    /// A label cannot have this key.
    #[error("{0:?} is not a valid label key")]
    Key(String),
    /// A label cannot have this value.
    #[error("{0:?} is not a valid label value")]
    Value(String),
    /// The operators `>` and `<` compare whole numbers.
    #[error("{0:?} is not a whole number")]
    Number(String),
}

/// The rest of the text.
struct Tokens<'a>(&'a str);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'static str),
    End,
}

impl<'a> Tokens<'a> {
    fn of(text: &'a str) -> Self {
        Self(text)
    }

    /// All requirements, which commas separate.
    fn requirements(mut self) -> Result<Vec<Requirement>, LabelSelectorError> {
        let mut all = Vec::new();
        if self.peek() == Token::End {
            return Ok(all);
        }
        loop {
            all.push(self.requirement()?);
            match self.next() {
                Token::End => return Ok(all),
                Token::Symbol(",") => {}
                other => return Err(unexpected(other, "a comma or the end")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, LabelSelectorError> {
        let is_negated = self.take("!");
        let key = match self.next() {
            Token::Word(key) if is_label_key(key) => key.into(),
            Token::Word(key) => return Err(LabelSelectorError::Key(key.to_owned())),
            other => return Err(unexpected(other, KEY)),
        };
        let test = if is_negated { LabelTest::DoesNotExist } else { self.test()? };
        Ok(Requirement { key, test })
    }

    fn test(&mut self) -> Result<LabelTest, LabelSelectorError> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(LabelTest::Exists);
        }
        match self.next() {
            Token::Symbol("=" | "==") => Ok(LabelTest::In(vec![self.value()?])),
            Token::Symbol("!=") => Ok(LabelTest::NotIn(vec![self.value()?])),
            Token::Symbol(">") => Ok(LabelTest::Greater(self.number()?)),
            Token::Symbol("<") => Ok(LabelTest::Less(self.number()?)),
            Token::Word("in") => Ok(LabelTest::In(self.values()?)),
            Token::Word("notin") => Ok(LabelTest::NotIn(self.values()?)),
            other => Err(unexpected(other, OPERATOR)),
        }
    }

    /// One value; the empty one is written as nothing.
    fn value(&mut self) -> Result<Box<str>, LabelSelectorError> {
        if matches!(self.peek(), Token::End | Token::Symbol("," | ")")) {
            return Ok(Box::default());
        }
        match self.next() {
            Token::Word(value) if is_name(value) => Ok(value.into()),
            Token::Word(value) => Err(LabelSelectorError::Value(value.to_owned())),
            other => Err(unexpected(other, "a label value")),
        }
    }

    /// Values in parentheses.
    fn values(&mut self) -> Result<Vec<Box<str>>, LabelSelectorError> {
        if !self.take("(") {
            return Err(unexpected(self.peek(), "an opening parenthesis"));
        }
        let mut values = Vec::new();
        loop {
            values.push(self.value()?);
            match self.next() {
                Token::Symbol(")") => return Ok(values),
                Token::Symbol(",") => {}
                other => return Err(unexpected(other, "a comma or a closing parenthesis")),
            }
        }
    }

    fn number(&mut self) -> Result<i64, LabelSelectorError> {
        let text = self.value()?;
        text.parse().map_err(|_| LabelSelectorError::Number(text.into()))
    }

    fn take(&mut self, symbol: &'static str) -> bool {
        let is_next = self.peek() == Token::Symbol(symbol);
        if is_next {
            self.next();
        }
        is_next
    }

    fn peek(&self) -> Token<'a> {
        Self(self.0).next()
    }

    fn next(&mut self) -> Token<'a> {
        let text = self.0.trim_start();
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| text.starts_with(symbol)) {
            self.0 = &text[symbol.len()..];
            return Token::Symbol(symbol);
        }
        let ends = |c: char| c.is_whitespace() || "=!(),<>".contains(c);
        let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
        self.0 = rest;
        if word.is_empty() { Token::End } else { Token::Word(word) }
    }
}

fn unexpected(found: Token<'_>, expected: &'static str) -> LabelSelectorError {
    let found = match found {
        Token::Word(text) | Token::Symbol(text) => format!("{text:?}"),
        Token::End => "the end".to_owned(),
    };
    LabelSelectorError::Unexpected { found, expected }
}

/// Whether a label can have this key: a name, with a DNS subdomain and a slash before it or without.
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((domain, name)) => is_dns_subdomain(domain) && is_name(name),
        None => is_name(key),
    }
}

/// Whether a text is a subdomain of RFC 1123: labels with dots between them.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

/// Whether a text is a label of RFC 1123, such as the name of a namespace.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

fn is_dns_part(part: &str) -> bool {
    let mut bytes = part.bytes();
    bytes.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-') && is_enclosed(part)
}

/// A label value that is not empty, or the name in a key.
fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 63
        && bytes.all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c))
        && is_enclosed(text)
}

/// Whether the first and the last character are letters or digits.
fn is_enclosed(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|end| end.is_some_and(|c| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests;
