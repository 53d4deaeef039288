//! [`Flaws`]: what cannot be read of a resource. It spoils the answer only when the resource is of
//! the cluster (`rule:only-ours-spoils-an-answer`).

use std::str::FromStr;

use aws_network::Tags;

use crate::call_error::CallError;

use super::Describe;

/// What an answer lacks about one resource.
#[derive(Debug, Default)]
pub(super) struct Flaws {
    first: Option<CallError>,
    has_no_id: bool,
}

impl Flaws {
    /// An id. A resource of others without one is left out: nothing can be said about it.
    pub(super) fn id(&mut self, id: Option<String>, what: &'static str) -> String {
        self.has_no_id |= id.is_none();
        self.needed(id, what, String::new())
    }

    /// What a resource of ours has; another one may have `otherwise`.
    pub(super) fn needed<T>(&mut self, value: Option<T>, what: &'static str, otherwise: T) -> T {
        value.unwrap_or_else(|| {
            self.first.get_or_insert_with(|| CallError::without(what));
            otherwise
        })
    }

    /// A text in its own form, in the same way.
    pub(super) fn parsed<T: FromStr>(
        &mut self,
        text: Option<&str>,
        what: &'static str,
        otherwise: T,
    ) -> T {
        self.needed(text.and_then(|text| text.parse().ok()), what, otherwise)
    }

    /// A part of it; none where that cannot be read.
    pub(super) fn part<T>(&mut self, read: Result<T, CallError>) -> Option<T> {
        match read {
            Ok(part) => Some(part),
            Err(flaw) => {
                self.first.get_or_insert(flaw);
                None
            }
        }
    }

    /// Whether a resource counts: not one of others without an id.
    ///
    /// # Errors
    /// It is ours and lacks something.
    pub(super) fn admits(self, is_ours: bool) -> Result<bool, CallError> {
        match self.first {
            Some(flaw) if is_ours => Err(flaw),
            _ => Ok(!self.has_no_id),
        }
    }
}

impl Describe<'_> {
    /// The resources that count, of what was read.
    pub(super) fn admit<T>(
        self,
        read: impl Iterator<Item = (T, Flaws)>,
        tags: impl Fn(&T) -> &Tags,
    ) -> Result<Vec<T>, CallError> {
        let mut admitted = Vec::new();
        for (found, flaws) in read {
            if flaws.admits(self.is_tagged(tags(&found)))? {
                admitted.push(found);
            }
        }
        Ok(admitted)
    }
}
