//! `/metrics` and `/metrics/slis`.

use std::future::ready;
use std::panic::resume_unwind;
use std::sync::Arc;

use http::header::{HeaderName, HeaderValue};
use http::{Method, StatusCode};
use prometheus::{Registry, TextEncoder};
use tokio::task::spawn_blocking;
use tracing::error;

use super::{Exposition, counts, numbers, openmetrics};
use crate::process_metrics::{START_TIME, own_start, process_start};
use crate::{Access, Health, Page, Reply, reply};

pub(super) fn pages(health: &Health, registry: &Registry, exposition: &Exposition) -> [Page; 2] {
    let (health, scraped) = (health.clone(), registry.clone());
    let exposition = Arc::new(exposition.clone());
    [
        Page::new("/metrics", Access::Authorized, move |request| {
            let open = openmetrics::is_wanted(&request.headers);
            metrics(scraped.clone(), exposition.clone(), open)
        }),
        Page::new("/metrics/slis", Access::Authorized, move |request| {
            ready(slis(&health, &request.method))
        }),
    ]
}

/// Rendered beside the runtime: the series of thousands of objects would hold up its only worker.
async fn metrics(registry: Registry, exposition: Arc<Exposition>, open: bool) -> Reply {
    match spawn_blocking(move || {
        resilience::panics::contain_call(|| render(&registry, &exposition, open))
    })
    .await
    {
        Ok(Ok(page)) => page,
        // As if it had happened here, where it is answered and told.
        Ok(Err(panic)) => resume_unwind(Box::new(panic.to_string())),
        Err(_) => reply::text(StatusCode::SERVICE_UNAVAILABLE, "the process is ending\n"),
    }
}

/// `open` is for OpenMetrics.
fn render(registry: &Registry, exposition: &Exposition, open: bool) -> Reply {
    let mut families = registry.gather();
    let start = process_start(&families);
    let counts = counts::of(&families, exposition);
    exposition.limit(&mut families);
    families.extend(counts);
    if open {
        return started(
            reply::with_type(
                StatusCode::OK,
                openmetrics::CONTENT_TYPE,
                openmetrics::text(&families),
            ),
            start,
        );
    }
    match TextEncoder::new().encode_to_string(&families) {
        Ok(text) => prometheus_text(numbers::with_bounds_of_text(&text), start),
        Err(err) => {
            error!(logger = "serving", %err, "Cannot encode metrics");
            reply::text(StatusCode::INTERNAL_SERVER_ERROR, "cannot encode metrics\n")
        }
    }
}

/// What the health checks answered; DELETE starts the counts anew.
fn slis(health: &Health, method: &Method) -> Reply {
    if method == Method::DELETE {
        health.reset_slis();
        return reply::text(StatusCode::OK, "metrics reset\n");
    }
    let start = own_start();
    let process = start.map_or_else(String::new, |start| {
        format!(
            "# HELP {START_TIME} Start of the process in seconds since 1970.\n\
             # TYPE {START_TIME} gauge\n{START_TIME} {start}\n"
        )
    });
    prometheus_text(health.slis() + &process, start)
}

fn prometheus_text(text: String, start: Option<i64>) -> Reply {
    let format = "text/plain; version=0.0.4; charset=utf-8";
    started(reply::with_type(StatusCode::OK, format, text), start)
}

/// With the process start in Unix seconds: scrapers use it to tell a restart from a counter that was
/// reset.
fn started(mut reply: Reply, start: Option<i64>) -> Reply {
    if let Some(start) = start {
        let name = HeaderName::from_static("process-start-time-unix");
        reply.headers_mut().insert(name, HeaderValue::from(start));
    }
    reply
}
