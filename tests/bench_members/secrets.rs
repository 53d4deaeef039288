//! Whether the token of the members is shown anywhere: in the logs of the replicas, also of those
//! that have ended, on their pages, in events or in objects.

use anyhow::Context as _;
use tests::Process;
use tests::planted::Planted;

use crate::management::{Management, TOKEN};

const PAGES: [&str; 2] = ["/metrics", "/debug/controllers/cluster-health?format=json&limit=0"];

/// The outputs that are searched for secrets.
pub(crate) struct Secrets {
    planted: Planted,
    /// Outputs that contain a secret.
    shown: Vec<String>,
}

impl Secrets {
    pub(crate) fn new() -> Self {
        let planted = Planted::default();
        planted.plant(TOKEN);
        Self { planted, shown: Vec::new() }
    }

    /// Looks through what a replica has said so far.
    pub(crate) fn look_at(&mut self, replica: &Process) {
        self.look("log", &replica.lines().join("\n"));
    }

    /// Looks through everything, at the end; where it was found.
    pub(crate) async fn found(
        mut self,
        management: &Management,
        replicas: &[Process],
    ) -> anyhow::Result<Vec<String>> {
        for replica in replicas {
            self.look_at(replica);
            for path in PAGES {
                let (status, page) = replica.get(path).await.context("a page does not answer")?;
                // A standby has no cluster to show.
                anyhow::ensure!([200, 503].contains(&status), "{path} answers with {status}");
                self.look(path, &page);
            }
        }
        for what in ["events", "kubefedclusters"] {
            self.look(what, &management.kubectl(&["get", what, "-A", "-o", "json"])?);
        }
        Ok(self.shown)
    }

    fn look(&mut self, place: &str, text: &str) {
        if self.planted.found_in(text).is_some() {
            self.shown.push(place.to_owned());
        }
    }
}
