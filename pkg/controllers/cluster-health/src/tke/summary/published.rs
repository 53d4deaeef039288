//! The resources that are published of a cluster. No other is added up: their names are the member's
//! (`rule:lists-of-members-are-bounded`). Pure.

use quantity::{Quantity, Resources};

const NAMES: [&str; 2] = ["cpu", "memory"];

/// Adds what `own` has of them to `sum`.
pub(super) fn add(sum: &mut Resources, own: &Resources) {
    for name in NAMES {
        sum.set(name, sum.get(name) + own.get(name));
    }
}

/// Rounded up, once: processors to thousandths, everything else to whole numbers.
pub(super) fn rounded(sums: &Resources) -> Resources {
    let rounded = |name: &'static str| -> (&'static str, Quantity) {
        let sum = sums.get(name);
        (name, if name == "cpu" { sum.rounded_to_milli() } else { sum.rounded_to_whole() })
    };
    NAMES.into_iter().map(rounded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// rule:lists-of-members-are-bounded
    #[test]
    fn resources_that_are_not_published_are_not_kept() {
        let mut sum = Resources::default();
        for number in 0..100 {
            let invented = format!("invented.example/{number}");
            let own = [("cpu", Quantity::whole(1)), (&*invented, Quantity::whole(1))];
            add(&mut sum, &own.into_iter().collect());
        }
        assert_eq!((sum.get("cpu"), sum.iter().count()), (Quantity::whole(100), NAMES.len()));
    }
}
