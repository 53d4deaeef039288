//! Any text through the parser of CIDRs.

use cidr::{Family, IpNet, canonical, parse};

/// Whatever the bytes are, the parser answers; what it accepts has one canonical text, and it
/// accepts whatever the standard library reads as an address and a length.
pub fn reads_or_refuses(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lenient = parse(&text);
    if let Ok(net) = &lenient {
        let written = canonical(net);
        assert_eq!(*net, net.trunc(), "{text:?} keeps host bits");
        assert_eq!(parse(&written).as_ref(), Ok(net), "{text:?} does not survive {written:?}");
        assert_eq!(written, written.to_lowercase(), "{text:?}");
        assert!(net.prefix_len() <= Family::of(net).width(), "{text:?}");
    }
    if let Some(strict) = strict(text.trim()) {
        let lenient = lenient.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let mapped = Family::of(&strict) != Family::of(&lenient);
        assert!(mapped || lenient == strict.trunc(), "{text:?} became {lenient}");
    } else if let Err(error) = lenient {
        assert!(error.to_string().len() < 1024, "{text:?} makes a long message");
    }
}

fn strict(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    let length = if length.starts_with('+') { None } else { length.parse().ok() }?;
    IpNet::new(address.parse().ok()?, length).ok()
}
