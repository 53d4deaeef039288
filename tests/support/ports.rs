//! Free loopback ports for programs that cannot be handed a listening socket.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};

use parking_lot::Mutex;

/// Below Linux' range for outgoing connections (32768–60999): otherwise a client of another test
/// could be given the port between our look and the program's bind.
const RANGE: std::ops::Range<u16> = 20_000..32_000;
const ATTEMPTS: usize = 10_000;

/// A port nothing listened on a moment ago and which this process has not handed out before.
/// Another process may still win it; whoever starts a program with it retries or reports that.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<Option<HashSet<u16>>> = Mutex::new(None);
    let mut given = GIVEN.lock();
    let given = given.get_or_insert_default();
    for _ in 0..ATTEMPTS {
        let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
        let width = u64::from(RANGE.end - RANGE.start);
        let port = RANGE.start + u16::try_from(random % width).expect("less than the range");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() && given.insert(port) {
            return port;
        }
    }
    panic!("no free port in {RANGE:?} after {ATTEMPTS} tries");
}
