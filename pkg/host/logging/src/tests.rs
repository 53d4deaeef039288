//! The log as its reader sees it: real events through the whole layer into a buffer.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use tracing::{Dispatch, debug, dispatcher, error, error_span, info, info_span, trace, warn};

use super::*;

/// A log with its text.
struct Log {
    dispatch: Dispatch,
    handle: LogHandle,
    written: Arc<Mutex<Vec<u8>>>,
}

/// A writer into memory.
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log_with(options: &LogOptions, directives: Option<&str>) -> Log {
    let written = Arc::new(Mutex::new(Vec::new()));
    let buffer = written.clone();
    let sink = move || Sink(buffer.clone());
    let (dispatch, handle) = build(options, directives, sink, None).unwrap();
    Log { dispatch, handle, written }
}

fn text(verbosity: u8) -> Log {
    log_with(&LogOptions { verbosity, ..LogOptions::default() }, None)
}

fn json(verbosity: u8) -> Log {
    log_with(&LogOptions { format: Format::Json, verbosity, ..LogOptions::default() }, None)
}

impl Log {
    /// What `say` wrote, without the newline at the end.
    fn of(&self, say: impl FnOnce()) -> String {
        self.written.lock().unwrap().clear();
        dispatcher::with_default(&self.dispatch, say);
        self.text().trim_end_matches('\n').to_owned()
    }

    fn text(&self) -> String {
        String::from_utf8(self.written.lock().unwrap().clone()).unwrap()
    }
}

/// The line without time and pid, whose shape is checked, and with its number as `N`.
fn normal(line: &str) -> String {
    let shape: String =
        line[1..30].chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(&shape[..21], "0000 00:00:00.000000 ", "{line}");
    let pid: u32 = line[22..29].trim_start().parse().unwrap();
    assert_eq!(pid, std::process::id(), "{line}");
    format!("{}{}", &line[..1], with_line_as_n(&line[29..]))
}

fn with_line_as_n(rest: &str) -> String {
    let (file, rest) = rest.split_once("tests.rs:").unwrap();
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
    format!("{file}tests.rs:N{}", &rest[digits..])
}

