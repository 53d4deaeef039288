//! [`Findings`]: everything that is wrong with an object.

use std::fmt;

use kube_api::printable;

use super::Question;
use super::field::{Field, quoted};

/// The result of a judgement. An object without errors may be stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Why the object is refused.
    pub errors: Vec<FieldError>,
    /// Allowed, but probably not intended.
    pub warnings: Vec<String>,
    /// Checks that were not made.
    pub unchecked: Vec<Unchecked>,
}

/// A check that was not made, for instance since the environment says nothing about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchecked {
    /// The field that the check is about.
    pub field: String,
    /// The unanswered question, such as `whether SSH answers at 10.0.0.1:22`.
    pub question: String,
    /// The part of the environment that would answer the question.
    pub told_by: Option<&'static str>,
    /// The question in structured form, where the network can answer it.
    pub asks: Option<Question>,
}

impl fmt::Display for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, question, told_by, .. } = self;
        write!(f, "{field}: not checked: {question}")?;
        told_by.map_or(Ok(()), |part| write!(f, " ({part} of the environment would tell)"))
    }
}

impl Findings {
    /// `detail` may be empty.
    pub(crate) fn required(&mut self, at: &Field<'_>, detail: &str) {
        let colon = if detail.is_empty() { "" } else { ": " };
        self.push(at, ErrorType::Required, format!("Required value{colon}{detail}"));
    }

    pub(crate) fn invalid(&mut self, at: &Field<'_>, detail: &str) {
        self.push(at, ErrorType::Invalid, format!("Invalid value: {}: {detail}", at.shown()));
    }

    pub(crate) fn type_invalid(&mut self, at: &Field<'_>, found: &str, wanted: &str) {
        let path = at.path();
        let why = format!("{path} in body must be of type {wanted}: \"{found}\"");
        self.push(at, ErrorType::TypeInvalid, format!("Invalid value: \"{found}\": {why}"));
    }

    pub(crate) fn not_supported<'a>(
        &mut self,
        at: &Field<'_>,
        shown: &str,
        supported: impl IntoIterator<Item = &'a str>,
    ) {
        let supported: Vec<String> = supported.into_iter().map(quoted).collect();
        let detail =
            format!("Unsupported value: {shown}: supported values: {}", supported.join(", "));
        self.push(at, ErrorType::NotSupported, detail);
    }

    pub(crate) fn duplicate(&mut self, at: &Field<'_>) {
        self.push(at, ErrorType::Duplicate, format!("Duplicate value: {}", at.shown()));
    }

    pub(crate) fn forbidden(&mut self, at: &Field<'_>, detail: &str) {
        self.push(at, ErrorType::Forbidden, format!("Forbidden: {detail}"));
    }

    pub(crate) fn too_many(&mut self, at: &Field<'_>, found: usize, most: usize) {
        let detail = format!("Too many: {found}: must have at most {most} items");
        self.push(at, ErrorType::TooMany, detail);
    }

    pub(crate) fn too_long(&mut self, at: &Field<'_>, most: usize) {
        let detail = format!("Too long: may not be more than {most} bytes");
        self.push(at, ErrorType::TooLong, detail);
    }

    pub(crate) fn warn(&mut self, at: &Field<'_>, text: &str) {
        self.warnings.push(printable(&format!("{}: {}", at.path(), without_secrets(text))));
    }

    pub(crate) fn unchecked(&mut self, at: &Field<'_>, question: &str, told_by: &'static str) {
        let (field, question) = (printable(at.path()), printable(without_secrets(question)));
        self.unchecked.push(Unchecked { field, question, told_by: Some(told_by), asks: None });
    }

    /// Adds a question that only the network can answer.
    pub(crate) fn unasked(&mut self, at: &Field<'_>, asks: Question) {
        self.unchecked.push(Unchecked {
            field: printable(at.path()),
            question: printable(without_secrets(&asks.to_string())),
            told_by: Some(asks.told_by()),
            asks: Some(asks),
        });
    }

    /// Whether there is an error about this field.
    pub(crate) fn has(&self, at: &Field<'_>) -> bool {
        self.errors.iter().any(|error| error.field == at.path())
    }

    /// Nothing more is said of a field that is missing or of another type, nor of what is in it.
    fn push(&mut self, at: &Field<'_>, error_type: ErrorType, detail: String) {
        let settles = |error: &FieldError| match error.error_type {
            ErrorType::Required | ErrorType::TypeInvalid => is_within(at.path(), &error.field),
            _ => false,
        };
        if !self.errors.iter().any(settles) {
            let (field, detail) = (printable(at.path()), printable(&detail));
            self.errors.push(FieldError { field, error_type, detail });
        }
    }
}

/// `rule:secrets-are-not-echoed`
fn without_secrets(text: &str) -> &str {
    if text.contains('@') { "(hidden)" } else { text }
}

fn is_within(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The kind of an error. Names are those of the API server's causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// The field is missing.
    Required,
    /// The value cannot be used.
    Invalid,
    /// The value has another JSON type.
    TypeInvalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The value exists already.
    Duplicate,
    /// The field is not allowed here.
    Forbidden,
    /// The list has too many items.
    TooMany,
    /// The text has too many characters.
    TooLong,
}

impl ErrorType {
    /// The reason of a cause in a Status of the API server.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooMany => "FieldValueTooMany",
            Self::TooLong => "FieldValueTooLong",
        }
    }
}

impl fmt::Display for ErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = self.reason();
        f.write_str(reason.strip_prefix("FieldValue").unwrap_or(reason))
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// The path of the field, such as `spec.machines[1].ip`.
    pub field: String,
    /// The kind of the error.
    pub error_type: ErrorType,
    /// The value and the expected form, without any secret.
    pub detail: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.field, self.error_type, self.detail)
    }
}
