//! Logs in the two formats of Kubernetes components, on standard error, or on both standard streams.
//!
//! The command calls [`install`] once, right after the flags are parsed; everything else logs
//! through `tracing`. Verbosity follows klog; a warning that repeats itself is
//! written once per 10 seconds, with a count; no thread waits for a log that is not read.

mod layer;
mod line;
mod queue;
mod threshold;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::str::FromStr as _;
use std::sync::Arc;

use tracing::{Dispatch, dispatcher};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

use layer::KlogLayer;
use layer::Output;
pub use line::Format;
use queue::Buffered;
pub use queue::Buffering;
use queue::LogQueue;
use threshold::{Threshold, Verbosity};

/// Values of the logging flags.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// `--logging-format`.
    pub format: Format,
    /// `--v`.
    pub verbosity: u8,
    /// `--vmodule`: verbosity by source file. Patterns are matched against the name of the file
    /// without `.rs` (of the module, for `mod.rs` and `lib.rs`), with `*` and `?`; the first match
    /// counts, and can only raise what `verbosity` allows. For the text format only.
    pub vmodule: Vec<(String, u8)>,
    /// Errors go to standard error, all else to standard output.
    pub split_stream: bool,
    /// Buffer of standard output, with split streams. Errors are never held back.
    pub buffering: Buffering,
}

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Ignored with JSON, as in stock: klog's per-module levels belong to its text format.
    #[error("cannot use --vmodule with --logging-format=json: drop one of them")]
    VmoduleWithJson,
    /// `RUST_LOG` is set to something else than directives.
    #[error("cannot parse RUST_LOG: {0}; correct or unset it")]
    Directives(#[from] tracing_subscriber::filter::ParseError),
    /// Standard error is closed, or the system gave no thread.
    #[error("cannot write the log to standard error: {0}")]
    Output(#[from] io::Error),
    /// A process has one log.
    #[error("cannot install logging twice")]
    AlreadyInstalled,
}

/// Reaches the running log. Clones share it.
#[derive(Clone)]
pub struct LogHandle {
    flush: Arc<dyn Fn() + Send + Sync>,
    queues: Vec<LogQueue>,
    /// None when `RUST_LOG` decides instead.
    verbosity: Option<Verbosity>,
}

impl LogHandle {
    /// Logs as with this `--v` from now on; `--vmodule` stays. False when `RUST_LOG` decides what is
    /// logged: then nothing changes.
    pub fn set_verbosity(&self, verbosity: u8) -> bool {
        self.verbosity.as_ref().inspect(|current| current.set(verbosity)).is_some()
    }

    /// Writes what is still held back: counts of repeated warnings, and lines on their way. Takes a
    /// second for each stream at most. Call it before the process ends.
    pub fn flush(&self) {
        (self.flush)();
        for queue in &self.queues {
            queue.flush();
        }
    }
}

/// Makes this the log of the process. `RUST_LOG`, when set and not empty, replaces `verbosity` and
/// `vmodule`.
pub fn install(options: &LogOptions) -> Result<LogHandle, LogError> {
    let directives = std::env::var("RUST_LOG").ok().filter(|directives| !directives.is_empty());
    let format = options.format;
    let errors = queue(&io::stderr(), format, Buffering::default())?;
    let rest = || queue(&io::stdout(), format, options.buffering);
    let rest = options.split_stream.then(rest).transpose()?;
    let queues = [errors.clone()].into_iter().chain(rest.clone()).collect();
    let (log, handle) = build(options, directives.as_deref(), errors, rest)?;
    dispatcher::set_global_default(log).map_err(|_| LogError::AlreadyInstalled)?;
    Ok(LogHandle { queues, ..handle })
}

/// With a descriptor of its own: the lock of a standard stream is held by whoever prints.
fn queue(stream: &impl AsFd, format: Format, buffering: Buffering) -> io::Result<LogQueue> {
    let file = File::from(stream.as_fd().try_clone_to_owned()?);
    LogQueue::start(Buffered::new(file, buffering), move |lost| line::lost_lines(format, lost))
}

/// The log for any sink, so that tests read what they wrote; with one for all but errors where
/// those stand apart.
fn build<W>(
    options: &LogOptions,
    directives: Option<&str>,
    sink: W,
    rest: Option<W>,
) -> Result<(Dispatch, LogHandle), LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    if options.format == Format::Json && !options.vmodule.is_empty() {
        return Err(LogError::VmoduleWithJson);
    }
    let output = Arc::new(Output::new(options.format, sink, rest));
    let flush = output.clone();
    let flush = Arc::new(move || flush.flush());
    let (log, verbosity) = if let Some(directives) = directives {
        let layer = KlogLayer::new(None, output);
        (Registry::default().with(layer).with(Targets::from_str(directives)?).into(), None)
    } else {
        let verbosity = Verbosity::new(options.verbosity);
        let threshold = Threshold::new(verbosity.clone(), &options.vmodule);
        (Registry::default().with(KlogLayer::new(Some(threshold), output)).into(), Some(verbosity))
    };
    Ok((log, LogHandle { flush, queues: Vec::new(), verbosity }))
}

#[cfg(test)]
mod tests;
