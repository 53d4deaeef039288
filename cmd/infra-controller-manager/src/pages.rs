//! The pages about the process itself: its configuration, flags and state, and the level of its log; and
//! what `/metrics` shows of it: feature gates, the version, and which label values are allowed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::future::ready;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use http::header::ACCEPT;
use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;
use prometheus::Registry;
use resilience::wall_now;
use serde_json::{Value, json};
use serving::{Access, Exposition, Page, PageRequest, Pages, Reply, reply};
use tokio::time::Instant;
use tracing::info;

use super::build;
use super::flags::label_values;
use super::settings::Shown;

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting \
                       compatibility guarantees and is for debugging purposes only.";

/// More than any verbosity has digits.
const VERBOSITY_BYTES: usize = 32;

/// Content of the pages.
pub(crate) struct Facts<'a> {
    pub(crate) shown: &'a Shown,
    pub(crate) version: &'a str,
    /// Controllers that run here, or will when this process leads.
    pub(crate) controllers: Vec<&'static str>,
}

/// Adds those that are wanted. `set_verbosity` sets the level of the log, or says that it cannot.
pub(crate) fn add(
    pages: &Pages,
    facts: &Facts<'_>,
    set_verbosity: impl Fn(u8) -> bool + Send + Sync + 'static,
) {
    let Facts { shown, version, .. } = *facts;
    let config = config(facts);
    pages.add(page("/configz", move |_| reply::json(StatusCode::OK, config.clone())));
    if shown.flagz {
        let flags = shown.flags.clone();
        pages.add(page("/flagz", move |request| flagz(request, &flags)));
    }
    if shown.statusz {
        let status = Status {
            began: wall_now(),
            clock: Instant::now(),
            version: version.to_owned(),
            paths: Box::new(pages.paths()),
        };
        pages.add(page("/statusz", move |request| statusz(request, &status)));
    }
    if shown.profiling {
        let verbosity = move |request: &PageRequest| verbosity(request, &set_verbosity);
        pages.add(page("/debug/flags/v", verbosity).with_body_limit(VERBOSITY_BYTES));
    }
}

/// A page that answers at once.
fn page(path: &str, answer: impl Fn(&PageRequest) -> Reply + Send + Sync + 'static) -> Page {
    Page::new(path, Access::Authorized, move |request| ready(answer(&request)))
}

fn config(facts: &Facts<'_>) -> String {
    let Facts { shown, controllers, .. } = facts;
    json!({build::PRODUCT: {"controllers": controllers, "flags": object(&shown.flags)}}).to_string()
}

