//! What the connections of one proxy share.

use std::sync::Arc;

use super::freeze::Freezer;
use super::recorder::Recorder;
use super::rules::Rules;
use super::streams::Streams;
use super::upstream::Upstream;
use super::wire::Wire;

pub(super) struct State {
    pub(super) rules: Rules,
    pub(super) recorder: Recorder,
    pub(super) streams: Streams,
    pub(super) freezer: Arc<Freezer>,
    pub(super) upstream: Upstream,
    pub(super) wire: Wire,
}

impl State {
    pub(super) fn new(upstream: Upstream, wire: Wire) -> Self {
        Self {
            rules: Rules::default(),
            recorder: Recorder::default(),
            streams: Streams::default(),
            freezer: Arc::default(),
            upstream,
            wire,
        }
    }
}
