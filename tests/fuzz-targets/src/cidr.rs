//! CIDRs: any text through the parser, and any sequence of operations through a ledger.

pub mod ledger;
mod model;
pub mod parse;
mod script;

/// Texts of every form.
pub(crate) fn texts() -> Vec<Vec<u8>> {
    let texts = [
        "10.0.0.0/24",
        "0.0.0.0/0",
        "255.255.255.255/32",
        "10.1.2.3/8",
        "2001:db8::/32",
        "::ffff:10.0.0.0/104",
        "FD00::1/64",
        "::/0",
        " 10.0.0.0/24 ",
        "10.0.0.0/024",
        "10.0.0/24",
        "10.0.0.0/+24",
        "fe80::1%eth0/64",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// Scripts for every layout of pools.
pub(crate) fn scripts() -> Vec<Vec<u8>> {
    let script = |layout: u8| {
        let mut random = crate::Random(u64::from(layout));
        let mut data = random.bytes(3 + 6 * 12);
        data[0] = layout;
        data
    };
    (0..6).map(script).collect()
}
