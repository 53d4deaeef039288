//! Facts about owners: nodes that hold CIDRs, service ranges, nodes that come and go. Each script
//! is one row of a table.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use cidr::{Change, IpNet, Ledger, Pool, canonical, parse};

fn net(text: &str) -> IpNet {
    parse(text).unwrap()
}

/// One step of a row. Owners are names; CIDRs are text.
#[derive(Debug)]
enum Step {
    /// The owner is seen with these CIDRs.
    Holds(&'static str, &'static [&'static str]),
    /// The owner is given exactly these CIDRs.
    Gets(&'static str, &'static [&'static str]),
    /// The allocation failed: a pool is exhausted.
    Starves(&'static str),
    /// The owner is gone.
    Gone(&'static str),
    /// This many blocks of the first pool are used.
    Used(u128),
}
use Step::{Gets, Gone, Holds, Starves, Used};

type Row = (&'static str, &'static [(&'static str, u8)], &'static [Step]);

const ROWS: &[Row] = &[
    (
        "a block that two hold is used until both are gone",
        &[("10.42.0.0/16", 24)],
        &[
            Holds("five", &["10.42.5.0/24"]),
            Used(1),
            Holds("nine", &["10.42.9.0/24"]),
            Used(2),
            Holds("wide", &["10.42.8.0/22"]),
            Used(5),
            Holds("other nine", &["10.42.9.0/24"]),
            Used(5),
            Gone("nine"),
            Used(5),
            Gone("other nine"),
            Used(5),
            Gone("wide"),
            Used(1),
        ],
    ),
    (
        "a service range inside the pool is skipped",
        &[("127.123.234.0/24", 30)],
        &[Holds("service", &["127.123.234.0/26"]), Gets("a", &["127.123.234.64/30"])],
    ),
    (
        "a service range and held blocks are skipped together",
        &[("127.123.234.0/24", 30)],
        &[
            Holds("service", &["127.123.234.0/26"]),
            Holds("a", &["127.123.234.64/30"]),
            Holds("b", &["127.123.234.68/30"]),
            Holds("c", &["127.123.234.72/30"]),
            Holds("d", &["127.123.234.80/30"]),
            Gets("e", &["127.123.234.76/30"]),
        ],
    ),
    (
        "what is seen twice counts once",
        &[("10.10.0.0/22", 24)],
        &[
            Holds("a", &["10.10.0.0/24"]),
            Holds("b", &["10.10.2.0/24"]),
            Holds("a", &["10.10.0.0/24"]),
            Holds("b", &["10.10.2.0/24"]),
            Used(2),
            Gets("c", &["10.10.1.0/24"]),
            Gets("d", &["10.10.3.0/24"]),
            Starves("e"),
        ],
    ),
    (
        "a freed block goes to who waits",
        &[("127.123.234.0/28", 30)],
        &[
            Gets("a", &["127.123.234.0/30"]),
            Gets("b", &["127.123.234.4/30"]),
            Gets("c", &["127.123.234.8/30"]),
            Gets("d", &["127.123.234.12/30"]),
            Starves("x"),
            Gone("b"),
            Gets("x", &["127.123.234.4/30"]),
        ],
    ),
    (
        "a freed block is reused last",
        &[("10.0.0.0/22", 24)],
        &[
            Gets("a", &["10.0.0.0/24"]),
            Gets("b", &["10.0.1.0/24"]),
            Gets("c", &["10.0.2.0/24"]),
            Gone("a"),
            Gets("d", &["10.0.3.0/24"]),
            Gets("e", &["10.0.0.0/24"]),
        ],
    ),
    (
        "ranges outside the pool have no effect",
        &[("10.1.0.0/16", 24)],
        &[
            Holds("elsewhere", &["10.0.255.0/24"]),
            Holds("also elsewhere", &["10.2.0.0/24"]),
            Used(0),
            Gets("a", &["10.1.0.0/24"]),
        ],
    ),
    (
        "a service range on the first block",
        &[("10.1.0.0/16", 24)],
        &[Holds("service", &["10.1.0.0/24"]), Gets("a", &["10.1.1.0/24"])],
    ),
    (
        "a service range smaller than a block takes the block",
        &[("10.0.0.0/16", 24)],
        &[
            Holds("service", &["10.0.1.128/26"]),
            Gets("a", &["10.0.0.0/24"]),
            Gets("b", &["10.0.2.0/24"]),
        ],
    ),
    (
        "a service range around the pool leaves nothing",
        &[("10.0.0.0/23", 24)],
        &[Holds("service", &["10.0.0.0/21"]), Starves("a")],
    ),
    (
        "a claim smaller than a block takes the block",
        &[("a00::/8", 24)],
        &[Holds("node", &["a00::/86"]), Gets("a", &["a00:100::/24"])],
    ),
    (
        "all families or none",
        &[("10.0.0.0/22", 24), ("fd00::/63", 64)],
        &[
            Gets("node1", &["10.0.0.0/24", "fd00::/64"]),
            Gets("node2", &["10.0.1.0/24", "fd00:0:0:1::/64"]),
            Starves("node3"),
            Used(2),
            Gone("node1"),
            Gets("node3", &["10.0.2.0/24", "fd00::/64"]),
        ],
    ),
    (
        "after a change of mask no block overlaps an old one",
        &[("192.168.0.0/16", 23)],
        &[
            Holds("a", &["192.168.0.0/24"]),
            Holds("b", &["192.168.1.0/24"]),
            Gone("b"),
            Gets("c", &["192.168.2.0/23"]),
        ],
    ),
    (
        "the end of a claim around everything frees what no other claim holds",
        &[("10.244.0.0/22", 24)],
        &[
            Holds("service", &["10.244.0.0/24"]),
            Holds("ok", &["10.244.1.0/24"]),
            Holds("giant", &["10.244.0.0/15"]),
            Used(4),
            Gone("giant"),
            Gets("a", &["10.244.2.0/24"]),
            Gets("b", &["10.244.3.0/24"]),
            Starves("c"),
        ],
    ),
    (
        "a large claim is passed over",
        &[("10.0.0.0/16", 24)],
        &[Holds("half", &["10.0.0.0/17"]), Gets("a", &["10.0.128.0/24"]), Used(129)],
    ),
];

fn perform(ledger: &mut Ledger<&'static str>, step: &Step) -> Result<(), String> {
    let text = |cidrs: &[IpNet]| cidrs.iter().map(canonical).collect::<Vec<_>>();
    let used = ledger.pools()[0].used();
    match *step {
        Holds(owner, cidrs) => {
            let cidrs: Vec<IpNet> = cidrs.iter().map(|cidr| net(cidr)).collect();
            ledger.occupy(&owner, &cidrs);
        }
        Gone(owner) => {
            ledger.release(&owner);
        }
        Gets(owner, expected) => {
            let given = ledger.allocate(&owner).map_err(|error| error.to_string())?;
            if text(&given.cidrs) != expected {
                return Err(format!("got {:?}", given.cidrs));
            }
        }
        Starves(owner) => {
            if let Ok(given) = ledger.allocate(&owner) {
                return Err(format!("got {:?}", given.cidrs));
            }
        }
        Used(expected) if used != expected => return Err(format!("{used} used")),
        Used(_) => {}
    }
    Ok(())
}

#[test]
fn owners_get_and_lose_the_blocks_the_table_says() {
    for (row, pools, steps) in ROWS {
        let pools = pools.iter().map(|&(cidr, mask)| Pool::new(net(cidr), mask, 16).unwrap());
        let mut ledger = Ledger::new(pools.collect());
        for (number, step) in steps.iter().enumerate() {
            perform(&mut ledger, step)
                .unwrap_or_else(|found| panic!("{row}, step {number} {step:?}: {found}"));
        }
    }
}

#[test]
fn a_service_range_at_the_end_leaves_255_blocks() {
    let pool = Pool::new(net("10.1.0.0/16"), 24, 16).unwrap();
    let mut ledger = Ledger::new(vec![pool]);
    ledger.occupy(&0, &[net("10.1.255.0/24")]);
    assert_eq!((1..=256).filter(|owner| ledger.allocate(owner).is_ok()).count(), 255);
}

#[test]
fn the_changes_add_up_to_the_counters() {
    let pool = Pool::new(net("10.0.0.0/16"), 24, 16).unwrap();
    let mut ledger = Ledger::new(vec![pool]);
    let mut allocations = 0;
    let mut releases = 0;
    let mut count = |change: Change| {
        allocations += change.occupied[0];
        releases += change.freed[0];
        (allocations, releases)
    };
    for owner in 0..256 {
        count(ledger.allocate(&owner).unwrap().change);
    }
    for owner in 0..256 {
        count(ledger.release(&owner));
    }
    assert_eq!(ledger.pools()[0].used(), 0);
    let totals = count(ledger.occupy(&0, &[net("10.0.0.0/16")]).change);
    assert_eq!((totals, ledger.pools()[0].used()), ((512, 256), 256));
}
