use super::*;

fn paths(patterns: &[&str]) -> OpenPaths {
    OpenPaths::new(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>())
}

#[test]
fn open_paths_are_exact_unless_they_end_in_a_star() {
    let open = paths(&["/healthz", "livez", "/debug/*", ""]);
    for path in ["/healthz", "/livez", "/debug/", "/debug/a/b"] {
        assert!(open.cover(path), "{path}");
    }
    for path in ["/healthz/", "/healthz/ping", "/readyz", "/debug", "/", "/metrics"] {
        assert!(!open.cover(path), "{path}");
    }
    assert!(paths(&["/*"]).cover("/anything"));
    assert!(!paths(&[]).cover("/healthz"));
}

#[test]
fn readers_of_metrics_are_users_and_groups() {
    let names = ["prometheus", "group:system:monitoring"].map(str::to_owned);
    let readers = MetricsReaders::new(&names);
    let user = |name: &str, group: &str| User {
        name: name.to_owned(),
        groups: vec![group.to_owned()],
        ..User::default()
    };
    assert!(readers.include(&user("prometheus", "a")));
    assert!(readers.include(&user("b", "system:monitoring")));
    assert!(!readers.include(&user("system:monitoring", "prometheus")));
    assert!(!readers.include(&user("group:system:monitoring2", "b")));
}

#[test]
fn paths_of_metrics_do_not_include_their_neighbours() {
    for (path, expected) in
        [("/metrics", true), ("/metrics/slis", true), ("/metricsx", false), ("/", false)]
    {
        assert_eq!(is_metrics(path), expected, "{path}");
    }
}
