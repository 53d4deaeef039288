//! The connection, the fence and the end of the attempt compete for the body of one write.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::client::Body;
use loom::thread::spawn;

use crate::request::{Progress, Reach};

/// Whoever is told that a write was not sent is right: the connection does not get its body any more.
pub fn a_body_is_taken_refused_or_given_up_once() {
    crate::explore("C3, C5", "connection, fence, end of the attempt", || {
        let request = Request::patch("/").body(Body::empty()).unwrap();
        let progress = Arc::new(Progress::new(&request, None));
        let (connection, fence) = (Arc::clone(&progress), Arc::clone(&progress));
        let connection = spawn(move || connection.take_body(Duration::from_secs(1)));
        let fence = spawn(move || fence.refuse_body());
        let reach = progress.end();
        let is_settled = progress.settled_at().is_some();
        let is_taken = connection.join().unwrap();
        fence.join().unwrap();
        match reach {
            Reach::NotSent | Reach::Refused => {
                assert!(!is_taken, "sent, and the caller knows {reach:?}");
            }
            Reach::MayHaveLeft(until) => {
                assert!(is_taken && until.is_some() && is_settled, "{until:?}");
            }
        }
        assert_eq!(progress.end(), reach, "the outcome changes");
    });
}
