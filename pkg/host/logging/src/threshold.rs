//! Decides which call sites are logged, by `--v` and `--vmodule`.
//!
//! Everything here is known from the call site and the flags alone, so that `tracing` remembers the answer and a
//! silent site costs one load. The field `v` of an `info!` is checked when the event comes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};

/// Verbosity from which dependencies are heard; their traces one step of detail later.
const DEPENDENCIES: u8 = 8;
const DEPENDENCY_TRACES: u8 = 10;

/// Crates whose logs help only those who debug them.
const QUIET: &str = "h2 hyper hyper_rustls hyper_util kube kube_client kube_core kube_runtime mio \
    rustls tokio tokio_util tower tower_http";

/// `--v`, which may change while the process runs. Clones share it.
#[derive(Clone)]
pub(crate) struct Verbosity(Arc<AtomicU8>);

impl Verbosity {
    pub(crate) fn new(verbosity: u8) -> Self {
        Self(Arc::new(AtomicU8::new(verbosity)))
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// From now on, also for call sites that `tracing` remembers as silent.
    pub(crate) fn set(&self, verbosity: u8) {
        self.0.store(verbosity, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }
}

/// Verbosity limits of the flags.
pub(crate) struct Threshold {
    verbosity: Verbosity,
    modules: Box<[(String, u8)]>,
}

impl Threshold {
    pub(crate) fn new(verbosity: Verbosity, modules: &[(String, u8)]) -> Self {
        Self { verbosity, modules: modules.into() }
    }

    /// Whether anything from this call site can be heard.
    pub(crate) fn admits(&self, site: &Metadata<'_>) -> bool {
        floor(site) <= self.at(site)
    }

    /// Whether an event with this `v` is heard. Warnings and errors are, whatever their `v`.
    pub(crate) fn admits_event(&self, site: &Metadata<'_>, v: u8) -> bool {
        let v = if *site.level() <= Level::WARN { 0 } else { v };
        v.max(floor(site)) <= self.at(site)
    }

    /// The most detailed level any site can be heard at.
    pub(crate) fn level_hint(&self) -> LevelFilter {
        let modules = self.modules.iter().map(|(_, verbosity)| *verbosity);
        match modules.fold(self.verbosity.get(), u8::max) {
            0..=3 => LevelFilter::INFO,
            4..=5 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        }
    }

    /// The verbosity that holds for a site.
    fn at(&self, site: &Metadata<'_>) -> u8 {
        let verbosity = self.verbosity.get();
        if self.modules.is_empty() {
            return verbosity;
        }
        let Some(name) = site.file().and_then(|file| module_file(file, site.module_path())) else {
            return verbosity;
        };
        let named = self.modules.iter().find(|(pattern, _)| matches(pattern, name));
        named.map_or(verbosity, |(_, raised)| verbosity.max(*raised))
    }
}

/// The verbosity that a level stands for.
pub(crate) fn of_level(level: Level) -> u8 {
    match level {
        Level::TRACE => 6,
        Level::DEBUG => 4,
        _ => 0,
    }
}

/// The verbosity from which a site can be heard at all.
fn floor(site: &Metadata<'_>) -> u8 {
    let origin = site.target().split("::").next().unwrap_or_default();
    match (QUIET.split(' ').any(|name| name == origin), *site.level()) {
        (true, Level::TRACE) => DEPENDENCY_TRACES,
        (true, _) => DEPENDENCIES,
        (false, level) => of_level(level),
    }
}

/// What `--vmodule` calls a file. `mod.rs` and `lib.rs` say nothing, so their module does.
fn module_file<'a>(file: &'a str, module: Option<&'a str>) -> Option<&'a str> {
    match Path::new(file).file_stem()?.to_str()? {
        "mod" | "lib" => module?.rsplit("::").next(),
        stem => Some(stem),
    }
}

/// Whether `name` matches `pattern`, where `*` is any run of characters and `?` any one.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut seen) = (0, 0);
    // Where to go back to: behind the last star, and how much of the name that star has taken.
    let mut star: Option<(usize, usize)> = None;
    while seen < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, seen));
                at += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == name[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((behind, taken)) => {
                    star = Some((behind, taken + 1));
                    at = behind;
                    seen = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&rest| rest == b'*')
}

#[cfg(test)]
mod tests {
    use super::{matches, *};

    #[test]
    fn a_file_is_called_by_its_stem_or_by_its_module_when_the_stem_says_nothing() {
        let named = |file, module| module_file(file, Some(module));
        assert_eq!(named("pkg/serving/src/server.rs", "serving::server"), Some("server"));
        assert_eq!(named("pkg/serving/src/health/mod.rs", "serving::health"), Some("health"));
        assert_eq!(named("pkg/serving/src/lib.rs", "serving"), Some("serving"));
    }

    #[test]
    fn the_level_hint_follows_the_most_talkative_module() {
        let hint = |verbosity, module| {
            Threshold::new(Verbosity::new(verbosity), &[("x".to_owned(), module)]).level_hint()
        };
        assert_eq!(hint(0, 0), LevelFilter::INFO);
        assert_eq!(hint(3, 4), LevelFilter::DEBUG);
        assert_eq!(hint(6, 0), LevelFilter::TRACE);
    }

    #[test]
    fn stars_and_question_marks_match_as_in_file_names() {
        for (pattern, name, expected) in [
            ("server", "server", true),
            ("server", "servers", false),
            ("serv*", "server", true),
            ("*er", "server", true),
            ("s*v*r", "server", true),
            ("se?ver", "server", true),
            ("?", "", false),
            ("*", "", true),
            ("*x*", "server", false),
            ("a*b", "aab", true),
            ("", "server", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }
}
