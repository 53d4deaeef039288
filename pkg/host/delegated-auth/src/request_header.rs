//! For whom an authenticating proxy speaks (rule:proxies-speak-for-others).

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::RequestHeaders;
use crate::user::User;

impl RequestHeaders {
    /// Whether a proxy may have this common name.
    pub(crate) fn allow(&self, common_name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|name| name == common_name)
    }

    /// Whom the headers name; `None` when they name nobody.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let name = first(headers, &self.user)?;
        let mut user = User { name, ..User::default() };
        user.uid = first(headers, &self.uid).unwrap_or_default();
        user.groups = self.groups.iter().flat_map(|header| values(headers, header)).collect();
        for (header, value) in headers {
            let header = header.as_str();
            for key in self.extra_prefixes.iter().filter_map(|prefix| rest_of(header, prefix)) {
                user.extra.entry(key).or_default().push(text(value.as_bytes()));
            }
        }
        Some(user.authenticated())
    }
}

fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    names.iter().find_map(|name| values(headers, name).next())
}

/// Those that are not empty.
fn values(headers: &HeaderMap, name: &str) -> impl Iterator<Item = String> {
    let values = headers.get_all(name.to_lowercase()).into_iter();
    values.map(|value| text(value.as_bytes())).filter(|value| !value.is_empty())
}

/// What follows the prefix, which proxies escape as in a URL; names of headers are in lower case.
fn rest_of(header: &str, prefix: &str) -> Option<String> {
    let rest = header.strip_prefix(prefix.to_lowercase().as_str())?;
    Some(percent_decode_str(rest).decode_utf8_lossy().into_owned())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
