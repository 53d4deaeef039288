//! As much of DER as it takes to find the parts of a certificate.

/// One element, by where it lies in the text that it was read from.
#[derive(Clone, Copy)]
pub(super) struct Element {
    pub(super) tag: u8,
    pub(super) start: usize,
    pub(super) contents: usize,
    pub(super) end: usize,
}

pub(super) const INTEGER: u8 = 0x02;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
/// `[0]`, constructed: the version of a certificate.
pub(super) const EXPLICIT_0: u8 = 0xa0;

/// The element at `start`. None where there is no whole one of at most 16 MiB.
pub(super) fn element(der: &[u8], start: usize) -> Option<Element> {
    let (&tag, rest) = der.get(start..)?.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (bytes, length) = match first {
        short @ 0..=0x7f => (0, usize::from(short)),
        0x81..=0x83 => {
            let bytes = usize::from(first & 0x7f);
            let digits = rest.get(..bytes)?;
            (bytes, digits.iter().fold(0, |length, &digit| (length << 8) | usize::from(digit)))
        }
        _ => return None,
    };
    let contents = start + 2 + bytes;
    let end = contents.checked_add(length).filter(|&end| end <= der.len())?;
    Some(Element { tag, start, contents, end })
}

/// The element at `start`, if it is a `tag`.
pub(super) fn expect(der: &[u8], start: usize, tag: u8) -> Option<Element> {
    element(der, start).filter(|element| element.tag == tag)
}

/// A sequence of `contents`, which are whole elements.
pub(super) fn sequence(contents: &[u8]) -> Vec<u8> {
    let length = contents.len();
    let mut der = vec![SEQUENCE];
    let bytes = length.to_be_bytes();
    let digits = bytes.iter().position(|&byte| byte != 0).map_or(&[][..], |first| &bytes[first..]);
    if let (..0x80, Ok(short)) = (length, u8::try_from(length)) {
        der.push(short);
    } else {
        der.push(0x80 | u8::try_from(digits.len()).unwrap_or_default());
        der.extend_from_slice(digits);
    }
    der.extend_from_slice(contents);
    der
}
