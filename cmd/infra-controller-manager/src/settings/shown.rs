//! What the pages about the process show of its command line.

use flags::Values;

use crate::flags::table::observing::PROFILING;
use crate::flags::{features, has_flagz, has_statusz};

/// Which of these pages there are, and what they show.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Name, stage and value of each feature gate.
    pub features: Vec<(&'static str, &'static str, bool)>,
    /// Every flag with its effective value, in order of name: paths and settings, never secrets.
    pub flags: Vec<(&'static str, String)>,
    /// `/flagz` is served.
    pub flagz: bool,
    /// `/statusz` is served.
    pub statusz: bool,
    /// `/debug/flags/v` is served.
    pub profiling: bool,
}

impl Shown {
    pub(super) fn new(values: &Values) -> Self {
        Self {
            features: features(values),
            flags: values.effective().collect(),
            flagz: has_flagz(values),
            statusz: has_statusz(values),
            profiling: values.get(&PROFILING),
        }
    }
}
