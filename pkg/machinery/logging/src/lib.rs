//! Logs in the two formats of Kubernetes components, on standard error.
//!
//! The command calls [`install`] once, right after the flags are parsed; everything else logs
//! through `tracing`. Verbosity follows klog (rule:log-verbosity); a warning that repeats itself is
//! written once per 10 seconds, with a count; nobody waits for a log that is not read.

mod collapse;
mod escape;
mod fields;
mod format;
mod layer;
mod line;
mod output;
mod pattern;
mod queue;
mod threshold;

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::str::FromStr as _;
use std::sync::Arc;

use tracing::{Dispatch, dispatcher};
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

pub use format::Format;
use layer::KlogLayer;
use output::Output;
use queue::LogQueue;
use threshold::Threshold;

/// What the logging flags say.
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
}

/// Why logging cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// As stock: klog's per-module levels belong to its text format.
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
    queue: Option<LogQueue>,
}

impl LogHandle {
    /// Writes what is still held back: counts of repeated warnings, and lines on their way. Takes a
    /// second at most. Call it before the process ends.
    pub fn flush(&self) {
        (self.flush)();
        if let Some(queue) = &self.queue {
            queue.flush();
        }
    }
}

/// Makes this the log of the process. `RUST_LOG`, when set and not empty, replaces `verbosity` and
/// `vmodule`.
pub fn install(options: &LogOptions) -> Result<LogHandle, LogError> {
    let directives = std::env::var("RUST_LOG").ok().filter(|directives| !directives.is_empty());
    // A descriptor of its own: the lock of `std::io::stderr` is held by whoever prints.
    let stderr = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    let format = options.format;
    let queue = LogQueue::start(stderr, move |lost| line::lost_lines(format, lost))?;
    let (log, handle) = build(options, directives.as_deref(), queue.clone())?;
    dispatcher::set_global_default(log).map_err(|_| LogError::AlreadyInstalled)?;
    Ok(LogHandle { queue: Some(queue), ..handle })
}

/// The log for any sink, so that tests read what they wrote.
fn build<W>(
    options: &LogOptions,
    directives: Option<&str>,
    sink: W,
) -> Result<(Dispatch, LogHandle), LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    if options.format == Format::Json && !options.vmodule.is_empty() {
        return Err(LogError::VmoduleWithJson);
    }
    let output = Arc::new(Output::new(options.format, sink));
    let flush = output.clone();
    let handle = LogHandle { flush: Arc::new(move || flush.flush()), queue: None };
    let log = if let Some(directives) = directives {
        let layer = KlogLayer::new(None, output);
        Registry::default().with(layer).with(Targets::from_str(directives)?).into()
    } else {
        let threshold = Threshold::new(options.verbosity, &options.vmodule);
        Registry::default().with(KlogLayer::new(Some(threshold), output)).into()
    };
    Ok((log, handle))
}

#[cfg(test)]
mod tests;
