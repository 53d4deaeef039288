//! [`TlsOptions`]: which checks of the server's certificate an object wants left out.

use transport::Waived;

/// Checks that are left out, by the names of `disabledTLSValidations`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// `SubjectName`: the certificate need not name the host.
    pub subject_name: bool,
    /// `ValidityPeriod`: no certificate of the chain need be valid at this time.
    pub validity_period: bool,
    /// `*`: any certificate will do.
    pub everything: bool,
}

impl TlsOptions {
    /// The options with these names. Names that are none are left out: they waive nothing.
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
            let options = TlsOptions::from_names(given.iter().copied());
            assert_eq!(options.names().collect::<Vec<_>>(), waived);
        }
    }
}
