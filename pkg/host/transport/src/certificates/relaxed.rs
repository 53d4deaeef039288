//! [`RelaxedCertificate`]: a certificate in a form that webpki accepts, while its signature is still
//! checked over the original bytes. webpki reads only version 3 and cannot leave the dates out. Used
//! only where Go accepts the certificate. The parser of DER finds the parts of a certificate.

use std::borrow::Cow;

use rustls_pki_types::CertificateDer;

/// `[0] { INTEGER 2 }`, which means version 3.
const VERSION_3: [u8; 5] = [EXPLICIT_0, 3, INTEGER, 1, 2];
/// The longest validity that each form of time can say; webpki knows no time before 1970.
const UTC_ALWAYS: (&[u8], &[u8]) = (b"700101000000Z", b"491231235959Z");
const GENERALIZED_ALWAYS: (&[u8], &[u8]) = (b"19700101000000Z", b"99991231235959Z");

/// A certificate without dates or of another version, with the bytes that were signed.
#[derive(Debug)]
pub(crate) struct RelaxedCertificate {
    der: CertificateDer<'static>,
    /// The bytes that webpki expects the signature to cover, and the bytes that it covers.
    to_be_signed: (Vec<u8>, Vec<u8>),
}

impl RelaxedCertificate {
    /// A certificate of version 1 or 2 as one of version 3 without extensions. None for any other.
    fn as_version_3(der: &CertificateDer<'_>) -> Option<Self> {
        let parts = Parts::of(der)?;
        (!parts.is_version_3(der)).then(|| parts.restate(der, der))
    }

    /// Like [`readable`], with the validity dates removed. `None` for bytes that are no certificate.
    fn without_dates(der: &CertificateDer<'_>) -> Option<Self> {
        let parts = Parts::of(der)?;
        let mut dateless = der.to_vec();
        let [from, to] = parts.dates;
        for (time, always) in [(from, UTC_ALWAYS.0), (to, UTC_ALWAYS.1)] {
            overwrite(&mut dateless, time, UTC_TIME, always);
        }
        for (time, always) in [(from, GENERALIZED_ALWAYS.0), (to, GENERALIZED_ALWAYS.1)] {
            overwrite(&mut dateless, time, GENERALIZED_TIME, always);
        }
        Some(parts.restate(der, &dateless))
    }

    /// The signed bytes, if `message` is their relaxed form.
    pub(crate) fn original_of(&self, message: &[u8]) -> Option<&[u8]> {
        let (relaxed, original) = &self.to_be_signed;
        (relaxed == message).then_some(original)
    }
}

/// Where the parts of a certificate lie that are relaxed.
struct Parts {
    to_be_signed: Element,
    version: Option<Element>,
    serial: Element,
    dates: [Element; 2],
}

impl Parts {
    fn of(der: &[u8]) -> Option<Self> {
        let certificate = expect(der, 0, SEQUENCE).filter(|whole| whole.end == der.len())?;
        let to_be_signed = expect(der, certificate.contents, SEQUENCE)?;
        let version = expect(der, to_be_signed.contents, EXPLICIT_0);
        let serial = version.map_or(to_be_signed.contents, |version| version.end);
        let serial = expect(der, serial, INTEGER)?;
        let algorithm = expect(der, serial.end, SEQUENCE)?;
        let issuer = expect(der, algorithm.end, SEQUENCE)?;
        let validity = expect(der, issuer.end, SEQUENCE)?;
        let from = element(der, validity.contents)?;
        let to = element(der, from.end)?;
        let inside = to.end == validity.end && validity.end <= to_be_signed.end;
        inside.then_some(Self { to_be_signed, version, serial, dates: [from, to] })
    }

    fn is_version_3(&self, der: &[u8]) -> bool {
        self.version.is_some_and(|version| der[version.start..version.end] == VERSION_3)
    }

    /// `changed` as version 3; it differs from `der` in bytes, not in lengths.
    fn restate(&self, der: &[u8], changed: &[u8]) -> RelaxedCertificate {
        let body = [&VERSION_3, &changed[self.serial.start..self.to_be_signed.end]].concat();
        let relaxed = sequence(&body);
        let signature = &der[self.to_be_signed.end..];
        let whole = sequence(&[&relaxed[..], signature].concat());
        let original = der[self.to_be_signed.start..self.to_be_signed.end].to_vec();
        RelaxedCertificate { der: whole.into(), to_be_signed: (relaxed, original) }
    }
}

fn overwrite(der: &mut [u8], time: Element, tag: u8, with: &[u8]) {
    let contents = &mut der[time.contents..time.end];
    if time.tag == tag && contents.len() == with.len() {
        contents.copy_from_slice(with);
    }
}

/// A form of the certificate that webpki reads.
pub fn readable<'a>(certificate: &'a CertificateDer<'a>) -> Cow<'a, CertificateDer<'a>> {
    match RelaxedCertificate::as_version_3(certificate) {
        Some(relaxed) => Cow::Owned(relaxed.der),
        None => Cow::Borrowed(certificate),
    }
}

/// A leaf and its path, relaxed as far as they have to be.
pub(crate) struct Shown<'a> {
    leaf: &'a CertificateDer<'a>,
    path: &'a [&'a CertificateDer<'a>],
    /// The leaf first.
    relaxed: Vec<RelaxedCertificate>,
    any_date: bool,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(
        leaf: &'a CertificateDer<'a>,
        path: &'a [&'a CertificateDer<'a>],
        any_date: bool,
    ) -> Self {
        let relaxed = if any_date {
            std::iter::once(leaf)
                .chain(path.iter().copied())
                .map_while(RelaxedCertificate::without_dates)
                .collect()
        } else {
            // An issuer of version 1 may sign nothing, as in Go.
            RelaxedCertificate::as_version_3(leaf).into_iter().collect()
        };
        Self { leaf, path, relaxed, any_date }
    }

    pub(crate) fn relaxed(&self) -> &[RelaxedCertificate] {
        &self.relaxed
    }

    pub(crate) fn leaf(&self) -> CertificateDer<'_> {
        match self.relaxed.first() {
            Some(relaxed) => borrowed(&relaxed.der),
            None => borrowed(self.leaf),
        }
    }

    pub(crate) fn others(&self) -> Vec<CertificateDer<'_>> {
        if self.any_date {
            self.relaxed.iter().skip(1).map(|one| borrowed(&one.der)).collect()
        } else {
            self.path.iter().map(|der| borrowed(der)).collect()
        }
    }
}

fn borrowed<'a>(der: &'a CertificateDer<'_>) -> CertificateDer<'a> {
    CertificateDer::from(&**der)
}

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
