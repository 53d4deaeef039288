//! Looks for what has outlived its AWSCluster: resources on AWS whose owner is no AWSCluster that
//! there is. They are reported, and left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws::{AwsError, Marked};
use aws_network::listed;
use tokio::time::{MissedTickBehavior, interval};

use super::aws_clusters::AwsClusters;
use super::stored_memory::owner_id;

impl AwsClusters {
    /// Scans all regions in which there is or was an AWSCluster, and those that were asked for,
    /// again and again.
    pub(super) async fn scan_for_leaks(&self, period: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut regions, mut leaks) = (self.options.leak_scan_regions.clone(), Leaks::default());
        loop {
            self.cache.synced().await;
            ticks.tick().await;
            regions.extend(self.regions());
            for region in &regions {
                match self.leaked(region).await {
                    Ok(Some(found)) => log(region, &leaks.news(region, found)),
                    // The living owners are unknown.
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(region, %error, "Cannot look for leaked resources, trying \
                            again at the next scan");
                    }
                }
            }
            self.metrics.leaked(&leaks.counts());
        }
    }

    /// Resources in the region without an owner; `None` while the AWSClusters are not all known.
    /// Only the account of this program is scanned, not those of other identities. One scan reads one
    /// account, also when the credentials change meanwhile.
    async fn leaked(&self, region: &str) -> Result<Option<Vec<Marked>>, AwsError> {
        let before = self.owners();
        let account = self.identities.process.caller(region, None).await?;
        let region = self.identities.process.region_of(region, &account);
        let marked = region.marked(&self.options.owner_tag_key).await?;
        // Those that came meanwhile own something, too.
        let (Some(before), Some(after)) = (before, self.owners()) else { return Ok(None) };
        let lives = |owner: &String| before.contains(owner) || after.contains(owner);
        Ok(Some(marked.into_iter().filter(|it| !lives(&it.owner)).collect()))
    }

    fn regions(&self) -> BTreeSet<String> {
        self.cache.frozen(|all| all.values().map(|it| it.body.spec.region.clone()).collect())
    }

    /// The identities of all AWSClusters; none while their kind is not served.
    pub(super) fn owners(&self) -> Option<BTreeSet<String>> {
        let owners = self
            .cache
            .frozen(|all| all.values().map(|it| owner_id(&it.metadata).to_owned()).collect());
        (!self.cache.is_dormant()).then_some(owners)
    }
}

/// One line for each owner that is gone.
fn log(region: &str, news: &BTreeMap<String, Vec<String>>) {
    for (owner, resources) in news {
        let texts: Vec<_> = resources.iter().map(String::as_str).collect();
        tracing::warn!(region, owner, resources = %listed(&texts), "Found resources on AWS \
            without an AWSCluster");
    }
}

/// Results of the last scan of each region.
#[derive(Debug, Default)]
struct Leaks(BTreeMap<String, BTreeSet<Marked>>);

impl Leaks {
    /// Takes what a scan has found in the place of what an earlier one had, and returns what is
    /// new, by owner.
    fn news(&mut self, region: &str, found: Vec<Marked>) -> BTreeMap<String, Vec<String>> {
        let known = self.0.entry(region.to_owned()).or_default();
        let found = BTreeSet::from_iter(found);
        let mut news = BTreeMap::<_, Vec<_>>::new();
        for Marked { owner, kind, id } in found.difference(known) {
            news.entry(owner.clone()).or_default().push(format!("{kind} {id}"));
        }
        *known = found;
        news
    }

    /// How many there are of each kind; none before a region was scanned.
    fn counts(&self) -> Vec<(&'static str, usize)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let count = |kind| self.0.values().flatten().filter(|it| it.kind == kind).count();
        Marked::KINDS.into_iter().map(|kind| (kind, count(kind))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::OWNER_ID_ANNOTATION;

    fn marked(owner: &str, kind: &'static str, id: &str) -> Marked {
        Marked { owner: owner.to_owned(), kind, id: id.to_owned() }
    }

    #[test]
    fn a_leak_is_reported_once_and_counted_as_long_as_it_is_there() {
        let mut leaks = Leaks::default();
        assert!(leaks.counts().is_empty(), "nothing is known before a scan");
        let (vpc, nat) = (marked("a", "vpc", "vpc-1"), marked("b", "nat_gateway", "nat-1"));
        let news = leaks.news("r", vec![vpc.clone(), nat.clone()]);
        let named = |owner: &str, text: &str| (owner.to_owned(), vec![text.to_owned()]);
        let all = [named("a", "vpc vpc-1"), named("b", "nat_gateway nat-1")];
        assert_eq!(news, BTreeMap::from(all));
        assert_eq!(leaks.news("r", vec![vpc.clone(), nat]), BTreeMap::new());
        leaks.news("other", vec![marked("a", "vpc", "vpc-2")]);
        let count = |leaks: &Leaks, wanted: &str| {
            leaks.counts().into_iter().find(|(kind, _)| *kind == wanted).unwrap().1
        };
        assert_eq!((count(&leaks, "vpc"), count(&leaks, "nat_gateway")), (2, 1));
        leaks.news("r", vec![vpc]);
        assert_eq!((count(&leaks, "vpc"), count(&leaks, "nat_gateway")), (2, 0));
    }

    #[test]
    fn an_owner_is_known_by_its_first_uid() {
        let read = |annotations: serde_json::Value| {
            let metadata = serde_json::json!({"name": "a", "namespace": "ns", "uid": "second",
                "resourceVersion": "1", "annotations": annotations});
            owner_id(&serde_json::from_value(metadata).unwrap()).to_owned()
        };
        assert_eq!(read(serde_json::json!({OWNER_ID_ANNOTATION: "first"})), "first");
        assert_eq!(read(serde_json::json!({})), "second");
    }
}
