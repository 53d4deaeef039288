//! What a command tells at its end.

use std::io::Write as _;
use std::process::ExitCode;

/// Prints it where it belongs; an error ends with code 1. Nothing can be done about a closed
/// stream.
pub fn told(text: &str, is_error: bool) -> ExitCode {
    if is_error {
        to_stderr(text);
        return ExitCode::FAILURE;
    }
    to_stdout(text);
    ExitCode::SUCCESS
}

/// The answer.
pub fn to_stdout(text: &str) {
    let _closed = std::io::stdout().write_all(text.as_bytes());
}

/// What is said beside it.
pub fn to_stderr(text: &str) {
    let _closed = std::io::stderr().write_all(text.as_bytes());
}
