//! The debug page: every cluster with its last probe, its counters and its next probe. A table for
//! people; JSON for programs that ask for it by `Accept` or `?format=json`. With thousands of
//! clusters, `?name=`, `?state=` and `?flavour=` narrow it down and `?limit=` says how many are
//! shown.

mod query;
mod row;
mod table;

use std::sync::Arc;

use health::Standing;
use http::StatusCode;
use http::header::ACCEPT;
use serde::Serialize;
use serving::{PageRequest, Reply, reply};

use super::cluster_registry::{ClusterRegistry, HeldBack};
use super::flavour::Cluster;
use super::flavour::now;
use super::member_cluster::MemberCluster;
use query::Query;
use row::Row;

/// What to do about too many.
const NARROWER: &str =
    "narrow them down with ?name=, ?state= or ?flavour=, or show all with ?limit=0";

/// Below the table, in an audit.
const AUDITING: &str =
    "\nAuditing: nothing is written. STORED is what an object says that lastingly differs.\n";

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
pub(crate) fn answer(fleet: &ClusterRegistry, request: &PageRequest) -> Reply {
    let query = match Query::parse(request.uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(problem) => return reply::text(StatusCode::BAD_REQUEST, format!("{problem}\n")),
    };
    let accepts = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let as_json = query.json || accepts.is_some_and(|it| it.contains("application/json"));
    let listing = list(fleet, &query);
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
    let audit = if fleet.audit { AUDITING } else { "" };
    let text = table::of(&listing.clusters, fleet.audit) + &hidden + audit;
    reply::text(StatusCode::OK, text)
}

/// A cluster of this replica, or of another one, or one that is not probed yet.
enum Found {
    Own(Arc<MemberCluster>),
    Elsewhere(&'static str, Cluster),
    HeldBack(&'static str, HeldBack),
}

impl Found {
    fn place(&self) -> (&'static str, Arc<str>) {
        match self {
            Self::Own(member) => (member.flavour.name(), Arc::clone(&member.cluster.key)),
            Self::Elsewhere(flavour, cluster) => (flavour, Arc::clone(&cluster.key)),
            Self::HeldBack(flavour, held) => (flavour, Arc::clone(&held.cluster.key)),
        }
    }

    fn published(&self) -> Option<Standing> {
        let Self::Own(member) = self else { return None };
        member.view(|it| it.member.published().map(|it| it.standing))
    }
}

fn list(fleet: &ClusterRegistry, query: &Query) -> Listing {
    let others = fleet.elsewhere().into_iter();
    let others = others.map(|(flavour, cluster)| Found::Elsewhere(flavour, cluster));
    let held = fleet.held_back().into_iter();
    let held = held.map(|(flavour, held)| Found::HeldBack(flavour, held));
    let own = fleet.all().into_iter().map(Found::Own);
    let mut found: Vec<Found> = own.chain(others).chain(held).collect();
    found.retain(|found| {
        let (flavour, key) = found.place();
        query.matches(flavour, &key, found.published())
    });
    found.sort_by_cached_key(Found::place);
    let now = now();
    let row = |found: &Found| match found {
        Found::Own(member) => Row::of(member, fleet, &now),
        Found::Elsewhere(flavour, cluster) => Row::elsewhere(flavour, cluster, fleet),
        Found::HeldBack(flavour, held) => Row::held_back(flavour, held),
    };
    let clusters = found.iter().take(query.limit).map(row).collect();
    Listing { auditing: fleet.audit, total: found.len(), clusters }
}
