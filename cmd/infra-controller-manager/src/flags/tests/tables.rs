use std::collections::BTreeSet;

use flags::{FlagSupport, Kind};

use super::stock_flags::{OF_AWS, OURS, STOCK};
use super::*;

/// Text that each kind reads, and the effective value it then has.
fn sample(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Bool => ("T", "true"),
        Kind::Int | Kind::Int32 | Kind::Verbosity => ("7", "7"),
        Kind::Float | Kind::Float32 => ("0.25", "0.25"),
        Kind::String | Kind::CidrList => ("some-text", "some-text"),
        Kind::Duration => ("90s", "1m30s"),
        Kind::Ip => ("::1", "::1"),
        Kind::Strings => ("a,\"b,c\"", "[a,\"b,c\"]"),
        Kind::Int32Slice => ("29,23", "[29,23]"),
        Kind::StringMap => ("a=1,b=2", "[a=1,b=2]"),
        Kind::FeatureGates => ("A=true", "A=true"),
        Kind::NamedCertKeys => ("a,b:c", "[a,b:c]"),
        Kind::ComponentVersions => ("kube=1.36", "[kube=1.36]"),
        Kind::Quantity => ("64Ki", "65536"),
        Kind::VModule => ("pool=3", "pool=3"),
        Kind::Version => ("v0.1.0+x", "v0.1.0+x"),
    }
}

/// Text that each kind refuses; texts have none.
fn junk(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::String | Kind::CidrList => None,
        Kind::Strings | Kind::ComponentVersions => Some("\"open"),
        Kind::NamedCertKeys => Some("only-one"),
        _ => Some("junk!"),
    }
}

fn effective(values: &Values, name: &str) -> String {
    let found = values.effective().find(|(flag, _)| *flag == name);
    found.unwrap_or_else(|| panic!("--{name} is not declared")).1
}

#[test]
fn every_stock_flag_exists_with_its_documented_default() {
    let values = values(&[]);
    for (name, default) in STOCK {
        assert_eq!(effective(&values, name), default, "--{name}");
    }
}

#[test]
fn there_is_no_flag_that_is_neither_stock_nor_documented_as_ours() {
    let of_aws = OF_AWS.into_iter().filter(|_| cfg!(feature = "aws"));
    let known: BTreeSet<&str> =
        STOCK.iter().map(|(name, _)| *name).chain(OURS).chain(of_aws).collect();
    let declared: BTreeSet<&str> = specs().iter().map(|spec| spec.name).collect();
    assert_eq!(declared, known);
    assert_eq!(specs().len(), known.len(), "a flag is declared twice");
}

#[test]
fn every_flag_reads_its_forms() {
    for spec in specs().into_iter().filter(|spec| spec.name != "help") {
        let (text, shown) = sample(spec.kind);
        let underscored = spec.name.replace('-', "_");
        let mut forms =
            vec![vec![format!("--{}={text}", spec.name)], vec![format!("--{underscored}={text}")]];
        if spec.kind.bare_value().is_none() {
            forms.push(vec![format!("--{}", spec.name), text.to_owned()]);
        }
        for form in forms {
            let args: Vec<&str> = form.iter().map(String::as_str).collect();
            let values = values(&args);
            assert_eq!(effective(&values, spec.name), shown, "{form:?}");
            assert!(values.is_set(spec.name), "{form:?}");
        }
    }
}

