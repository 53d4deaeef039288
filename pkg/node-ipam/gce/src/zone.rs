//! [`Zone`]: the VMs of a zone that were requested lately, and the last list of all its VMs. No I/O.
//!
//! [`Readings`]: reads one VM, or lists the whole zone when more than 20 different VMs were requested
//! within a minute: 100 Nodes in a zone cost one list per period and not 100 calls.

#[cfg(test)]
mod readings_tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::client::Client;
use super::error::GceError;
use super::instance::{Instance, ProviderId};

/// Where more VMs than this are asked for, one list costs less than a call for each.
const FEW: usize = 20;
/// For so long a VM counts that was asked for: two of the periods in which all are looked at.
const LATELY: Duration = Duration::from_secs(60);

/// Result of the read of one VM.
pub(crate) type Found = Result<Arc<Instance>, GceError>;

/// One zone.
#[derive(Default)]
pub(crate) struct Zone {
    asked: HashMap<Box<str>, Instant>,
    last: Option<List>,
}

struct List {
    begun: Instant,
    vms: Result<HashMap<String, Arc<Instance>>, GceError>,
}

impl Zone {
    /// Notes that a VM is asked for; true when there are many in this zone.
    pub(crate) fn ask(&mut self, vm: &str, now: Instant) -> bool {
        self.asked.insert(vm.into(), now);
        if self.asked.len() > FEW {
            self.forget(now);
        }
        self.asked.len() > FEW
    }

    /// Drops what is of no use any more; true when nothing is left.
    pub(crate) fn forget(&mut self, now: Instant) -> bool {
        self.asked.retain(|_, at| now.saturating_duration_since(*at) < LATELY);
        let is_old = |list: &List| now.saturating_duration_since(list.begun) >= LATELY;
        self.last = self.last.take().filter(|list| !is_old(list));
        self.asked.is_empty() && self.last.is_none()
    }

    /// The VM in the last list, if that was begun at `not_before` or later. A list that failed
    /// answers those only who had asked before it was begun, at `asked`.
    pub(crate) fn listed(&self, vm: &str, not_before: Instant, asked: Instant) -> Option<Found> {
        let list = self.last.as_ref()?;
        match &list.vms {
            Ok(vms) if list.begun >= not_before => {
                let absent = || GceError::NotFound { what: format!("VM {vm}") };
                Some(vms.get(vm).cloned().ok_or_else(absent))
            }
            Err(error) if list.begun >= asked => Some(Err(error.clone())),
            _ => None,
        }
    }

    /// All VMs of the zone, as a list begun at that moment shows them.
    pub(crate) fn list(&mut self, begun: Instant, vms: Result<Vec<Instance>, GceError>) {
        let by_name = |vms: Vec<Instance>| {
            vms.into_iter().map(|vm| (vm.name.clone(), Arc::new(vm))).collect()
        };
        self.last = Some(List { begun, vms: vms.map(by_name) });
    }
}

/// Callers that come together wait for each other and count as many.
const GATHER: Duration = Duration::from_millis(50);

/// Reads VMs.
pub struct Readings {
    client: Client,
    zones: SyncMutex<HashMap<String, Arc<Desk>>>,
}

/// Where those wait who ask for VMs of one zone.
#[derive(Default)]
struct Desk {
    zone: SyncMutex<Zone>,
    /// One list at a time.
    listing: Mutex<()>,
}

impl Readings {
    /// Reads by this client.
    pub fn new(client: Client) -> Self {
        Self { client, zones: SyncMutex::default() }
    }

    /// A VM as it was at `not_before` or later.
    ///
    /// # Errors
    /// It is not there, or the call failed.
    pub async fn read(&self, vm: &ProviderId, not_before: Instant) -> Found {
        let desk = self.desk(&vm.zone);
        let asked = Instant::now();
        desk.zone.lock().ask(&vm.instance, asked);
        let listed = |asked| desk.zone.lock().listed(&vm.instance, not_before, asked);
        if let Some(found) = listed(asked).filter(Result::is_ok) {
            return found;
        }
        sleep(GATHER).await;
        if !desk.zone.lock().ask(&vm.instance, Instant::now()) {
            return self.client.instance(vm).await.map(Arc::new);
        }
        let _turn = desk.listing.lock().await;
        if let Some(found) = listed(asked) {
            return found;
        }
        let begun = Instant::now();
        let vms = self.client.instances(&vm.zone).await;
        desk.zone.lock().list(begun, vms);
        listed(asked).unwrap_or_else(|| {
            Err(GceError::unanswered("the list is older than what was asked for"))
        })
    }

    fn desk(&self, zone: &str) -> Arc<Desk> {
        let mut zones = self.zones.lock();
        if let Some(desk) = zones.get(zone) {
            return Arc::clone(desk);
        }
        // Names of zones come from Nodes: there may be any number of them.
        let now = Instant::now();
        zones.retain(|_, desk| Arc::strong_count(desk) > 1 || !desk.zone.lock().forget(now));
        let desk = Arc::<Desk>::default();
        zones.insert(zone.to_owned(), Arc::clone(&desk));
        desk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(name: &str) -> Instance {
        Instance { name: name.into(), ..Instance::default() }
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn many_are_more_than_twenty_different_vms_within_a_minute() {
        let (mut zone, now) = (Zone::default(), Instant::now());
        for _ in 0..100 {
            assert!(!zone.ask("same", now));
        }
        for index in 1..20 {
            assert!(!zone.ask(&index.to_string(), now + seconds(30)), "{index}");
        }
        assert!(zone.ask("20", now + seconds(59)));
        assert!(!zone.ask("20", now + seconds(60)), "the first counts no longer");
    }

    #[test]
    fn a_list_answers_whoever_takes_one_as_old_as_it_is() {
        let (mut zone, begun) = (Zone::default(), Instant::now());
        let found = |zone: &Zone, vm: &str, not_before| {
            zone.listed(vm, not_before, not_before).map(|found| found.map(|vm| vm.name.clone()))
        };
        assert_eq!(found(&zone, "a", begun), None);
        zone.list(begun, Ok(vec![vm("a"), vm("b")]));
        assert_eq!(found(&zone, "a", begun), Some(Ok("a".into())));
        assert!(matches!(found(&zone, "c", begun), Some(Err(GceError::NotFound { .. }))));
        assert_eq!(found(&zone, "a", begun + seconds(1)), None);
    }

    #[test]
    fn a_list_that_failed_answers_those_only_who_had_waited_for_it() {
        let (mut zone, begun) = (Zone::default(), Instant::now());
        zone.list(begun, Err(GceError::Stale));
        let waited = zone.listed("a", begun, begun);
        assert_eq!(waited.map(|found| found.is_err()), Some(true));
        assert!(zone.listed("a", begun, begun + seconds(1)).is_none());
    }

    #[test]
    fn nothing_is_kept_for_longer_than_a_minute() {
        let (mut zone, now) = (Zone::default(), Instant::now());
        zone.ask("a", now);
        zone.list(now, Ok(vec![vm("a")]));
        assert!(!zone.forget(now + seconds(59)));
        assert!(zone.forget(now + seconds(60)));
    }
}
