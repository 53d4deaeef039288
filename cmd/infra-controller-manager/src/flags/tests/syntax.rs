use proptest::prelude::*;

use super::super::removed_names;
use super::*;

#[test]
fn a_switch_followed_by_its_value_leaves_a_stray_argument() {
    let message = error(&["--allocate-node-cidrs", "false"]);
    let expected = "\"infra-controller-manager\" does not take any arguments, got [\"false\"]";
    assert_eq!(message, expected);
}

#[test]
fn a_stray_argument_is_one_error_line_that_names_the_help() {
    let error = read(&["prob"]).err().unwrap().to_string();
    assert_eq!(
        error,
        "Error: \"infra-controller-manager\" does not take any arguments, got [\"prob\"]; see --help"
    );
}

#[test]
fn positional_arguments_are_named_and_empty_ones_ignored() {
    assert!(error(&["", "-", "serve"]).ends_with("got [\"-\", \"serve\"]"));
    assert!(error(&["--", "--v=2"]).ends_with("got [\"--v=2\"]"));
    values(&["", "--v=2", ""]);
}

#[test]
fn repetition_replaces_scalars_and_extends_lists() {
    let values = values(&[
        "--kube-api-qps=1",
        "--controllers=a-controller",
        "--cluster-cidr=10.0.0.0/8",
        "--kube-api-qps=2",
        "--controllers",
        "b-controller,*",
        "--cluster-cidr=10.1.0.0/16",
        "--requestheader-username-headers=",
    ]);
    assert!((values.get(&generic::KUBE_API_QPS) - 2.0).abs() < f64::EPSILON);
    assert_eq!(values.get(&generic::CONTROLLERS), ["a-controller", "b-controller", "*"]);
    assert_eq!(shown(&values, "cluster-cidr"), "10.1.0.0/16");
    assert_eq!(shown(&values, "requestheader-username-headers"), "[]");
}

#[test]
fn a_negative_name_in_a_list_is_a_value_and_no_flag() {
    for form in [&["--controllers", "-node-ipam-controller"][..], &["--controllers=-nodeipam,*"]] {
        let values = values(form);
        let known = settings::known(ALL).unwrap();
        let selection = known.select(&values.get(&generic::CONTROLLERS)).unwrap();
        assert!(!selection.is_enabled("node-ipam-controller"), "{form:?}");
    }
}

#[test]
fn every_short_form_of_the_verbosity_is_read() {
    for form in [&["-v", "4"][..], &["-v=4"], &["-v4"], &["--v=4"], &["--v", "4"]] {
        assert_eq!(values(form).get(&table::serving::VERBOSITY), 4, "{form:?}");
    }
}

#[test]
fn a_bare_number_is_no_duration() {
    assert_eq!(shown(&values(&["--min-resync-period=0"]), "min-resync-period"), "0s");
    let expected = "invalid argument \"5\" for \"--min-resync-period\" flag: missing unit in \
                    duration; write 5s, 5m or 5h";
    assert_eq!(error(&["--min-resync-period=5"]), expected);
}

#[test]
fn an_unknown_flag_is_met_with_the_nearest_name() {
    assert_eq!(
        error(&["--kube-api-qs=3"]),
        "unknown flag: --kube-api-qs (did you mean --kube-api-qps?)"
    );
    assert_eq!(
        error(&["--cluster_cird", "x"]),
        "unknown flag: --cluster-cird (did you mean --cluster-cidr?)"
    );
    assert_eq!(error(&["--xyzzy"]), "unknown flag: --xyzzy");
    assert_eq!(
        error(&["-kubeconfig=a"]),
        "unknown shorthand flag: 'k' in -kubeconfig=a (did you mean --kubeconfig?)"
    );
}

#[test]
fn a_flag_that_upstream_removed_is_called_removed() {
    assert_eq!(removed_names().count(), 17);
    for name in removed_names() {
        let message = error(&[&format!("--{}=1", name.replace('-', "_"))]);
        let start = format!("unknown flag: --{name} (kube-controller-manager removed it: ");
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn a_flag_at_the_end_without_its_value_is_named() {
    assert_eq!(error(&["--kubeconfig"]), "flag needs an argument: --kubeconfig");
    assert_eq!(error(&["-v"]), "flag needs an argument: -v");
}

#[test]
fn an_error_comes_after_the_whole_usage_and_a_blank_line() {
    let error = read(&["--xyzzy"]).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("Usage:\n  infra-controller-manager [flags]\n\nDebugging flags:\n"));
    let (usage, last) = error.rsplit_once("\n\n").unwrap();
    assert_eq!(last, "Error: unknown flag: --xyzzy");
    assert!(usage.ends_with("--help=all."));
}

#[test]
fn an_error_is_one_line_whatever_the_argument_holds() {
    for args in [&["--a\nb\r=1"][..], &["a\nb"], &["--kube-api-qps=1\n2"], &["-\n"]] {
        assert_eq!(error(args).lines().count(), 1, "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_no_utf8_is_refused() {
    use std::os::unix::ffi::OsStringExt as _;
    let argument = OsString::from_vec(b"--kubeconfig=\xff".to_vec());
    let message = parsed([argument]).map(|_| ()).unwrap_err().message().to_owned();
    assert!(message.ends_with("is not valid UTF-8"), "{message}");
}

fn argument() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = specs().iter().map(|spec| spec.name).collect();
    prop_oneof![
        "\\PC{0,12}",
        "-{0,3}[a-z_=-]{0,12}",
        "[-+]?[0-9.]{0,6}(s|m|h|Ki)?",
        (proptest::sample::select(names), "=?[-a-z0-9,\":=.*]{0,8}")
            .prop_map(|(name, value)| format!("--{name}{value}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_command_line_makes_the_program_panic(args in proptest::collection::vec(argument(), 0..5)) {
        match parsed(args.into_iter().map(OsString::from)) {
            Ok(Parsed::Run(values)) => {
                let _judged = (validate(&values), warnings(&values), event_rate(&values));
            }
            Ok(Parsed::Print(text)) => prop_assert!(text.ends_with('\n')),
            Err(error) => prop_assert_eq!(error.message().lines().count(), 1),
        }
    }
}