#[test]
fn every_typed_flag_refuses_junk_by_name() {
    for spec in specs() {
        let Some(text) = junk(spec.kind) else { continue };
        let message = error(&[&format!("--{}={text}", spec.name)]);
        let start = format!("invalid argument {text:?} for \"--{}\" flag: ", spec.name);
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn the_defaults_have_neither_problem_nor_warning() {
    let values = values(&[]);
    assert_eq!(validate(&values), []);
    assert_eq!(warnings(&values), [""; 0]);
}

#[test]
fn help_texts_are_sentences_without_defaults() {
    for spec in specs() {
        assert!(spec.help.ends_with('.'), "--{}: {}", spec.name, spec.help);
        assert!(!spec.help.contains("(default"), "--{}: {}", spec.name, spec.help);
    }
}

#[test]
fn authentication_and_authorization_are_enforced() {
    let delegated = |spec: &&Spec| ["authentication", "authorization"].contains(&spec.group);
    let found: Vec<&Spec> = specs().into_iter().filter(delegated).collect();
    assert_eq!(found.len(), 17);
    assert!(found.iter().all(|spec| spec.support == FlagSupport::Honoured));
}

#[test]
fn event_limits_follow_the_work_limits_until_they_are_set() {
    assert_eq!(event_rate(&values(&[])), (500.0, 1000));
    assert_eq!(event_rate(&values(&["--kube-api-qps=20", "--kube-api-burst=30"])), (20.0, 30));
    assert_eq!(event_rate(&values(&["--event-qps=5", "--event-burst=9"])), (5.0, 9));
    assert_eq!(work_rate(&values(&["--event-qps=5"])), (500.0, 1000));
    assert_eq!(work_rate(&values(&["--kube-api-qps=-1", "--kube-api-burst=-1"])), (-1.0, 0));
}

#[test]
fn single_controllers_have_rates_of_their_own() {
    let known = settings::known(ALL).unwrap();
    let given = values(&["--controller-qps=nodeipam=50:100,cluster-health-controller=-1:0"]);
    let expected =
        [("cluster-health-controller", (-1.0, 0)), ("node-ipam-controller", (50.0, 100))];
    assert_eq!(own_rates(&given, &known).unwrap(), expected.into());
    assert!(own_rates(&values(&[]), &known).unwrap().is_empty());
}

#[test]
fn a_dry_run_has_a_lease_of_its_own_unless_one_is_named() {
    let lease = |args: &[&str]| election_config(&values(args), "me".into()).name;
    assert_eq!(lease(&["--dry-run"]), "infra-controller-manager-dry-run");
    assert_eq!(lease(&["--dry-run", "--leader-elect-resource-name=mine"]), "mine");
    assert_eq!(lease(&["--dry-run=false"]), "infra-controller-manager");
}

#[test]
fn a_dry_run_leaves_out_what_needs_to_see_what_it_wrote() {
    let args = ["--dry-run", "--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"];
    let names = |args: &[&str]| {
        let known = settings::known(ALL).unwrap();
        let settings = settings::ProcessSettings::new(&values(args), &known, ALL);
        let settings = settings.unwrap_or_else(|problems| panic!("{problems:?}"));
        let names = settings.controllers.iter().map(|planned| planned.name);
        (names.collect::<Vec<_>>(), settings.idle)
    };
    let (runs, idle) = names(&args);
    assert_eq!(runs, ["node-ipam-controller"]);
    let left = ("cluster-health-controller", "it cannot run with --dry-run".to_owned());
    assert!(idle.contains(&left), "{idle:?}");
    let multi = ["--cidr-allocator-type=MultiCIDRRangeAllocator"];
    assert!(names(&[&args[..], &multi].concat()).0.is_empty(), "ClusterCIDRs get finalizers");
    for kind in ["CloudAllocator", "IPAMFromCluster", "IPAMFromCloud"] {
        let kind = format!("--cidr-allocator-type={kind}");
        let of_cloud = ["--cloud-provider=gce", &kind];
        assert!(names(&[&args[..], &of_cloud].concat()).0.is_empty(), "{kind}: writes to a cloud");
    }
}

#[test]
fn gates_are_shown_with_their_stage_and_what_they_come_to() {
    let shown = features(&values(&["--feature-gates=AllAlpha=true,ComponentFlagz=false"]));
    assert!(shown.contains(&("LoggingAlphaOptions", "ALPHA", true)), "{shown:?}");
    assert!(shown.contains(&("ComponentFlagz", "BETA", false)), "{shown:?}");
    assert!(shown.contains(&("ComponentStatusz", "BETA", true)), "{shown:?}");
}

#[test]
fn the_lease_is_released_on_exit_when_flag_and_gate_agree() {
    const GATE: &str = "--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit";
    assert!(release_on_exit(&values(&[])));
    assert!(!release_on_exit(&values(&["--leader-elect-release-on-exit=false"])));
    assert!(!release_on_exit(&values(&[&format!("{GATE}=false")])));
    assert!(!release_on_exit(&values(&["--feature-gates=AllAlpha=false"])));
    let own_setting_wins = format!("{GATE}=true,AllAlpha=false");
    assert!(release_on_exit(&values(&[&own_setting_wins])));
}
