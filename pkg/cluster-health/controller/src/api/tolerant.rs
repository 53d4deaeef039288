//! Readers of what others may have written oddly (`rule:unknown-values-are-read`), and the writer
//! of times.

pub(super) use kube_api::go::null_is_default;

/// For `#[serde(with = "tolerant::time")]`: RFC 3339 as the API writes it, in whole seconds.
pub(super) mod time {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(in crate::api) fn serialize<S: Serializer>(
        time: &Option<Timestamp>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%SZ")),
            None => to.serialize_none(),
        }
    }

    pub(in crate::api) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let text = Option::<Box<str>>::deserialize(from)?;
        Ok(text.and_then(|text| text.parse().ok()))
    }
}
