//! [`explain`]: the message of a condition, from what is published.

use crate::{Member, Moment, Published, Standing, one_line};

/// The message of the condition about readiness: what was found, how many addresses are down, how
/// long the run of failures is and when the next probe comes. Changes of it alone are not worth a
/// write.
pub fn explain(member: &Member, now: &Moment) -> String {
    let Some(published) = member.published() else { return String::new() };
    let mut text = sentence(published);
    if let Some(detail) = &published.detail {
        text.push_str(": ");
        text.push_str(detail);
    }
    let endpoints = published.endpoints;
    if endpoints.down > 0 && endpoints.total > 1 {
        text.push_str(
            &format_args!("; {} of {} API endpoints down", endpoints.down, endpoints.total)
                .to_string(),
        );
    }
    if published.standing != Standing::Ready {
        text += &run_of_failures(member, now);
    }
    one_line(&text)
}

fn sentence(published: &Published) -> String {
    match (published.finding, published.standing) {
        (Some(finding), _) => finding.to_string(),
        (None, Standing::Unknown) => "no probe was completed for too long".to_owned(),
        (None, _) => "as published before this process took over".to_owned(),
    }
}

fn run_of_failures(member: &Member, now: &Moment) -> String {
    let times = match member.failures() {
        0 => return String::new(),
        1 => "once".to_owned(),
        failures => format!("{failures} times in a row"),
    };
    match member.due() {
        Some(due) => {
            let next = now.wall_at(due).strftime("%Y-%m-%dT%H:%M:%SZ");
            format!("; failed {times}, next probe {next}")
        }
        None => format!("; failed {times}"),
    }
}
