//! [`FieldError`]: one thing that is wrong, in the words of the API server.

use std::fmt;

/// What kind of mistake it is. The causes that the API server tells have the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// It is missing.
    Required,
    /// It cannot be used.
    Invalid,
    /// It is of another type of JSON.
    TypeInvalid,
    /// It is none of the values that there are.
    NotSupported,
    /// It is there already.
    Duplicate,
    /// It is not allowed here.
    Forbidden,
    /// It is a list with too many items.
    TooMany,
    /// It is a text with too many characters.
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
    /// Where, such as `spec.machines[1].ip`.
    pub field: String,
    /// What kind of mistake.
    pub error_type: ErrorType,
    /// What stands there and what would be right, without any secret.
    pub detail: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.field, self.error_type, self.detail)
    }
}
