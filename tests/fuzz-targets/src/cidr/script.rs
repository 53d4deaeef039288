//! Turns bytes into pools and operations, so that the fuzzer and the stable test share one input.
//! Every byte string is a valid script.

use std::net::{Ipv4Addr, Ipv6Addr};

use cidr::{IpNet, Pool};

use super::model::{Owner, bounds};

/// Few enough that owners meet again, with claims that overlap.
const OWNERS: u8 = 6;

/// Bytes of one operation.
const OPERATION: usize = 6;

#[derive(Debug)]
pub(crate) enum Operation {
    Allocate(Owner),
    Occupy(Owner, Vec<IpNet>),
    Release(Owner),
}

/// The layouts by first byte: 0 and 1 are IPv4, 2 and 3 IPv6, 4 and 5 both. Two pools of one family
/// overlap, which no flag allows but the ledger survives.
pub(crate) fn pools(layout: u8, shape: [u8; 2]) -> Vec<Pool> {
    let families: &[bool] = match layout % 6 {
        0 => &[false],
        1 => &[false, false],
        2 => &[true],
        3 => &[true, true],
        4 => &[false, true],
        _ => &[true, false],
    };
    families.iter().zip(shape).map(|(&v6, shape)| pool(v6, shape)).collect()
}

/// A pool of 1 to 64 blocks at the bottom, in the middle or at the top of the address space.
fn pool(v6: bool, shape: u8) -> Pool {
    let bits = shape % 7;
    let place = usize::from(shape / 7 % 3);
    let size = usize::from(shape / 21 % 3);
    let (address, mask) = if v6 {
        let middle = Ipv6Addr::new(0xfd00, 0, 0, 7, 0, 0, 0, 0).to_bits();
        ([0, middle, u128::MAX][place], [64, 112, 128][size])
    } else {
        let middle = Ipv4Addr::new(10, 244, 0, 0).to_bits();
        (u128::from([0, middle, u32::MAX][place]), [24, 26, 32][size])
    };
    Pool::new(net(v6, address, mask - bits), mask, 16).unwrap()
}

fn net(v6: bool, address: u128, length: u8) -> IpNet {
    let address = if v6 {
        Ipv6Addr::from_bits(address).into()
    } else {
        let low = address & u128::from(u32::MAX);
        Ipv4Addr::from_bits(u32::try_from(low).unwrap()).into()
    };
    IpNet::new(address, length).unwrap()
}

pub(crate) fn operations<'a>(
    pools: &'a [Pool],
    data: &'a [u8],
) -> impl Iterator<Item = Operation> + 'a {
    data.chunks_exact(OPERATION).map(move |bytes| {
        let owner = bytes[0] / 8 % OWNERS;
        match bytes[0] % 8 {
            0..=2 => Operation::Allocate(owner),
            3 => Operation::Occupy(owner, vec![cidr(pools, &bytes[1..])]),
            4 => Operation::Occupy(owner, vec![cidr(pools, &bytes[1..]), cidr(pools, &bytes[3..])]),
            5 => Operation::Occupy(owner, Vec::new()),
            _ => Operation::Release(owner),
        }
    })
}

/// A CIDR inside or outside a pool, from wider than the pool to smaller than a block, host bits kept.
pub(crate) fn cidr(pools: &[Pool], bytes: &[u8]) -> IpNet {
    let pool = &pools[usize::from(bytes[0] / 32) % pools.len()];
    let (v6, first, last) = bounds(&pool.cidr());
    let width = pool.family().width();
    let widest = pool.cidr().prefix_len().saturating_sub(2);
    let longest = (pool.mask() + 4).min(width);
    let length = widest + bytes[0] % (longest - widest + 1);
    // From one pool size below the pool to one above it.
    let size = last - first + 1;
    let position = u128::from(u16::from_be_bytes([bytes[1], bytes[2]]));
    let address = first.wrapping_sub(size).wrapping_add((position * size * 3) >> 16);
    net(v6, address, length)
}
