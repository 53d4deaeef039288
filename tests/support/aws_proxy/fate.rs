//! [`Fate`]: what becomes of a call.

use std::time::Duration;

/// The fate of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The call is carried out and answered.
    Pass,
    /// The sender dies before the call is carried out.
    CrashBefore,
    /// The sender dies after the call is carried out and before it is answered.
    CrashAfter,
    /// The call is carried out, and the answer is lost.
    AnswerLost,
    /// The call is lost before AWS gets it.
    CallLost,
    /// The call is refused with this code.
    Refuse(&'static str),
    /// The call is refused with this HTTP status and code.
    RefuseWith(u16, &'static str),
    /// The call is carried out, and refused with this code, as a repetition would be.
    DoneAndRefused(&'static str),
    /// The call is carried out after this delay.
    Delay(Duration),
}
