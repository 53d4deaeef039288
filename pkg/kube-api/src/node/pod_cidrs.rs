//! [`PodCidrs`]: the texts of a Node's pod CIDRs, mostly one, in little memory.

use std::fmt;

/// One text of up to so many bytes, as every IPv4 CIDR is, needs no memory of its own.
const SHORT: usize = 22;

/// Texts as they came: whether each is a CIDR is the reader's question.
#[derive(Clone, PartialEq, Eq)]
pub struct PodCidrs(Texts);

/// A text is kept in one way only, so that equal texts are equal.
#[derive(Clone, PartialEq, Eq)]
enum Texts {
    /// The only text; zeros after it.
    Short { length: u8, bytes: [u8; SHORT] },
    /// All others.
    Long(Box<[Box<str>]>),
}

impl PodCidrs {
    /// True when there is no text at all.
    pub fn is_empty(&self) -> bool {
        matches!(&self.0, Texts::Long(texts) if texts.is_empty())
    }

    /// The texts, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (short, long) = match &self.0 {
            Texts::Short { length, bytes } => {
                (std::str::from_utf8(&bytes[..usize::from(*length)]).ok(), &[][..])
            }
            Texts::Long(texts) => (None, &**texts),
        };
        short.into_iter().chain(long.iter().map(AsRef::as_ref))
    }
}

impl Default for PodCidrs {
    fn default() -> Self {
        Self(Texts::Long(Box::default()))
    }
}

impl<S: AsRef<str>> FromIterator<S> for PodCidrs {
    fn from_iter<I: IntoIterator<Item = S>>(texts: I) -> Self {
        let mut texts = texts.into_iter();
        let (first, second) = (texts.next(), texts.next());
        if let (Some(only), None) = (&first, &second)
            && let Some(short) = Texts::short(only.as_ref())
        {
            return Self(short);
        }
        let all = first.into_iter().chain(second).chain(texts);
        Self(Texts::Long(all.map(|text| text.as_ref().into()).collect()))
    }
}

impl Texts {
    /// None when it is too long.
    fn short(text: &str) -> Option<Self> {
        let mut bytes = [0; SHORT];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self::Short { length: u8::try_from(text.len()).ok()?, bytes })
    }
}

impl fmt::Debug for PodCidrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_out_as_they_went_in_however_long_and_many() {
        let long = "x".repeat(SHORT + 1);
        let umlaut = "ü".repeat(SHORT / 2);
        for texts in [
            vec![],
            vec![""],
            vec!["10.0.0.0/24"],
            vec!["255.255.255.255/32"],
            vec![&*umlaut],
            vec![&long[1..]],
            vec![&*long],
            vec!["10.0.0.0/24", "fd00::/64"],
            vec!["", "", ""],
        ] {
            let kept: PodCidrs = texts.iter().collect();
            assert_eq!(kept.iter().collect::<Vec<_>>(), texts);
            assert_eq!(kept.is_empty(), texts.is_empty());
            assert_eq!(format!("{kept:?}"), format!("{texts:?}"));
            assert_eq!(kept, texts.iter().collect());
        }
    }

    #[test]
    fn one_text_of_an_ipv4_cidr_takes_no_memory_of_its_own() {
        let kept: PodCidrs = ["255.255.255.255/32"].iter().collect();
        assert!(matches!(kept.0, Texts::Short { .. }));
        assert!(size_of::<PodCidrs>() <= 24);
    }

    #[test]
    fn other_texts_are_not_equal() {
        let kept = |texts: &[&str]| texts.iter().collect::<PodCidrs>();
        assert_ne!(kept(&[]), kept(&[""]));
        assert_ne!(kept(&["a"]), kept(&["b"]));
        assert_ne!(kept(&["a"]), kept(&["a\0"]));
        assert_ne!(kept(&["a"]), kept(&["a", "b"]));
    }
}
