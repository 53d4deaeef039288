//! [`given`]: flags of which the empty text means that they are not set.

use flags::{Flag, Values};

/// A text that is set.
pub(super) fn given(values: &Values, flag: &Flag<String>) -> Option<String> {
    Some(values.get(flag)).filter(|text| !text.is_empty())
}
