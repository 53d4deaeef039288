//! [`Inputs`]: everything that a client of a member cluster is made of.

use std::collections::BTreeMap;
use std::fmt;

use ring::digest::{Context, SHA256};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use transport::{Fields, Waived};

use validation::Address;

/// Inputs of a client. Dropping overwrites its secrets, and no `Debug` shows them.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Addresses that answer for the same cluster, in the order in which they are tried.
    pub addresses: Vec<Address>,
    /// PEM certificates that vouch for the server; without any the system's do.
    pub ca: Vec<u8>,
    /// The name that the server's certificate has to have, instead of the host of the address.
    pub server_name: Option<String>,
    /// Bearer token.
    pub token: Option<SecretString>,
    /// Client certificate.
    pub pair: Option<ClientPair>,
    /// On whose behalf requests are made.
    pub impersonate: Option<Impersonation>,
    /// URL of the proxy, whose user and password are secret.
    pub proxy: Option<SecretString>,
    /// Checks of the server's certificate that are left out.
    pub tls: WaivedChecks,
    /// The fields that the message about a refused certificate names; text only, no part of the client.
    pub fields: Fields,
    /// Where a credential that is refused is renewed, for messages. Empty: nothing is known of that.
    pub renewed_in: &'static str,
    /// Whether credentials may go over plain HTTP.
    pub allow_plaintext: bool,
    /// The `User-Agent`.
    pub user_agent: String,
}

/// A client certificate with its chain, and its key, in PEM.
#[derive(Clone, Debug)]
pub struct ClientPair {
    /// Certificate and chain.
    pub certificate: Vec<u8>,
    /// The private key.
    pub key: SecretSlice<u8>,
}

/// On whose behalf requests are made.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// `Impersonate-User`.
    pub user: String,
    /// `Impersonate-Group`.
    pub groups: Vec<String>,
    /// `Impersonate-Extra-<key>`.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The impersonated identity is as secret as its header.
impl fmt::Debug for Impersonation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Impersonation(..)")
    }
}

/// A hash of everything that a client is made of: two clients with the same one are the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Inputs {
    /// The hash of all of it.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut hash = Hash::new();
        hash.list(self.addresses.iter().map(ToString::to_string));
        hash.add(&self.ca);
        hash.add_secret(self.token.as_ref());
        hash.list(self.pair.iter().map(|pair| &pair.certificate));
        hash.list(self.pair.iter().map(|pair| pair.key.expose_secret()));
        if let Some(who) = &self.impersonate {
            hash.add(who.user.as_bytes());
            hash.list(who.groups.iter());
            for (key, values) in &who.extra {
                hash.add(key.as_bytes());
                hash.list(values.iter());
            }
        }
        hash.add_secret(self.proxy.as_ref());
        hash.list(self.tls.names());
        hash.add(&[u8::from(self.allow_plaintext), u8::from(self.impersonate.is_some())]);
        hash.add(self.user_agent.as_bytes());
        hash.list(self.server_name.iter());
        hash.finish()
    }
}

impl Fingerprint {
    /// 64 bits of it, for whoever compares it with the hash of something else.
    pub fn number(&self) -> u64 {
        self.0.iter().take(8).fold(0, |number, &byte| (number << 8) | u64::from(byte))
    }
}

impl fmt::Display for Fingerprint {
    /// The first 8 hexadecimal digits, for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Hashes parts so that no two lists of parts look alike.
struct Hash(Context);

impl Hash {
    fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    fn add(&mut self, part: &[u8]) {
        self.0.update(&part.len().to_le_bytes());
        self.0.update(part);
    }

    fn add_secret(&mut self, part: Option<&SecretString>) {
        self.list(part.into_iter().map(ExposeSecret::expose_secret));
    }

    fn list(&mut self, parts: impl Iterator<Item = impl AsRef<[u8]>>) {
        let mut count: usize = 0;
        for part in parts {
            self.add(part.as_ref());
            count += 1;
        }
        self.0.update(&count.to_le_bytes());
    }

    fn finish(self) -> Fingerprint {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        Fingerprint(bytes)
    }
}

/// Checks that are left out, by the names of `disabledTLSValidations`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaivedChecks {
    /// `SubjectName`: the certificate need not name the host.
    pub subject_name: bool,
    /// `ValidityPeriod`: no certificate of the chain need be valid at this time.
    pub validity_period: bool,
    /// `*`: any certificate will do.
    pub everything: bool,
}

impl WaivedChecks {
    /// The options with these names. Unknown names are left out: they waive nothing.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut options = Self::default();
        for name in names {
            match name {
                "*" => options.everything = true,
                "SubjectName" => options.subject_name = true,
                "ValidityPeriod" => options.validity_period = true,
                _ => {}
            }
        }
        options
    }

    /// The names of what is left out, for logs and metrics.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let named = [
            (self.subject_name, "SubjectName"),
            (self.validity_period, "ValidityPeriod"),
            (self.everything, "*"),
        ];
        named.into_iter().filter_map(|(set, name)| set.then_some(name))
    }

    pub(crate) fn waived(self) -> Waived {
        Waived { name: self.subject_name, dates: self.validity_period }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_by_their_names_and_unknown_names_waive_nothing() {
        let rows: [(&[&str], &[&str]); 4] = [
            (&[], &[]),
            (&["ValidityPeriod", "SubjectName"], &["SubjectName", "ValidityPeriod"]),
            (&["*"], &["*"]),
            (&["subjectname", "All", ""], &[]),
        ];
        for (given, waived) in rows {
            let options = WaivedChecks::from_names(given.iter().copied());
            assert_eq!(options.names().collect::<Vec<_>>(), waived);
        }
    }
}
