use super::*;
use crate::flags::help::Help;

fn at_width(width: Option<usize>) -> String {
    let known = settings::known(ALL).unwrap();
    let specs = specs();
    Help { specs: &specs, controllers: &known, product: VERSION.product, all: true }.usage(width)
}

#[test]
fn flags_without_effect_are_one_line_until_all_is_asked_for() {
    let folded = printed(&["--help"]);
    let flags: Vec<&str> = folded.lines().filter(|line| line.contains("--concurrent-")).collect();
    let own = "      --concurrent-node-cidr-patches ";
    assert!(flags.iter().all(|line| line.starts_with(own)), "{flags:?}");
    let sum = folded.lines().last().unwrap();
    let (count, rest) = sum.split_once(' ').unwrap();
    assert!(count.parse::<usize>().unwrap() > 60 && rest.starts_with("more flags of"), "{sum}");
    assert!(sum.ends_with("see --help=all."), "{sum}");
    let all = printed(&["--help=all"]);
    assert!(all.contains("\n      --concurrent-gc-syncs int32 "), "{all}");
    assert_eq!(all.lines().filter(|line| line.contains("see --help=all")).count(), 0);
    assert!(all.starts_with(folded.split("\nDebugging flags:").next().unwrap()));
}

#[test]
fn help_is_printed_for_both_forms_and_before_stray_arguments() {
    for form in [&["--help"][..], &["-h"], &["stray", "-h"], &["-hv2"]] {
        assert!(printed(form).contains("\nUsage:\n"), "{form:?}");
        assert!(
            printed(form).contains("\nCommands, each with its own --help:\n  beat    "),
            "{form:?}"
        );
    }
    assert_eq!(error(&["--help", "--xyzzy"]), "unknown flag: --xyzzy");
    values(&["--help=false"]);
}

#[test]
fn all_commands_stand_in_the_help() {
    use crate::{check_command, controllers};

    let text = printed(&["--help"]);
    let (_, commands) = text.split_once("\nCommands, each with its own --help:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let named: Vec<_> = commands.map(|line| line.split_whitespace().next().unwrap()).collect();
    let mut all: Vec<_> = controllers::commands().map(|command| command.name).collect();
    all.push(check_command::NAME);
    all.sort_unstable();
    assert_eq!(all.len(), 5);
    assert_eq!(named, all);
}

#[test]
fn groups_stand_in_their_documented_order() {
    let text = at_width(None);
    let headings: Vec<&str> = text.lines().filter(|line| line.ends_with(" flags:")).collect();
    assert_eq!(
        headings,
        [
            "Debugging flags:",
            "Leader-migration flags:",
            "Generic flags:",
            "Secure serving flags:",
            "Authentication flags:",
            "Authorization flags:",
            "Node-ipam-controller flags:",
            "Cluster-health-controller flags:",
            "Validation-webhook-controller flags:",
            "Cluster-api-infrastructure-controller flags:",
            "Metrics flags:",
            "Logs flags:",
            "Misc flags:",
            "Global flags:",
            "Accepted for compatibility flags:",
        ]
    );
}

#[test]
fn a_flag_shows_its_type_and_its_default_unless_zero() {
    let text = at_width(None);
    let line = |start: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(start));
        found.unwrap_or_else(|| panic!("no line starts with {start}")).to_owned()
    };
    assert!(line("--leader-elect-lease-duration duration ").ends_with("(default 15s)"));
    assert!(line("--leader-elect-resource-lock string ").ends_with("(default \"leases\")"));
    assert!(line("--requestheader-group-headers strings ").ends_with("(default [x-remote-group])"));
    assert!(line("--bind-address ip ").ends_with("(default 0.0.0.0)"));
    assert!(line("--profiling ").ends_with("(default true)"));
    assert!(!line("--node-cidr-mask-size int32 ").contains("(default"));
    assert!(line("-v, --v level ").contains("Log level"));
    assert!(line("-h, --help ").contains("Print this text"));
}

#[test]
fn controllers_are_listed_and_deprecated_flags_are_not() {
    let text = at_width(None);
    assert!(text.contains("All controllers: node-ipam-controller"));
    assert!(text.contains("Off by default: validation-webhook-controller\n"));
    assert!(text.contains(
        "Accepted for compatibility flags:\n\n  These flags are checked and have no effect"
    ));
    assert!(!text.contains("node-sync-period"));
}

#[test]
fn text_is_wrapped_to_the_terminal_only() {
    let longest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest(&at_width(None)) > 150);
    assert!(longest(&at_width(Some(150))) <= 150);
    for width in [80, 100] {
        let narrow = at_width(Some(width));
        assert!(longest(&narrow) <= width);
        for name in ["requestheader-extra-headers-prefix strings", "kubeconfig string"] {
            let name_alone = format!("      --{name}\n          ");
            assert!(narrow.contains(&name_alone), "the text on --{name} stands below");
        }
    }
    for width in 0..30 {
        assert!(!at_width(Some(width)).is_empty());
    }
}

#[test]
fn version_prints_one_line_and_raw_prints_all() {
    assert_eq!(printed(&["--version"]), "infra-controller-manager v0.1.0\n");
    assert_eq!(printed(&["--version=true", "--kube-api-qps=0"]), printed(&["--version"]));
    let raw = printed(&["--version=raw"]);
    for fact in ["version: v0.1.0\n", "commit: 0123456789abcdef\n", "rustc: 1.95.0\n"] {
        assert!(raw.contains(fact), "{raw}");
    }
    values(&["--version=false"]);
}

#[test]
fn an_override_must_extend_the_real_version() {
    for version in ["v0.1.0", "v0.1.0-corp", "v0.1.0+meta"] {
        let values = values(&[&format!("--version={version}")]);
        assert_eq!(reported_version(&values, &VERSION), version);
    }
    for version in ["v9.0.0", "v0.1.00", "v0.1"] {
        let message = error(&[&format!("--version={version}")]);
        assert!(message.contains("must extend the real version"), "{message}");
    }
    assert_eq!(reported_version(&values(&[]), &VERSION), "v0.1.0");
}
