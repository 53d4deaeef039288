//! [`Fate`]: what becomes of a call.

use std::time::Duration;

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is carried out and answered.
    Pass,
    /// Its sender dies before it is carried out.
    CrashBefore,
    /// Its sender dies when it is carried out and not yet answered.
    CrashAfter,
    /// It is carried out, and the answer is lost.
    AnswerLost,
    /// It is lost on its way.
    CallLost,
    /// It is refused with this code.
    Refuse(&'static str),
    /// It is refused with this HTTP status and code.
    RefuseWith(u16, &'static str),
    /// It is carried out, and refused with this code, as its repetition would be.
    DoneAndRefused(&'static str),
    /// It is carried out after so long.
    Delay(Duration),
}
