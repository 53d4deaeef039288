//! From flag values to [`Options`]: every rule of the start, without I/O.

#[cfg(feature = "aws")]
mod aws;

use std::time::Duration;

use flags::{Problem, Values};

use crate::flags::{
    CAPI_MODE, CLUSTER_CONCURRENCY, GENERATE_CLUSTER_CA, NAMESPACE, SYNC_PERIOD, WATCH_FILTER,
    concurrency, period,
};

#[cfg(feature = "aws")]
pub(crate) use aws::{AwsOptions, environment};

/// Whether this program or Cluster API's own core reconciles Clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// We do where their CRD is ours (`rule:clusters-of-others-are-not-touched`).
    Auto,
    /// We do.
    Standalone,
    /// Cluster API's own core does.
    Provider,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    /// Whether this program or Cluster API's own core reconciles Clusters.
    pub(crate) mode: Mode,
    /// Clusters worked on at once.
    pub(crate) cluster_concurrency: usize,
    /// From look to look.
    pub(crate) sync_period: Duration,
    /// `None` for all.
    pub(crate) namespace: Option<String>,
    /// `None` for all.
    pub(crate) watch_filter: Option<String>,
    pub(crate) generate_ca: bool,
    /// How AWSClusters are kept.
    #[cfg(feature = "aws")]
    pub(crate) aws: AwsOptions,
}

pub(crate) fn judge(values: &Values) -> Result<Options, Vec<Problem>> {
    let mut problems = Vec::new();
    let mode = match &*values.get(&CAPI_MODE) {
        "auto" => Mode::Auto,
        "standalone" => Mode::Standalone,
        "provider" => Mode::Provider,
        other => {
            let problem = format!("{other:?} is not one of auto, standalone, provider");
            problems.push(CAPI_MODE.problem(problem));
            Mode::Auto
        }
    };
    let cluster_concurrency = concurrency(values, &CLUSTER_CONCURRENCY, &mut problems);
    let sync_period = period(values, &SYNC_PERIOD, &mut problems);
    let namespace = values.get(&NAMESPACE);
    if !is_label(&namespace) {
        problems.push(NAMESPACE.problem(format!("{namespace:?} is not the name of a namespace")));
    }
    let watch_filter = values.get(&WATCH_FILTER);
    if !is_label(&watch_filter) {
        let problem = format!("{watch_filter:?} is not the value of a label");
        problems.push(WATCH_FILTER.problem(problem));
    }
    #[cfg(feature = "aws")]
    let aws = aws::judge(values, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Options {
        mode,
        cluster_concurrency,
        sync_period,
        namespace: Some(namespace).filter(|it| !it.is_empty()),
        watch_filter: Some(watch_filter).filter(|it| !it.is_empty()),
        generate_ca: values.get(&GENERATE_CLUSTER_CA),
        #[cfg(feature = "aws")]
        aws,
    })
}

/// Made of what may stand in a selector and in a path.
fn is_label(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests;
