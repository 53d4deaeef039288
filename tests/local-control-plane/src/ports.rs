//! Free loopback ports for programs that cannot be handed a listening socket.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use parking_lot::Mutex;

/// Below Linux' range for outgoing connections (32768–60999): otherwise a client of another test
/// could be given the port between the probe here and the program's bind.
const RANGE: std::ops::Range<u16> = 20_000..32_000;
const ATTEMPTS: usize = 10_000;

/// A port without a TCP listener that no test process on this machine gets while this one runs.
///
/// The UDP socket of the same number reserves it, across processes too: test programs run side by
/// side, and a program that is started again needs the same port again.
pub fn free_port() -> u16 {
    static RESERVED: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    for _ in 0..ATTEMPTS {
        let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
        let width = u64::from(RANGE.end - RANGE.start);
        let port = RANGE.start + u16::try_from(random % width).expect("less than the range");
        let Ok(reserved) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) else { continue };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            RESERVED.lock().push(reserved);
            return port;
        }
    }
    panic!("no free port in {RANGE:?} after {ATTEMPTS} tries");
}
