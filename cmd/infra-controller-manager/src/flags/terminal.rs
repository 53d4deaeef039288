//! How wide help may be: the window of a terminal, unbounded for files and pipes.

use std::io::IsTerminal as _;

use rustix::termios::tcgetwinsize;

/// Where the text goes.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// Columns of the terminal behind a stream; `None` means do not wrap.
pub(super) fn width(stream: Stream) -> Option<usize> {
    let size = match stream {
        Stream::Stdout if std::io::stdout().is_terminal() => tcgetwinsize(std::io::stdout()),
        Stream::Stderr if std::io::stderr().is_terminal() => tcgetwinsize(std::io::stderr()),
        _ => return None,
    };
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
