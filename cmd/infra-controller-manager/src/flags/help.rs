//! Help and usage text in pflag's layout: one section per group, type and default behind the name,
//! wrapped only when the caller gives a width.

use std::io::IsTerminal as _;

use flags::argv::SHORTHANDS;
use flags::controllers::Known;
use flags::{FlagSupport, Kind, Spec, Value};
use rustix::termios::tcgetwinsize;

use super::{rates, table};
use crate::controllers::commands;

/// Sections in kube-controller-manager's order. Groups not listed belong to hosted controllers and
/// come where `CONTROLLERS` says.
const ORDER: [&str; 12] = [
    "debugging",
    "leader-migration",
    "generic",
    "secure serving",
    "authentication",
    "authorization",
    CONTROLLERS,
    "metrics",
    "logs",
    "misc",
    "global",
    table::ACCEPTED_GROUP,
];
const CONTROLLERS: &str = "(controllers)";

/// Minimum width of descriptions right of the names. With less, descriptions of all groups go below the
/// names.
const NARROWEST: usize = 48;
const INDENT_BELOW: usize = 10;

/// Everything help speaks about.
pub(super) struct Help<'a> {
    pub(super) specs: &'a [&'static Spec],
    pub(super) controllers: &'a Known,
    pub(super) product: &'a str,
    /// Flags without effect are shown, too.
    pub(super) all: bool,
}

impl Help<'_> {
    /// For `--help`: what the program is, then the usage.
    pub(super) fn full(&self, width: Option<usize>) -> String {
        let about = format!(
            "{} runs infrastructure controllers of Kubernetes: it assigns pod CIDRs to Nodes, reports \
             the health of the member clusters of TKEStack, KubeFed, ClusterProfiles and Cluster API, \
             and reconciles clusters of Cluster API with their network on AWS. It accepts every flag of kube-controller-manager, \
             and replaces its node-ipam-controller.",
            self.product
        );
        let about = wrapped(&about, width, 0).join("\n");
        let Self { product, .. } = self;
        let example = format!(
            "\nExample:\n  {product} --kubeconfig=/etc/kubernetes/controller-manager.conf \\\n    \
             --use-service-account-credentials --secure-port=10267 --allocate-node-cidrs \\\n    \
             --cluster-cidr=10.244.0.0/16 --service-cluster-ip-range=10.96.0.0/12\n"
        );
        let commands = commands_text();
        let sections = self.sections(width);
        format!("{about}\n\nUsage:\n  {product} [flags]\n{commands}{example}{sections}")
    }

    /// Usage line and all flag groups; ends with a line break.
    pub(super) fn usage(&self, width: Option<usize>) -> String {
        format!("Usage:\n  {} [flags]\n{}", self.product, self.sections(width))
    }

    fn sections(&self, width: Option<usize>) -> String {
        let sections: Vec<Section> =
            self.groups().into_iter().filter_map(|group| self.section(group)).collect();
        let widest = sections.iter().map(Section::column).max().unwrap_or_default();
        let below = width.is_some_and(|width| width < widest + NARROWEST);
        let shown: String = sections.iter().map(|section| section.text(width, below)).collect();
        if self.all { shown } else { format!("{shown}\n{}\n", self.folded(width)) }
    }

    /// The line that replaces the flags without effect.
    fn folded(&self, width: Option<usize>) -> String {
        let count = self.shown_of(table::ACCEPTED_GROUP).len();
        let line = format!(
            "{count} more flags of kube-controller-manager are accepted and checked, but have no \
             effect: see --help=all."
        );
        wrapped(&line, width, 0).join("\n")
    }

    fn groups(&self) -> Vec<&'static str> {
        let mut hosted = Vec::new();
        for spec in self.specs {
            if !ORDER.contains(&spec.group) && !hosted.contains(&spec.group) {
                hosted.push(spec.group);
            }
        }
        let place = |group: &'static str| match group {
            CONTROLLERS => hosted.clone(),
            group => vec![group],
        };
        let shown = |group: &&'static str| self.all || *group != table::ACCEPTED_GROUP;
        ORDER.into_iter().filter(shown).flat_map(place).collect()
    }

    /// The flags of a group, in order of name.
    fn shown_of(&self, group: &str) -> Vec<&Spec> {
        let hidden = |spec: &Spec| matches!(spec.support, FlagSupport::Deprecated(_));
        let mut specs: Vec<&Spec> =
            self.specs.iter().copied().filter(|s| s.group == group && !hidden(s)).collect();
        specs.sort_by_key(|spec| spec.name);
        specs
    }

    /// `None` when the group has no flag to show.
    fn section(&self, group: &'static str) -> Option<Section> {
        let specs = self.shown_of(group);
        let rows = specs.iter().map(|spec| (name_column(spec), self.description(spec)));
        let rows: Vec<_> = rows.collect();
        (!rows.is_empty()).then_some(Section { group, rows })
    }

    fn description(&self, spec: &Spec) -> String {
        let default = match Value::read(spec.kind, spec.default) {
            Ok(value) if !value.is_zero() => {
                format!(" (default {})", default_text(spec.kind, &value))
            }
            _ => String::new(),
        };
        let more = match spec.name {
            "controllers" => self.controllers_text(),
            "feature-gates" => format!("\nGates with an effect: {}", rates::described()),
            _ => String::new(),
        };
        format!("{}{default}{more}", spec.help)
    }

    fn controllers_text(&self) -> String {
        let off = self.controllers.controllers().iter().filter(|known| !known.on_by_default);
        let off: Vec<_> = off.map(|known| known.name).collect();
        let (all, off) = (self.controllers.names().join(", "), off.join(", "));
        format!("\nAll controllers: {all}\nOff by default: {off}")
    }
}

