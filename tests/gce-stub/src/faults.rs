//! [`Fault`]: what goes wrong with a call.

use std::collections::VecDeque;

/// A fault of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The stub answers with this status and reason, and does nothing.
    Status(u16, &'static str),
    /// 429 with a `Retry-After` of so many seconds; nothing is done.
    RetryAfter(u64),
    /// The connection is cut; nothing is done.
    Cut,
    /// The stub carries out the call, and then cuts the connection.
    LostAnswer,
    /// The operation that it begins ends with this error.
    LateFailure(&'static str),
    /// The page of a list names a next page, whatever there is.
    NoLastPage,
}

/// The faults to come, by the name of the call.
#[derive(Debug, Default)]
pub(crate) struct Faults(VecDeque<(String, Fault)>);

impl Faults {
    pub(crate) fn add(&mut self, call: &str, count: usize, fault: Fault) {
        self.0.extend(std::iter::repeat_n((call.to_owned(), fault), count));
    }

    /// Takes the fault of the next call of this name.
    pub(crate) fn take(&mut self, call: &str) -> Option<Fault> {
        let place = self.0.iter().position(|(name, _)| name == call)?;
        self.0.remove(place).map(|(_, fault)| fault)
    }
}