fn object(flags: &[(&'static str, String)]) -> Value {
    flags.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
}

fn flagz(request: &PageRequest, flags: &[(&'static str, String)]) -> Reply {
    match Form::wanted(&request.headers, "Flagz") {
        Some(Form::Text) => {
            let mut text = heading("flagz");
            for (name, value) in flags {
                writeln!(text, "{name}:{value}").ok();
            }
            reply::text(StatusCode::OK, text)
        }
        Some(Form::Json) => document("Flagz", json!({"flags": object(flags)})),
        None => refused("Flagz"),
    }
}

/// What `/statusz` tells.
struct Status {
    began: Timestamp,
    clock: Instant,
    version: String,
    paths: Box<dyn Fn() -> Vec<String> + Send + Sync>,
}

fn statusz(request: &PageRequest, status: &Status) -> Reply {
    let paths = (status.paths)();
    let up = status.clock.elapsed().as_secs();
    match Form::wanted(&request.headers, "Statusz") {
        Some(Form::Text) => {
            let began = status.began.strftime("%a %b %e %H:%M:%S UTC %Y");
            let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
            let text = format!(
                "{}Started: {began}\nUp: {hours} hr {minutes:02} min {seconds:02} sec\n\
                 Rust version: {}\nBinary version: {}\nPaths: {}\n",
                heading("statusz"),
                build::INFO.rustc,
                status.version,
                paths.join(" ")
            );
            reply::text(StatusCode::OK, text)
        }
        Some(Form::Json) => document(
            "Statusz",
            json!({
                "startTime": status.began.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                "uptimeSeconds": up,
                "binaryVersion": status.version,
                "paths": paths,
            }),
        ),
        None => refused("Statusz"),
    }
}

fn heading(page: &str) -> String {
    format!("\n{} {page}\n{WARNING}\n\n", build::PRODUCT)
}

fn document(kind: &str, mut fields: Value) -> Reply {
    fields["kind"] = json!(kind);
    fields["apiVersion"] = json!("config.k8s.io/v1beta1");
    fields["metadata"] = json!({"name": build::PRODUCT});
    reply::json(StatusCode::OK, fields.to_string())
}

fn verbosity(request: &PageRequest, set: impl Fn(u8) -> bool) -> Reply {
    if request.method != Method::PUT {
        return reply::text(StatusCode::NOT_ACCEPTABLE, "unsupported http method\n");
    }
    let text = String::from_utf8_lossy(&request.body);
    let Ok(verbosity) = text.trim().parse::<u8>() else {
        let message = "the body must be a number from 0 to 255\n";
        return reply::text(StatusCode::BAD_REQUEST, message);
    };
    if !set(verbosity) {
        let message = "the environment variable RUST_LOG sets the log level; unset RUST_LOG\n";
        return reply::text(StatusCode::BAD_REQUEST, message);
    }
    info!(verbosity, peer = %request.peer.address, "Log verbosity changed");
    let message = format!("successfully set klog.logging.verbosity to {verbosity}\n");
    reply::text(StatusCode::OK, message)
}

/// A form that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Json,
}

impl Form {
    /// The first one acceptable. JSON is a document of a version, so that it must be named:
    /// `application/json;as=<kind>;v=v1beta1;g=config.k8s.io`.
    fn wanted(headers: &HeaderMap, kind: &str) -> Option<Self> {
        let Some(accepted) = headers.get(ACCEPT) else { return Some(Self::Text) };
        let accepted = accepted.to_str().unwrap_or_default().to_ascii_lowercase();
        accepted.split(',').find_map(|range| Self::of(range, &kind.to_ascii_lowercase()))
    }

    fn of(range: &str, kind: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        match parts.next()? {
            "text/plain" | "text/*" | "*/*" => Some(Self::Text),
            "application/json" => {
                let named: Vec<&str> = parts.collect();
                let needed = [&format!("as={kind}"), "v=v1beta1", "g=config.k8s.io"];
                needed.iter().all(|part| named.contains(part)).then_some(Self::Json)
            }
            _ => None,
        }
    }
}

/// The answer to who accepts neither.
fn refused(kind: &str) -> Reply {
    let message = format!(
        "only the following media types are accepted: text/plain, \
         application/json;as={kind};v=v1beta1;g=config.k8s.io"
    );
    reply::failure(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", &message)
}

/// Registers `kubernetes_feature_enabled` with these gates: name, stage and value of each.
pub(crate) fn register_features(
    registry: &Registry,
    features: &[(&'static str, &'static str, bool)],
) -> Result<(), prometheus::Error> {
    let help =
        "[BETA] Whether a feature gate is on, for the gates that change what this program does.";
    let name = "kubernetes_feature_enabled";
    let enabled = metrics::gauge(registry, name, help, &["name", "stage"])?;
    for (name, stage, is_on) in features {
        enabled.with_label_values(&[name, stage]).set(i64::from(*is_on));
    }
    Ok(())
}

/// Registers `version_info`: this program emulates no other version.
pub(crate) fn register_version(
    registry: &Registry,
    version: &str,
) -> Result<(), prometheus::Error> {
    let labels = ["binary", "component", "emulation", "min_compat"];
    let help = "[ALPHA] Version of this program, which is compatible with itself alone.";
    let info = metrics::gauge(registry, "version_info", help, &labels)?;
    let version = version.trim_start_matches('v');
    info.with_label_values(&[version, super::build::PRODUCT, version, version]).set(1);
    Ok(())
}

/// With what the file says of labels that no flag names.
pub(crate) async fn with_manifest(
    mut exposition: Exposition,
    manifest: Option<&Path>,
) -> Result<Exposition> {
    let Some(path) = manifest else { return Ok(exposition) };
    let told = || format!("cannot use --allow-metric-labels-manifest={}", path.display());
    let text = tokio::fs::read_to_string(path).await.with_context(told)?;
    let pairs: BTreeMap<String, String> = serde_saphyr::from_str(&text).with_context(told)?;
    let of_file = label_values(pairs).map_err(|message| anyhow!(message)).with_context(told)?;
    for (label, values) in of_file {
        exposition.label_values.entry(label).or_insert(values);
    }
    Ok(exposition)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod feature_tests {
    use prometheus::TextEncoder;

    use super::*;

    #[test]
    fn each_gate_has_its_stage_and_value() {
        let registry = Registry::new();
        register_features(&registry, &[("Off", "ALPHA", false), ("On", "BETA", true)]).unwrap();
        let page = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                r#"kubernetes_feature_enabled{name="Off",stage="ALPHA"} 0"#,
                r#"kubernetes_feature_enabled{name="On",stage="BETA"} 1"#,
            ]
        );
    }
}

#[cfg(test)]
mod exposition_tests {
    use super::*;

    #[tokio::test]
    async fn flags_take_precedence_over_the_file_and_an_invalid_file_is_reported() {
        let path = std::env::temp_dir().join(format!("icm-labels-{}", std::process::id()));
        let ask = async |text: &str| {
            std::fs::write(&path, text).unwrap();
            let label_values = label_values([("a,b".to_owned(), "1".to_owned())]).unwrap();
            let exposition = Exposition { label_values, ..Exposition::default() };
            with_manifest(exposition, Some(&path)).await
        };
        let both = ask("a,b: \"2\"\nc,d: x,y\n").await.unwrap();
        let shown: Vec<_> = both.label_values.iter().collect();
        assert_eq!(format!("{shown:?}"), r#"[(("a", "b"), {"1"}), (("c", "d"), {"x", "y"})]"#);
        for bad in ["[", "a: 1", "a,b: {}"] {
            let told = format!("{:#}", ask(bad).await.unwrap_err());
            assert!(told.starts_with("cannot use --allow-metric-labels-manifest=/"), "{told}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(with_manifest(Exposition::default(), Some(&path)).await.is_err());
    }
}
