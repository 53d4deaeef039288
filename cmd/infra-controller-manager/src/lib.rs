//! The command: flags, wiring and exit codes. What the program does lives in the crates of `pkg/`.
//!
//! | thread | is for |
//! |---|---|
//! | main | waits for leadership, signals and the end |
//! | `worker`, one | controllers, caches, events, the HTTPS server |
//! | `worker` beyond that, for ten seconds after use | names to resolve, files to read, memory to give back |
//! | `cluster-health`, up to four | member clusters, once there is a kind of them |
//! | `shard-lease` | the lease of a replica that shares the member clusters |
//! | `leader-election` | the lease, with a runtime and a connection that nothing else uses |
//! | `lease-watchdog` | ends a leader that does not renew, whatever the others do |
//! | `log` | writes the log, so that no other thread waits for its reader |
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod build;
pub mod check_command;
pub mod controllers;
pub mod crds;
pub mod flags;
mod leading;
mod pages;
pub mod process;
mod serve;
pub mod settings;
mod signals;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use logging::{Buffering, Format, LogHandle, LogOptions};
use tracing::{error, info, warn};

use crate::controllers::Controllers;
use crate::flags::table::serving::{
    LOG_FLUSH_FREQUENCY, LOG_JSON_INFO_BUFFER_SIZE, LOG_JSON_SPLIT_STREAM,
    LOG_TEXT_INFO_BUFFER_SIZE, LOG_TEXT_SPLIT_STREAM, LOGGING_FORMAT, VERBOSITY, VMODULE,
};
use crate::flags::{Parsed, has_alpha_logging};
use crate::settings::ProcessSettings;

/// The limit of kube-controller-manager.
const LARGEST_LOG_BUFFER: usize = 2 << 30;

/// Runs the product: 0 after help, version or a requested stop, else 1. With `check` as its first
/// argument it checks a command line ([`check_command`]); with the name of a command of a controller,
/// such as `probe`, it runs that ([`controllers::commands`]).
pub fn start(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter().peekable();
    let program = args.next();
    if args.next_if(|first| first == check_command::NAME).is_some() {
        return check_command::start(args, controllers::ALL);
    }
    for command in controllers::commands() {
        if args.next_if(|first| first == command.name).is_some() {
            return (command.start)(build::PROGRAM, args.collect());
        }
    }
    start_hosting(program.into_iter().chain(args), controllers::ALL)
}

/// Like [`start`] with other controllers and without commands; for tests of the host.
pub fn start_hosting(args: impl IntoIterator<Item = OsString>, hosted: Controllers) -> ExitCode {
    match run(args, hosted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Exit::Usage(text)) => {
            // Nothing can be done about a closed stderr.
            let _closed = std::io::stderr().write_all(text.as_bytes());
            ExitCode::FAILURE
        }
        Err(Exit::Logged) => ExitCode::FAILURE,
    }
}

enum Exit {
    /// Text for stderr, before there is a log.
    Usage(String),
    /// The reason is in the log.
    Logged,
}

fn run(args: impl IntoIterator<Item = OsString>, hosted: Controllers) -> Result<(), Exit> {
    let known = settings::known(hosted).map_err(|error| Exit::Usage(format!("{error}\n")))?;
    let parsed = flags::parse(args, &settings::controller_flags(hosted), &known, &build::INFO)
        .map_err(|error| Exit::Usage(format!("{error}\n")))?;
    let values = match parsed {
        Parsed::Print(text) => {
            let _closed = std::io::stdout().write_all(text.as_bytes());
            return Ok(());
        }
        Parsed::Run(values) => values,
    };
    let log = start_logging(&values)?;
    let settings = ProcessSettings::new(&values, &known, hosted).map_err(|problems| {
        // In this order, although one goes through the log's queue.
        log.flush();
        let lines: Vec<String> = problems.iter().map(|p| format!("error: {p}\n")).collect();
        Exit::Usage(lines.concat())
    })?;
    // Not before they were judged: an address with a password in it is refused, and shown nowhere.
    for (name, value) in values.effective() {
        info!(v = 1, "FLAG: --{name}={value:?}");
    }
    info!(version = %settings.version, commit = build::INFO.commit, "Starting {}", build::PRODUCT);
    for warning in &settings.warnings {
        warn!("{warning}");
    }
    for (name, reason) in &settings.idle {
        info!(logger = *name, reason, "Controller is not started");
    }
    if settings.controllers.is_empty() {
        warn!("No controller is started: this process only holds the lease; see --controllers");
    }
    let ended = serve(settings, &log);
    log.flush();
    ended
}

fn start_logging(values: &::flags::Values) -> Result<LogHandle, Exit> {
    let (format, split, buffer) = match values.get(&LOGGING_FORMAT).as_str() {
        "json" => (Format::Json, LOG_JSON_SPLIT_STREAM, LOG_JSON_INFO_BUFFER_SIZE),
        _ => (Format::Text, LOG_TEXT_SPLIT_STREAM, LOG_TEXT_INFO_BUFFER_SIZE),
    };
    let options = LogOptions {
        format,
        // What is judged only later must not change where the log goes.
        split_stream: values.get(&split) && has_alpha_logging(values),
        buffering: Buffering {
            size: usize::try_from(values.get(&buffer)).unwrap_or_default().min(LARGEST_LOG_BUFFER),
            longest: values.get(&LOG_FLUSH_FREQUENCY).to_std(),
        },
        verbosity: u8::try_from(values.get(&VERBOSITY)).unwrap_or(u8::MAX),
        vmodule: values.get(&VMODULE),
    };
    logging::install(&options).map_err(|error| Exit::Usage(format!("error: {error}\n")))
}

fn serve(settings: ProcessSettings, log: &LogHandle) -> Result<(), Exit> {
    signals::set_limits();
    // Two providers may be compiled in, and rustls refuses to choose. Failing means one is set.
    let _set = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("worker")
        .on_thread_park(transport::rest_if_busy)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        error!(err = %error, "Cannot start the async runtime");
        Exit::Logged
    })?;
    let ended = runtime.block_on(process::run(settings, log));
    // Nothing that is still running may delay the end, least of all after a lost lease.
    runtime.shutdown_background();
    ended.map_err(|error| {
        error!("{error:#}");
        Exit::Logged
    })
}
