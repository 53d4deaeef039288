//! [`explain`]: the message of a condition.

use std::time::Instant;

use crate::one_line::{MESSAGE_MAX, one_line, short_line};
use crate::{Endpoints, Member, Published, Standing};

/// The message of the condition about readiness: what was found, how many addresses are down, how
/// long the run of failures is and when the next probe comes. When that is too long for a message
/// the detail of what was found is cut. It stands in objects until the next heartbeat, so it tells
/// the wait before the next probe and not its time, which would soon be past.
pub fn explain(member: &Member, now: Instant) -> String {
    let Some(published) = member.published() else { return String::new() };
    let mut rest = endpoints_down(published.endpoints);
    if published.standing != Standing::Ready {
        rest += &run_of_failures(member, now);
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

fn run_of_failures(member: &Member, now: Instant) -> String {
    let times = match member.failures() {
        0 => return String::new(),
        1 => "once".to_owned(),
        failures => format!("{failures} times in a row"),
    };
    let Some(due) = member.due() else { return format!("; failed {times}") };
    let seconds = due.saturating_duration_since(now).as_secs_f64();
    format!("; failed {times}, next probe after {seconds:.0}s")
}
