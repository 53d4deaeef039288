use std::sync::atomic::{AtomicU32, Ordering};

use prometheus::TextEncoder;

use super::*;

#[test]
fn each_scrape_shows_what_is_read_then_and_families_without_series_are_left_out() {
    let (registry, scrapes) = (Registry::new(), AtomicU32::new(0));
    let families = [
        Family::counter("scrapes_total", "Scrapes.", &[]).unwrap(),
        Family::gauge("absent", "Absent.", &[]).unwrap(),
        Family::gauge("sizes", "Sizes.", &["shape", "colour"]).unwrap(),
    ];
    at_scrape(&registry, families.clone(), move |[counter, _, sizes]| {
        let count = f64::from(scrapes.fetch_add(1, Ordering::Relaxed) + 1);
        [vec![counter.series(&[], count)], vec![], vec![sizes.series(&["round", "red"], 0.5)]]
    })
    .unwrap();
    for count in 1..3 {
        let page = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        let expected = format!(
            "# HELP scrapes_total Scrapes.\n# TYPE scrapes_total counter\nscrapes_total {count}\n\
             # HELP sizes Sizes.\n# TYPE sizes gauge\nsizes{{colour=\"red\",shape=\"round\"}} 0.5\n"
        );
        assert_eq!(page, expected);
    }
    let again = at_scrape(&registry, families, |_| [const { Vec::new() }; 3]);
    assert!(again.is_err(), "the names are registered");
}
