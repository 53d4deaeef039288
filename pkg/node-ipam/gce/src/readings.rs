//! [`Readings`]: answers who asks for one VM, and asks Google for a whole zone where many do
//! (`rule:many-vms-of-a-zone-are-one-list`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex as SyncMutex;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::call_error::CallError;
use crate::client::Client;
use crate::provider_id::ProviderId;
use crate::zone::{Found, Zone};

/// Those who come together are waited for, and are many.
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
            Err(CallError::unanswered("the list is older than what was asked for"))
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
mod tests;
