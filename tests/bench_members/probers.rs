//! Who probes: the process at the other end of a loopback connection, found in `/proc`.

use std::fs;

use parking_lot::Mutex;

/// The processes that probe.
#[derive(Default)]
pub(crate) struct Probers(Mutex<Vec<u32>>);

impl Probers {
    /// Another one probes from now on.
    pub(crate) fn add(&self, pid: u32) {
        self.0.lock().push(pid);
    }

    /// The process that has the connection from this port; `None` when it has ended meanwhile.
    pub(crate) fn behind(&self, port: u16) -> Option<u32> {
        let socket = format!("socket:[{}]", inode(port)?);
        let pids = self.0.lock().clone();
        pids.into_iter().find(|pid| has_open(*pid, &socket))
    }
}

/// Of the socket that is bound to this port and connected.
fn inode(port: u16) -> Option<String> {
    const ESTABLISHED: &str = "01";
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let wanted = format!(":{port:04X}");
    let line = table.lines().skip(1).map(str::split_whitespace).find_map(|fields| {
        let fields: Vec<_> = fields.collect();
        let ours = fields.get(1)?.ends_with(&wanted) && *fields.get(3)? == ESTABLISHED;
        ours.then(|| fields.get(9).map(|inode| (*inode).to_owned()))
    });
    line.flatten()
}

fn has_open(pid: u32, socket: &str) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    let is_it = |link: std::path::PathBuf| link.as_os_str() == socket;
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(is_it))
}
