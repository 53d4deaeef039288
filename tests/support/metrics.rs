//! A page of metrics in Prometheus' text format, as far as tests ask about it.

/// One parsed page.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Vec<Sample>);

#[derive(Debug, Clone)]
struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Metrics {
    /// Reads a page; comments and lines that are no samples are skipped.
    pub fn parse(page: &str) -> Self {
        Self(page.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect())
    }

    /// The sum over the samples of this name that carry all these labels; `None` without any.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let carries = |sample: &Sample, (name, value): &(&str, &str)| {
            sample.labels.iter().any(|(n, v)| n == name && v == value)
        };
        self.0
            .iter()
            .filter(|sample| sample.name == name && labels.iter().all(|l| carries(sample, l)))
            .map(|sample| sample.value)
            .reduce(std::ops::Add::add)
    }

    /// Labels and value of every sample of this name.
    pub fn samples(&self, name: &str) -> impl Iterator<Item = (&[(String, String)], f64)> {
        let named = self.0.iter().filter(move |sample| sample.name == name);
        named.map(|sample| (sample.labels.as_slice(), sample.value))
    }

    /// The names on the page, sorted, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.iter().map(|sample| sample.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn sample(line: &str) -> Option<Sample> {
    let name_end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while let Some((label, after)) = rest.split_once("=\"") {
            let (value, after) = quoted(after)?;
            labels.push((label.to_owned(), value));
            rest = after.trim_start_matches(',');
            if rest.starts_with('}') {
                break;
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some(Sample { name: name.to_owned(), labels, value })
}

/// Reads up to the closing quote: the text, and what follows the quote.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    loop {
        match chars.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => value.push(match chars.next()?.1 {
                'n' => '\n',
                escaped => escaped,
            }),
            (_, plain) => value.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Metrics;

    #[test]
    fn samples_are_found_by_name_and_labels_and_summed() {
        let page = Metrics::parse(
            "# HELP a text\na{x=\"1\",y=\"q\\\"},{\"} 2\na{x=\"1\",y=\"r\"} 3\nb 4.5e0\nc{} NaN\n",
        );
        assert_eq!(page.value("a", &[("x", "1")]), Some(5.0));
        assert_eq!(page.value("a", &[("y", "q\"},{")]), Some(2.0));
        assert_eq!(page.value("a", &[("x", "2")]), None);
        assert_eq!(page.value("b", &[]), Some(4.5));
        assert_eq!(page.names(), ["a", "b", "c"]);
    }
}
