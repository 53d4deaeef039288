//! As much of DER as it takes to find the parts of a certificate.

/// One element, by where it lies in the text that it was read from.
#[derive(Clone, Copy)]
pub(crate) struct Element {
    pub(crate) tag: u8,
    pub(crate) start: usize,
    pub(crate) contents: usize,
    pub(crate) end: usize,
}

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const UTC_TIME: u8 = 0x17;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
/// `[0]`, constructed: the version of a certificate.
pub(crate) const EXPLICIT_0: u8 = 0xa0;

/// The element at `start`. None where there is no whole one of at most 16 MiB.
pub(crate) fn element(der: &[u8], start: usize) -> Option<Element> {
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
pub(crate) fn expect(der: &[u8], start: usize, tag: u8) -> Option<Element> {
    element(der, start).filter(|element| element.tag == tag)
}

/// A sequence of `contents`, which are whole elements.
pub(crate) fn sequence(contents: &[u8]) -> Vec<u8> {
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

/// The contents of the two names of a certificate, as it writes them.
pub(crate) struct Names<'a> {
    pub(crate) issuer: &'a [u8],
    pub(crate) subject: &'a [u8],
}

/// The names of a certificate. None for what is no certificate.
pub(crate) fn names(der: &[u8]) -> Option<Names<'_>> {
    let certificate = expect(der, 0, SEQUENCE)?;
    let to_be_signed = expect(der, certificate.contents, SEQUENCE)?;
    let version = expect(der, to_be_signed.contents, EXPLICIT_0);
    let serial = version.map_or(to_be_signed.contents, |version| version.end);
    let serial = expect(der, serial, INTEGER)?;
    let algorithm = expect(der, serial.end, SEQUENCE)?;
    let issuer = expect(der, algorithm.end, SEQUENCE)?;
    let validity = expect(der, issuer.end, SEQUENCE)?;
    let subject = expect(der, validity.end, SEQUENCE)?;
    let contents = |element: Element| der.get(element.contents..element.end);
    Some(Names { issuer: contents(issuer)?, subject: contents(subject)? })
}
