//! [`Authorities`]: the authority that signs, the one that will, and those that did.

use std::time::{Duration, SystemTime};

use crate::webhook_registration::authority::{Authority, AuthorityError};

/// How long things last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lives {
    /// An authority. The next one is made when a third of it is left.
    pub(crate) authority: Duration,
    /// How long the next authority is known before it is used (`rule:known-before-used`).
    pub(crate) notice: Duration,
    /// A serving certificate. It is renewed when a third of it is left.
    pub(crate) leaf: Duration,
}

impl Default for Lives {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(24 * 3600);
        Self { authority: 365 * DAY, notice: Duration::from_secs(3600), leaf: 30 * DAY }
    }
}

impl Lives {
    /// From when on what lasts so long is renewed.
    pub(crate) fn renewal(until: SystemTime, life: Duration) -> SystemTime {
        until.checked_sub(life / 3).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// Content of the Secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Authorities {
    /// Signs.
    pub(crate) current: Authority,
    /// Will sign.
    pub(crate) next: Option<Authority>,
    /// Certificates of those that signed, and until when they are good.
    pub(crate) previous: Vec<(String, SystemTime)>,
}

impl Authorities {
    /// With one that is new.
    pub(crate) fn make(now: SystemTime, lives: &Lives) -> Result<Self, AuthorityError> {
        let current = Authority::make(now, lives.authority)?;
        Ok(Self { current, next: None, previous: Vec::new() })
    }

    /// The certificates of all of them, in PEM.
    pub(crate) fn bundle(&self) -> String {
        let next = self.next.iter().map(|next| &next.certificate);
        let all = [&self.current.certificate].into_iter().chain(next);
        let all = all.chain(self.previous.iter().map(|(certificate, _)| certificate));
        all.flat_map(|certificate| [certificate.trim_end(), "\n"]).collect()
    }

    /// The authorities to store instead, if a change is due. `is_published` says whether API servers
    /// have the bundle of this.
    pub(crate) fn step(
        &self,
        now: SystemTime,
        lives: &Lives,
        is_published: bool,
    ) -> Result<Option<Self>, AuthorityError> {
        // It signs nothing that anybody would take.
        if self.current.until <= now && self.next.is_none() {
            return Self::make(now, lives).map(Some);
        }
        let mut after = self.clone();
        after.previous.retain(|(_, until)| *until > now);
        let is_known = |next: &mut Authority| is_published && next.made + lives.notice <= now;
        match after.next.take_if(is_known) {
            Some(next) => {
                let before = std::mem::replace(&mut after.current, next);
                after.previous.push((before.certificate, before.until));
            }
            None if after.next.is_none()
                && Lives::renewal(after.current.until, lives.authority) <= now =>
            {
                after.next = Some(Authority::make(now, lives.authority)?);
            }
            None => {}
        }
        Ok((after != *self).then_some(after))
    }
}

#[cfg(test)]
mod tests;