#[test]
fn text_lines_are_those_of_klog() {
    let log = text(0);
    let line = |say: fn()| normal(&log.of(say));
    assert_eq!(line(|| info!("Starting")), r#"I tests.rs:N] "Starting""#);
    assert_eq!(
        line(|| warn!(node = "n1", count = 3, full = true, ratio = 0.5, left = -1, "Pool is full")),
        r#"W tests.rs:N] "Pool is full" node="n1" count=3 full=true ratio=0.5 left=-1"#
    );
    assert_eq!(
        line(
            || error!(pool = ?Some("a"), logger = "node-ipam", err = %io::Error::other("gone"), "Cannot sync")
        ),
        r#"E tests.rs:N] "Cannot sync" err="gone" logger="node-ipam" pool="Some(\"a\")""#
    );
    assert_eq!(
        line(|| info!("Serving securely on {}", 1)),
        r#"I tests.rs:N] "Serving securely on 1""#
    );
}

#[test]
fn the_caller_is_file_and_line_of_the_event() {
    let log = text(0);
    let (line, number) = (log.of(|| info!("here")), line!());
    assert!(line.contains(&format!(" tests.rs:{number}] ")), "{line}");
}

#[test]
fn the_pid_is_padded_to_seven_and_the_time_is_local() {
    let log = text(0);
    let before = jiff::Zoned::now();
    let line = log.of(|| info!("now"));
    let after = jiff::Zoned::now();
    let stamp = |time: &jiff::Zoned| time.strftime("I%m%d %H:%M:%S%.6f").to_string();
    assert!((stamp(&before).as_str()..=&stamp(&after)).contains(&&line[..21]), "{line}");
    assert_eq!(line[21..].find(" tests.rs"), Some(8), "{line}");
}

#[test]
fn an_error_value_shows_its_message_under_either_name() {
    let log = text(0);
    let failure: Box<dyn std::error::Error> = Box::new(io::Error::other("broken"));
    let line = normal(&log.of(|| warn!(error = failure.as_ref() as &dyn std::error::Error, "x")));
    assert_eq!(line, r#"W tests.rs:N] "x" err="broken""#);
}

#[test]
fn nothing_in_a_value_breaks_a_line_or_its_quotes() {
    let nasty = "a\nW0101 forged\" b=\"\u{1b}[2J";
    let log = text(0);
    let line = log.of(|| info!(value = nasty, shown = %nasty, "said {nasty}"));
    assert_eq!(line.lines().count(), 1);
    let value = r#""a\nW0101 forged\" b=\"\u001b[2J""#;
    assert!(line.ends_with(&format!("value={value} shown={value}")), "{line}");

    let line = json(0).of(|| info!(value = nasty, "said"));
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(object["value"], nasty);
}

#[test]
fn json_lines_hold_the_keys_of_stock_and_the_level() {
    let log = json(5);
    let line = log.of(|| warn!(logger = "lease", err = "gone", tries = 2, "Lost"));
    let (ts, rest) = line.strip_prefix(r#"{"ts":"#).unwrap().split_once(',').unwrap();
    assert_eq!(ts.split_once('.').map(|(ms, micros)| (ms.len(), micros.len())), Some((13, 3)));
    assert_eq!(
        with_line_as_n(rest),
        r#""caller":"logging/tests.rs:N","msg":"Lost","logger":"lease","err":"gone","level":"warning","tries":2}"#
    );
    let with_v = |say: fn()| {
        let object: serde_json::Value = serde_json::from_str(&log.of(say)).unwrap();
        (object["level"].as_str().unwrap().to_owned(), object.get("v").cloned())
    };
    assert_eq!(with_v(|| error!("e")), ("error".to_owned(), None));
    assert_eq!(with_v(|| info!("i")), ("info".to_owned(), Some(0.into())));
    assert_eq!(with_v(|| info!(v = 2, "i")), ("info".to_owned(), Some(2.into())));
    assert_eq!(with_v(|| debug!("d")), ("info".to_owned(), Some(4.into())));
    assert_eq!(with_v(|| debug!(v = 5, "d")), ("info".to_owned(), Some(5.into())));
}

#[test]
fn json_stays_json_with_odd_numbers_and_with_fields_named_like_ours() {
    let line = json(0).of(|| info!(ratio = f64::NAN, top = f64::INFINITY, ts = 1, level = 2, "x"));
    let object: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&object["ratio"], &object["top"]), (&"NaN".into(), &"inf".into()));
    assert_eq!((&object["ts_"], &object["level_"]), (&1.into(), &2.into()));
    assert_eq!(object["level"], "info");
}

#[test]
fn spans_add_their_fields_and_the_nearer_value_wins() {
    let log = text(0);
    let line = log.of(|| {
        let outer = info_span!("worker", logger = "node-ipam", key = "outer", worker = 7);
        let _outer = outer.enter();
        let inner = info_span!("sync", key = "n1", attempt = tracing::field::Empty);
        inner.record("attempt", 2);
        let _inner = inner.enter();
        info!(cidr = "10.0.0.0/24", "Assigned");
    });
    assert_eq!(
        normal(&line),
        r#"I tests.rs:N] "Assigned" logger="node-ipam" cidr="10.0.0.0/24" key="n1" attempt=2 worker=7"#
    );
}

#[test]
fn a_line_inside_a_reconcile_carries_controller_and_object_in_both_formats_whatever_is_admitted() {
    let inside = || {
        let controller = error_span!("controller", logger = "node-ipam-controller");
        let _controller = controller.enter();
        let reconcile = error_span!("reconcile", object = %"node-1");
        let _reconcile = reconcile.enter();
        warn!(err = "no", "Cannot reconcile");
    };
    for directives in [None, Some("warn"), Some("off,logging=error,logging=warn")] {
        let line = log_with(&LogOptions::default(), directives).of(inside);
        let wanted = r#""Cannot reconcile" err="no" logger="node-ipam-controller" object="node-1""#;
        assert!(line.ends_with(wanted), "{directives:?}: {line}");
        let options = LogOptions { format: Format::Json, ..LogOptions::default() };
        let line = log_with(&options, directives).of(inside);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(object["logger"], "node-ipam-controller");
        assert_eq!(object["object"], "node-1");
    }
}

#[test]
fn verbosity_hides_what_klog_would_hide() {
    let levels: [(u8, fn()); 9] = [
        (0, || error!(v = 9, "error")),
        (0, || warn!(v = 9, "warn")),
        (0, || info!("info")),
        (1, || info!(v = 1, "info 1")),
        (3, || info!(v = 3, "info 3")),
        (4, || debug!("debug")),
        (5, || debug!(v = 5, "debug 5")),
        (6, || trace!("trace")),
        (8, || trace!(v = 8, "trace 8")),
    ];
    for verbosity in 0..=9 {
        for (from, say) in levels {
            let shown = !text(verbosity).of(say).is_empty();
            assert_eq!(shown, verbosity >= from, "level {from} at --v={verbosity}");
        }
    }
}

#[test]
fn a_hidden_event_never_formats_its_values() {
    struct Tripwire;
    impl fmt::Debug for Tripwire {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("formatted although it is not logged")
        }
    }
    let log = text(2);
    let line = log.of(|| {
        info!(v = 3, value = ?Tripwire, "hidden");
        debug!(value = ?Tripwire, "hidden");
    });
    assert_eq!(line, "");
}

#[test]
fn vmodule_raises_one_file_and_never_lowers_it() {
    let with = |verbosity, pattern: &str, level| {
        let vmodule = vec![("other".to_owned(), 9), (pattern.to_owned(), level)];
        log_with(&LogOptions { verbosity, vmodule, ..LogOptions::default() }, None)
    };
    let heard = |log: &Log| !log.of(|| debug!("detail")).is_empty();
    assert!(heard(&with(0, "tests", 4)));
    assert!(heard(&with(0, "te*", 5)));
    assert!(!heard(&with(0, "tests", 3)));
    assert!(!heard(&with(0, "server", 9)));
    assert!(heard(&with(4, "tests", 0)));
}

