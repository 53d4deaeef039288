//! [`Query`]: which clusters the debug page is asked for.

use std::borrow::Cow;

use health::Standing;

/// Rows that are shown unless another number is asked for.
const LIMIT: usize = 500;
/// The state of a cluster about which nothing was published yet.
pub(super) const NOTHING: &str = "nothing";

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) json: bool,
    /// Part of the name, with its namespace.
    name: String,
    /// Empty for any.
    flavour: String,
    /// Any when it is absent.
    state: Option<&'static str>,
    pub(super) limit: usize,
}

/// A query that means nothing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum QueryError {
    #[error("cannot show state {0:?}: it is not one of {1}")]
    State(String, String),
    #[error("cannot show format {0:?}: it is json, or table for people")]
    Format(String),
    #[error("cannot show {0:?} clusters: limit is a number, 0 for all")]
    Limit(String),
    #[error("cannot tell what {0:?} is for: there are format, name, flavour, state and limit")]
    Unknown(String),
}

impl Query {
    /// Reads what stands after the question mark.
    pub(super) fn parse(text: &str) -> Result<Self, QueryError> {
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

    pub(super) fn matches(&self, flavour: &str, key: &str, published: Option<Standing>) -> bool {
        let state = published.map_or(NOTHING, Standing::label);
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
    let states: Vec<_> = Standing::ALL.map(Standing::label).into_iter().chain([NOTHING]).collect();
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
            let found = query.matches("kubefed", "ns/one", Some(Standing::Offline));
            assert_eq!(found, matches, "{text}");
        }
        assert!(Query::parse("state=nothing").unwrap().matches("kubefed", "ns/one", None));
        assert_eq!(Query::parse("limit=0").unwrap().limit, usize::MAX);
    }

    #[test]
    fn a_query_that_means_nothing_is_refused_with_what_there_is() {
        for (text, told) in [
            ("state=Ready", "ready, notready, offline, config, unknown, nothing"),
            ("limit=all", "0 for all"),
            ("format=yaml", "json, or table"),
            ("format=JSON", "json, or table"),
            ("cluster=a", "format, name, flavour, state and limit"),
        ] {
            let refusal = Query::parse(text).unwrap_err().to_string();
            assert!(refusal.contains(told), "{refusal}");
        }
    }
}
