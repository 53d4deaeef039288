//! [`Zone`]: who has been asked for in a zone lately, and the last list of all its VMs. No I/O.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::call_error::CallError;
use crate::instance::Instance;

/// Where more VMs than this are asked for, one list costs less than a call for each.
const FEW: usize = 20;
/// For so long a VM counts that was asked for: two of the periods in which all are looked at.
const LATELY: Duration = Duration::from_secs(60);

/// What a read of one VM gives.
pub(crate) type Found = Result<Arc<Instance>, CallError>;

/// One zone.
#[derive(Default)]
pub(crate) struct Zone {
    asked: HashMap<Box<str>, Instant>,
    last: Option<List>,
}

struct List {
    begun: Instant,
    vms: Result<HashMap<String, Arc<Instance>>, CallError>,
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

    /// What the last list says of a VM, if it was begun at `not_before` or later. A list that failed
    /// answers those only who had asked before it was begun, at `asked`.
    pub(crate) fn listed(&self, vm: &str, not_before: Instant, asked: Instant) -> Option<Found> {
        let list = self.last.as_ref()?;
        match &list.vms {
            Ok(vms) if list.begun >= not_before => {
                let absent = || CallError::NotFound { what: format!("VM {vm}") };
                Some(vms.get(vm).cloned().ok_or_else(absent))
            }
            Err(error) if list.begun >= asked => Some(Err(error.clone())),
            _ => None,
        }
    }

    /// All VMs of the zone, as a list begun at that moment shows them.
    pub(crate) fn list(&mut self, begun: Instant, vms: Result<Vec<Instance>, CallError>) {
        let by_name = |vms: Vec<Instance>| {
            vms.into_iter().map(|vm| (vm.name.clone(), Arc::new(vm))).collect()
        };
        self.last = Some(List { begun, vms: vms.map(by_name) });
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
        assert!(matches!(found(&zone, "c", begun), Some(Err(CallError::NotFound { .. }))));
        assert_eq!(found(&zone, "a", begun + seconds(1)), None);
    }

    #[test]
    fn a_list_that_failed_answers_those_only_who_had_waited_for_it() {
        let (mut zone, begun) = (Zone::default(), Instant::now());
        zone.list(begun, Err(CallError::Stale));
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