#[test]
fn dependencies_are_silent_below_eight() {
    let say: [fn(); 3] = [
        || error!(target: "rustls::conn", "bad peer"),
        || warn!(target: "kube_client::client", "retrying"),
        || debug!(target: "hyper", "frame"),
    ];
    for say in say {
        assert_eq!(text(7).of(say), "");
        assert!(!text(8).of(say).is_empty());
    }
    let trace = || trace!(target: "h2::proto", "frame");
    assert_eq!(text(9).of(trace), "");
    assert!(!text(10).of(trace).is_empty());
    assert!(!text(0).of(|| warn!(target: "kubernetes", "ours")).is_empty(), "whole names only");
}

#[test]
fn rust_log_replaces_the_flags() {
    let options = LogOptions { verbosity: 9, ..LogOptions::default() };
    let log = log_with(&options, Some("logging=debug,other=trace"));
    assert!(!log.of(|| debug!(v = 5, "shown")).is_empty());
    assert_eq!(log.of(|| trace!("hidden")), "");
    assert!(!log.of(|| trace!(target: "other", "shown")).is_empty());
    assert_eq!(log.of(|| error!(target: "third", "hidden")), "");

    let quiet = log_with(&LogOptions::default(), Some("warn"));
    assert_eq!(quiet.of(|| info!("hidden")), "");
}

#[test]
fn bad_settings_are_errors_that_name_what_to_change() {
    let sink = || io::sink();
    let both = LogOptions {
        format: Format::Json,
        vmodule: vec![("a".to_owned(), 1)],
        ..LogOptions::default()
    };
    let message = build(&both, None, sink, None).err().unwrap().to_string();
    assert!(message.contains("--vmodule") && message.contains("--logging-format"), "{message}");
    let message =
        build(&LogOptions::default(), Some("a=b=c"), sink, None).err().unwrap().to_string();
    assert!(message.contains("RUST_LOG"), "{message}");
}

#[test]
fn equal_warnings_become_one_line_with_a_count_and_errors_do_not() {
    for log in [text(0), json(0)] {
        let say = |node: &str| {
            warn!(node, "Pool is full");
            error!(node, "Cannot go on");
        };
        let lines = log.of(|| {
            for _ in 0..4 {
                say("a");
            }
            say("b");
        });
        let count = |part: &str| lines.lines().filter(|line| line.contains(part)).count();
        assert_eq!((count("Pool is full"), count("Cannot go on")), (2, 5), "{lines}");

        log.written.lock().unwrap().clear();
        log.handle.flush();
        let counted = log.text();
        assert_eq!(counted.lines().count(), 1, "only the repeated one: {counted}");
        assert!(counted.contains("repeated=3") || counted.contains("\"repeated\":3"), "{counted}");
        log.handle.flush();
        assert_eq!(log.text(), counted, "a count is written once");
    }
}

#[test]
fn a_value_that_logs_while_it_is_shown_does_no_harm() {
    struct Chatty;
    impl fmt::Display for Chatty {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            warn!("from inside");
            f.write_str("chatty")
        }
    }
    let log = text(0);
    let lines = log.of(|| info!(value = %Chatty, "outside"));
    assert!(lines.contains(r#""outside" value="chatty""#), "{lines}");
}

#[test]
fn the_verbosity_changes_while_the_process_runs() {
    let log = text(0);
    let said = || log.of(|| debug!("detail")).contains("detail");
    assert!(!said());
    assert!(log.handle.set_verbosity(4));
    assert!(said());
    assert!(log.handle.set_verbosity(3));
    assert!(!said());
    let log = log_with(&LogOptions::default(), Some("error"));
    assert!(!log.handle.set_verbosity(9), "RUST_LOG decides");
    assert_eq!(log.of(|| info!("no")), "");
}

#[test]
fn errors_stand_apart_where_the_stream_is_split() {
    let [errors, rest] = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let sink = |buffer: &Arc<Mutex<Vec<u8>>>| {
        let buffer = buffer.clone();
        move || Sink(buffer.clone())
    };
    let (dispatch, _) =
        build(&LogOptions::default(), None, sink(&errors), Some(sink(&rest))).unwrap();
    dispatcher::with_default(&dispatch, || {
        info!("one");
        error!("two");
        warn!("three");
    });
    let text = |buffer: &Mutex<Vec<u8>>| String::from_utf8(buffer.lock().unwrap().clone()).unwrap();
    let (errors, rest) = (text(&errors), text(&rest));
    assert!(errors.lines().count() == 1 && errors.contains("\"two\""), "{errors}");
    let lines: Vec<_> = rest.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("\"one\"") && lines[1].contains("\"three\""));
}
