use super::*;

const FULL: &str = "
checks:
- name: NodesUp
  nodesReady: {}
- name: Kubelets
  selector: tier in (a, b)
  flavours: [tke, capi]
  nodeLeases: {minFresh: 0.7, maxAge: 30s}
  interval: 30s
  timeout: 10s
  failureThreshold: 5
  successThreshold: 2
  gatesReady: true
- name: Metrics
  apiService: {name: v1beta1.metrics.k8s.io}
- name: CoreDNS
  available: {kind: Deployment, namespace: kube-system, name: coredns}
";

fn names(checks: &[Arc<Check>]) -> Vec<&str> {
    checks.iter().map(|check| &*check.name).collect()
}

#[test]
fn a_document_has_defaults_and_selects_members_by_labels_and_flavour() {
    let document = Document::parse(FULL).unwrap();
    let labels = Labels::from([("tier".to_owned(), "a".to_owned())]);
    let (all, ignored) = document.of_member("tke", &labels);
    assert_eq!((names(&all), ignored), (vec!["NodesUp", "Kubelets", "Metrics", "CoreDNS"], 0));
    let defaults = Check {
        name: "NodesUp".into(),
        kind: CheckKind::NodesReady { min_ratio: 0.5 },
        interval: Duration::from_secs(60),
        timeout: Duration::from_secs(5),
        thresholds: Thresholds { failure: 3, success: 1 },
        gates_ready: false,
    };
    assert_eq!(*all[0], defaults);
    let max_age = Duration::from_secs(30);
    let set = Check {
        name: "Kubelets".into(),
        kind: CheckKind::NodeLeases { min_fresh: 0.7, max_age },
        interval: max_age,
        timeout: Duration::from_secs(10),
        thresholds: Thresholds { failure: 5, success: 2 },
        gates_ready: true,
    };
    assert_eq!(*all[1], set);
    for (flavour, labels) in [("kubefed", labels), ("tke", Labels::default())] {
        assert_eq!(
            names(&document.of_member(flavour, &labels).0),
            ["NodesUp", "Metrics", "CoreDNS"]
        );
    }
    let empty = Document::parse("checks: []").unwrap();
    assert_eq!(empty.len(), 0);
}

#[test]
fn a_member_has_eight_checks_at_most_and_a_document_sixteen() {
    let many = |count: usize| {
        let checks = (0..count).map(|number| format!("- {{name: C{number}, nodesReady: {{}}}}\n"));
        Document::parse(&format!("checks:\n{}", checks.collect::<String>()))
    };
    let (checks, ignored) = many(16).unwrap().of_member("tke", &Labels::default());
    assert_eq!((checks.len(), ignored), (8, 8));
    assert_eq!(many(17).unwrap_err(), DocumentError::TooMany(17));
}

#[test]
fn what_cannot_be_used_is_refused_by_its_field() {
    let rows = [
        ("nodesReady: {minRatio: 0}", "nodesReady.minRatio: 0 is not above 0"),
        ("nodesReady: {minRatio: 1.1}", "nodesReady.minRatio: 1.1 is not"),
        ("nodesReady: {minRatio: .nan}", "nodesReady.minRatio: NaN is not"),
        ("nodeLeases: {minFresh: -1}", "nodeLeases.minFresh: -1 is not"),
        ("nodeLeases: {maxAge: 9s}", "nodeLeases.maxAge: 9s is not between 10s and 600s"),
        ("apiService: {name: a/b}", "apiService.name: \"a/b\" is no name"),
        (
            "available: {kind: Deployment, namespace: '', name: a}",
            "available.namespace: \"\" is no name",
        ),
        ("available: {kind: Pod, namespace: a, name: a}", "cannot be read"),
        ("available: {kind: Deployment, group: x, namespace: a, name: a}", "cannot be read"),
        ("nodesReady: {min: 1}", "cannot be read"),
        ("other: {}", "cannot be read"),
        ("interval: 1m", "it needs one of nodesReady"),
        ("nodesReady: {}, nodeLeases: {}", "it needs one of nodesReady"),
        ("nodesReady: {}, interval: 29s", "interval: 29s is not between 30s"),
        ("nodesReady: {}, interval: soon", "interval: "),
        ("nodesReady: {}, timeout: 31s", "timeout: 31s is not between 100ms and 30s"),
        ("nodesReady: {}, failureThreshold: 0", "failureThreshold: 0 is not between 1 and 100"),
        ("nodesReady: {}, successThreshold: 101", "successThreshold: 101 is not"),
        ("nodesReady: {}, flavours: [ocm]", "flavours: \"ocm\" is none of kubefed"),
        ("nodesReady: {}, selector: 'a in b'", "selector: "),
        ("nodesReady: {}, command: [rm]", "cannot be read"),
    ];
    for (fields, expected) in rows {
        let text = format!("checks: [{{name: One, {fields}}}]");
        let error = Document::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{fields}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    for name in ["", "one", "Two-Three", "NodesReady", "Healthy", "EnsureDNS", "É"] {
        let error = Document::parse(&format!("checks: [{{name: '{name}', nodesReady: {{}}}}]"));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(&format!("check 1 ({name:?}): name: ")), "{error}");
    }
    let twice = "checks: [{name: A, nodesReady: {}}, {name: A, nodesReady: {}}]";
    let error = Document::parse(twice).unwrap_err().to_string();
    assert_eq!(error, "check 2 (\"A\"): another check has this name");
    for text in ["", "[]", "checks: 1", "checks: [", "check: []", "\u{0}"] {
        assert!(matches!(Document::parse(text), Err(DocumentError::Form(_))), "{text:?}");
    }
}

#[test]
fn the_checks_are_unknown_until_they_are_read() {
    assert!(ConfiguredChecks::new(false).are_known());
    assert_eq!(ConfiguredChecks::new(false).is_unusable(), None);
    let checks = ConfiguredChecks::new(true);
    assert!(!checks.are_known() && checks.newer_than(0).is_none());
    checks.note_unusable();
    assert!(!checks.are_known() && checks.is_unusable() == Some(true));
    checks.set(Document::parse(FULL).unwrap());
    let (generation, document) = checks.newer_than(0).unwrap();
    assert_eq!((generation, document.len(), checks.are_known()), (1, 4, true));
    assert!(checks.newer_than(1).is_none() && checks.is_unusable() == Some(false));
    checks.note_unusable();
    assert!(checks.newer_than(1).is_none() && checks.is_unusable() == Some(true));
}

#[test]
fn the_sample_can_be_used() {
    #[derive(Deserialize)]
    struct ConfigMap {
        data: BTreeMap<String, String>,
    }
    let sample = include_str!("../../../../../config/samples/cluster-health-checks.yaml");
    let sample: ConfigMap = serde_saphyr::from_str(sample).unwrap();
    assert_eq!(Document::parse(&sample.data["checks.yaml"]).unwrap().len(), 4);
}
