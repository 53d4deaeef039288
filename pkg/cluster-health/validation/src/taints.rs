//! Taints of a Node that is to be.

use crate::findings::Findings;
use crate::place::Place;

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// `owner` has a list of them.
pub(crate) fn check(owner: &Place<'_>, findings: &mut Findings) {
    for taint in owner.field("taints").items() {
        let (key, effect) = (taint.field("key"), taint.field("effect"));
        if key.is_absent() {
            findings.required(&key, "the name of the taint");
        }
        match effect.text() {
            None => findings.required(&effect, "what the taint does, such as NoSchedule"),
            Some(text) if !EFFECTS.contains(&text) => {
                findings.not_supported(&effect, &effect.shown(), EFFECTS);
            }
            Some(_) => {}
        }
    }
}