/// The commands of the program and of the controllers, in order of name.
fn commands_text() -> String {
    let check = ("check", "Checks before a start whether the program can run with these flags");
    let mut all: Vec<_> = commands().map(|it| (it.name, it.about)).chain([check]).collect();
    all.sort_unstable();
    let line = |(name, about)| format!("  {name:8}  {about}\n");
    let lines: String = all.into_iter().map(line).collect();
    format!("\nCommands, each with its own --help:\n{lines}")
}

fn default_text(kind: Kind, value: &Value) -> String {
    match kind {
        Kind::String | Kind::CidrList => format!("{:?}", value.to_string()),
        _ => value.to_string(),
    }
}

fn capitalised(group: &str) -> String {
    let mut letters = group.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

fn name_column(spec: &Spec) -> String {
    let short = SHORTHANDS.iter().find(|(_, name)| *name == spec.name);
    let short = short.map_or_else(|| "      ".to_owned(), |(letter, _)| format!("  -{letter}, "));
    let separator = if spec.kind == Kind::Bool { "" } else { " " };
    format!("{short}--{}{separator}{}", spec.name, spec.kind.type_name())
}

/// A group of flags: names and descriptions.
struct Section {
    group: &'static str,
    rows: Vec<(String, String)>,
}

impl Section {
    /// The column where descriptions begin.
    fn column(&self) -> usize {
        self.rows.iter().map(|(name, _)| name.len() + 3).max().unwrap_or_default()
    }

    fn text(&self, width: Option<usize>, below: bool) -> String {
        let (mut text, column) =
            (format!("\n{} flags:\n\n", capitalised(self.group)), self.column());
        if self.group == table::ACCEPTED_GROUP {
            let note = "  These flags are checked and have no effect: this program does not run \
                their controllers.";
            text = format!("{text}{}\n\n", wrapped(note, width, 0).join("\n  "));
        }
        for (name, description) in &self.rows {
            text.push_str(&row(name, column, description, width, below));
        }
        text
    }
}

/// The lines of a flag: its name, with the description to the right or below.
fn row(name: &str, column: usize, text: &str, width: Option<usize>, below: bool) -> String {
    let indent = if below { INDENT_BELOW } else { column };
    let lines: Vec<String> = text.lines().flat_map(|line| wrapped(line, width, indent)).collect();
    let margin = format!("\n{:indent$}", "");
    let text = lines.join(&margin);
    if below { format!("{name}{margin}{text}\n") } else { format!("{name:column$}{text}\n") }
}

/// Splits at blanks so that no line goes past `width`, `indent` columns being taken already. A
/// single word may be longer.
fn wrapped(text: &str, width: Option<usize>, indent: usize) -> Vec<String> {
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(indent));
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Where the text goes.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// Columns of the terminal behind a stream; `None` means do not wrap.
pub(super) fn terminal_width(stream: Stream) -> Option<usize> {
    let size = match stream {
        Stream::Stdout if std::io::stdout().is_terminal() => tcgetwinsize(std::io::stdout()),
        Stream::Stderr if std::io::stderr().is_terminal() => tcgetwinsize(std::io::stderr()),
        _ => return None,
    };
    size.ok().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
