//! From flag values to [`Options`]: every rule of the start, without I/O.

#[cfg(feature = "aws")]
mod aws;

use std::time::Duration;

use flags::{Problem, Values};

use crate::flags::{
    CAPI_MODE, CLUSTER_CONCURRENCY, CONCURRENCY_MAX, GENERATE_CLUSTER_CA, NAMESPACE, SYNC_PERIOD,
    WATCH_FILTER,
};

const SYNC_PERIOD_MIN: Duration = Duration::from_secs(10);

#[cfg(feature = "aws")]
pub(crate) use aws::AwsOptions;

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

/// Settings of the controllers.
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
    /// Whether authorities are made.
    pub(crate) generate_ca: bool,
    /// How AWSClusters are kept.
    #[cfg(feature = "aws")]
    pub(crate) aws: AwsOptions,
}

/// Judges the values.
///
/// # Errors
/// Every broken rule, each naming its flag and the cause.
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
    let concurrency = values.get(&CLUSTER_CONCURRENCY);
    if !(1..=CONCURRENCY_MAX).contains(&concurrency) {
        let problem = format!("{concurrency} is not between 1 and {CONCURRENCY_MAX}");
        problems.push(CLUSTER_CONCURRENCY.problem(problem));
    }
    let sync_period = values.get(&SYNC_PERIOD).to_std();
    if sync_period < SYNC_PERIOD_MIN {
        problems.push(SYNC_PERIOD.problem(format!("{sync_period:?} is less than 10s")));
    }
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
        cluster_concurrency: usize::try_from(concurrency).unwrap_or(1),
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
