//! The page `/debug/controllers/cluster-health`: every cluster with its last probe, its counters and its next
//! probe. A table for people, whose columns are in `row.rs`; JSON for programs that ask for it by `Accept` or `?format=json`. With thousands of
//! clusters, `?name=`, `?state=` and `?flavour=` narrow it down and `?limit=` says how many are
//! shown.

use std::borrow::Cow;
use std::sync::Arc;

use health::Health;
use http::StatusCode;
use http::header::ACCEPT;
use row::{NOTHING, Row};
use serde::Serialize;
use serving::{PageRequest, Reply, reply};

use super::cluster_registry::{ClusterRegistry, Known};
use super::flavour::now;

mod row;

/// The hint when not all clusters are shown.
const NARROWER: &str =
    "narrow them down with ?name=, ?state= or ?flavour=, or show all with ?limit=0";

/// Below the table, in an audit.
const AUDITING: &str = "\nAudit: no status is written. STORED is the stored health where it differs from the result of the probes.\n";

/// For programs.
#[derive(Serialize)]
struct Listing {
    /// Nothing is written.
    auditing: bool,
    /// Clusters that were asked for; fewer may be shown.
    total: usize,
    clusters: Vec<Row>,
}

/// Answers with the clusters as they are now.
pub(crate) fn answer(clusters: &ClusterRegistry, request: &PageRequest) -> Reply {
    let query = match Query::parse(request.uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(problem) => return reply::text(StatusCode::BAD_REQUEST, format!("{problem}\n")),
    };
    let accepts = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let as_json = query.json || accepts.is_some_and(|it| it.contains("application/json"));
    let listing = list(clusters, &query);
    if as_json {
        return match serde_json::to_vec_pretty(&listing) {
            Ok(body) => reply::json(StatusCode::OK, body),
            Err(error) => reply::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        };
    }
    let hidden = match listing.total - listing.clusters.len() {
        0 => String::new(),
        hidden => format!("\n{hidden} more; {NARROWER}\n"),
    };
    let audit = if clusters.audit { AUDITING } else { "" };
    let text = row::table(&listing.clusters, clusters.audit) + &hidden + audit;
    reply::text(StatusCode::OK, text)
}

fn list(clusters: &ClusterRegistry, query: &Query) -> Listing {
    let mut found = clusters.known();
    found.retain(|(flavour, known)| {
        let published = known.probed().and_then(|member| member.health());
        query.matches(flavour, &known.cluster().key, published)
    });
    found.sort_by_cached_key(|(flavour, known)| (*flavour, Arc::clone(&known.cluster().key)));
    let now = now();
    let row = |(flavour, known): &(&'static str, Known)| match known {
        Known::Probed(member) => Row::of(member, clusters, &now),
        _ => Row::unprobed(flavour, known, clusters.ownership.owner(&known.cluster().uid)),
    };
    let rows = found.iter().take(query.limit).map(row).collect();
    Listing { auditing: clusters.audit, total: found.len(), clusters: rows }
}

/// Rows that are shown unless another number is asked for.
const LIMIT: usize = 500;

/// The filters and the format of a request.
#[derive(Debug, PartialEq, Eq)]
struct Query {
    json: bool,
    /// Part of the name, with its namespace.
    name: String,
    /// Empty for any.
    flavour: String,
    /// Any when it is absent.
    state: Option<&'static str>,
    limit: usize,
}

/// A query that means nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum QueryError {
    #[error("cannot show state {0:?}: use one of {1}")]
    State(String, String),
    #[error("cannot show format {0:?}: use json or table")]
    Format(String),
    #[error("cannot show {0:?} clusters: use a number for limit, 0 for all")]
    Limit(String),
    #[error("cannot use parameter {0:?}: use format, name, flavour, state or limit")]
    Unknown(String),
}

impl Query {
    /// Reads what stands after the question mark.
    fn parse(text: &str) -> Result<Self, QueryError> {
        let (json, name, flavour) = (false, String::new(), String::new());
        let mut query = Self { json, name, flavour, state: None, limit: LIMIT };
        for (key, value) in form_urlencoded::parse(text.as_bytes()) {
            match &*key {
                "format" => query.json = is_json(value)?,
                "name" => query.name = value.into_owned(),
                "flavour" => query.flavour = value.into_owned(),
                "state" => query.state = Some(state(value)?),
                "limit" => query.limit = limit(value)?,
                _ => return Err(QueryError::Unknown(key.into_owned())),
            }
        }
        Ok(query)
    }

    fn matches(&self, flavour: &str, key: &str, published: Option<Health>) -> bool {
        let state = published.map_or(NOTHING, Health::label);
        (self.flavour.is_empty() || self.flavour == flavour)
            && key.contains(&self.name)
            && self.state.is_none_or(|wanted| wanted == state)
    }
}

fn is_json(value: Cow<'_, str>) -> Result<bool, QueryError> {
    match &*value {
        "json" => Ok(true),
        "table" => Ok(false),
        _ => Err(QueryError::Format(value.into_owned())),
    }
}

fn state(value: Cow<'_, str>) -> Result<&'static str, QueryError> {
    let states: Vec<_> = Health::ALL.map(Health::label).into_iter().chain([NOTHING]).collect();
    let found = states.iter().find(|state| **state == value);
    found.copied().ok_or_else(|| QueryError::State(value.into_owned(), states.join(", ")))
}

fn limit(value: Cow<'_, str>) -> Result<usize, QueryError> {
    match value.parse() {
        Ok(0) => Ok(usize::MAX),
        Ok(limit) => Ok(limit),
        Err(_) => Err(QueryError::Limit(value.into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_chooses_by_name_flavour_and_state() {
        let rows = [
            ("", true),
            ("name=ns/", true),
            ("name=other", false),
            ("flavour=kubefed", true),
            ("flavour=tke", false),
            ("state=offline", true),
            ("state=ready", false),
            ("state=nothing", false),
            ("name=one&state=offline&flavour=kubefed&limit=3&format=json", true),
            ("name=ns%2Fone", true),
        ];
        for (text, matches) in rows {
            let query = Query::parse(text).unwrap();
            let found = query.matches("kubefed", "ns/one", Some(Health::Unreachable));
            assert_eq!(found, matches, "{text}");
        }
        assert!(Query::parse("state=nothing").unwrap().matches("kubefed", "ns/one", None));
        assert_eq!(Query::parse("limit=0").unwrap().limit, usize::MAX);
    }

    #[test]
    fn a_query_that_means_nothing_is_refused_with_what_there_is() {
        for (text, told) in [
            (
                "state=Ready",
                "ready, notready, offline, config, unknown, partition, heartbeat-stopped, nothing",
            ),
            ("limit=all", "0 for all"),
            ("format=yaml", "json or table"),
            ("format=JSON", "json or table"),
            ("cluster=a", "format, name, flavour, state or limit"),
        ] {
            let refusal = Query::parse(text).unwrap_err().to_string();
            assert!(refusal.contains(told), "{refusal}");
        }
    }
}
