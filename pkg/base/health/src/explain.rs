//! [`explain`]: the message of a condition, from what is published.

use crate::message::short_line;
use crate::{Endpoints, MESSAGE_MAX, Member, Published, Standing, one_line};

/// The message of the condition about readiness: what was found, how many addresses are down and how
/// long the run of failures is. When that is too long for a message the detail of what was found is
/// cut. It stands in objects until the next heartbeat, so it tells nothing of the next probe.
pub fn explain(member: &Member) -> String {
    let Some(published) = member.published() else { return String::new() };
    let mut rest = endpoints_down(published.endpoints);
    if published.standing != Standing::Ready {
        rest += &run_of_failures(member);
    }
    let mut text = sentence(published);
    if let Some(detail) = &published.detail {
        let taken = text.chars().count() + ": ".len() + rest.chars().count();
        let detail = short_line(detail, MESSAGE_MAX.saturating_sub(taken));
        if !detail.is_empty() {
            text = text + ": " + &detail;
        }
    }
    one_line(&(text + &rest))
}

fn endpoints_down(endpoints: Endpoints) -> String {
    if endpoints.down > 0 && endpoints.total > 1 {
        return format!("; {} of {} API endpoints down", endpoints.down, endpoints.total);
    }
    String::new()
}

fn sentence(published: &Published) -> String {
    match (published.finding, published.standing) {
        (Some(finding), _) => finding.to_string(),
        (None, Standing::Unknown) => "no probe was completed for too long".to_owned(),
        (None, _) => "as published before this process took over".to_owned(),
    }
}

fn run_of_failures(member: &Member) -> String {
    match member.failures() {
        0 => String::new(),
        1 => "; failed once".to_owned(),
        failures => format!("; failed {failures} times in a row"),
    }
}
