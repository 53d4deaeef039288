//! Finds the process that probes: the process at the other end of a loopback connection, from
//! `/proc`.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::sleep;

/// Interval between two looks. A younger connection has no owner yet.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The processes that probe, and their connections.
#[derive(Default)]
pub(crate) struct Probers {
    pids: Mutex<Vec<u32>>,
    /// Process by the port of its end of the connection.
    owners: Mutex<HashMap<u16, u32>>,
}

impl Probers {
    /// Adds a process that probes from now on.
    pub(crate) fn add(&self, pid: u32) {
        self.pids.lock().push(pid);
    }

    /// The process that has the connection from this port, once it was looked for.
    pub(crate) fn behind(&self, port: u16) -> Option<u32> {
        self.owners.lock().get(&port).copied()
    }

    /// Follows the connections of the probers until the task is dropped.
    pub(crate) async fn follow(&self) {
        loop {
            self.look();
            sleep(LOOK_EVERY).await;
        }
    }

    /// Updates the owners of ports. Ports of an ended process stay: its connections may be reported late.
    fn look(&self) {
        let ports = ports();
        for pid in self.pids.lock().iter() {
            let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
            let links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
            let found = links.filter_map(|link| {
                let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
                ports.get(inode).copied()
            });
            self.owners.lock().extend(found.map(|port| (port, *pid)));
        }
    }
}

/// The local ports of connected sockets, by inode.
fn ports() -> HashMap<String, u16> {
    const ESTABLISHED: &str = "01";
    let table = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let socket = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let port = u16::from_str_radix(fields.get(1)?.rsplit(':').next()?, 16).ok()?;
        (*fields.get(3)? == ESTABLISHED).then_some(())?;
        Some(((*fields.get(9)?).to_owned(), port))
    };
    table.lines().skip(1).filter_map(socket).collect()
}
