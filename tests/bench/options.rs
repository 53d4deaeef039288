//! The command line of the benchmark.

use anyhow::Context as _;

use crate::cases::{Case, Load, Pools, Server, Throttle};
use crate::contender::{Contender, Identity};

/// The text of `--help`.
pub(crate) const HELP: &str = "\
Measures how Nodes get their pod CIDRs: the product, stock kube-controller-manager and a bare loop of
PATCHes, in turn, on one API server. One JSON line per run on standard output; progress and the table
of medians on standard error.

  --runs N               runs of each contender in each case (5)
  --cases A,B            existing-N, join-RATExSECONDS (Nodes per second), defaults-N (throttle flags
                         not given), cluster-cidrs-NxM (N Nodes and M ClusterCIDRs with selectors, for
                         the product alone: each Node has to be placed as a naive model says)
                         (existing-1000,existing-5000,existing-20000,join-200x20,
                         join-500x10,defaults-1000; existing-100000 takes a quarter of an hour a run).
                         With -50kb at the end the Nodes of existing and join have 50 KB, as they have
                         after months in a large cluster. With double- before them a double of the API
                         server has the Nodes, which makes them as they are read: more of them than etcd
                         can hold. Only the product assigns there, without throttle; raw is the bare read
                         of the list. -json and -pages at the end say how the double is read.
                         double-ipv6-N takes blocks of /64 from fd00::/44: up to a million Nodes.
                         double-takeover-N measures from the Lease that a warm standby wins to its first
                         PATCH, with N Nodes that have a CIDR and one that waits
  --contenders A,B       of product, stock, raw (all); raw lists all Nodes, throws the list away and then
                         sends the PATCHes, only where Nodes exist beforehand
  --identity WHO         controller-manager: kubeadm's user, working through the service account
                         node-controller; or admin: a certificate in system:masters
                         (controller-manager)
  --quick                a smoke test: one run, a few hundred Nodes
  -h, --help             this text

The product is built from this checkout, with --release when this program was, or taken from
$ICM_BINARY when that is set.
";

/// What to measure, and how.
#[derive(Debug)]
pub(crate) struct Options {
    /// Runs of each contender in each case.
    pub(crate) runs: usize,
    /// The cases, in order.
    pub(crate) cases: Vec<Case>,
    /// The user whose credentials the contenders have.
    pub(crate) identity: Identity,
    contenders: Vec<Contender>,
}

/// The request on the command line.
#[derive(Debug)]
pub(crate) enum Request {
    /// Print [`HELP`].
    Help,
    /// Measure.
    Measure(Options),
}

impl Options {
    /// The contenders of a case, in the order of their turns.
    pub(crate) fn contenders_of(&self, case: &Case) -> Vec<Contender> {
        let takes_part = |contender: &Contender| match contender {
            // Under its default throttle stock takes 48 s per 1,000 Nodes.
            Contender::Product => true,
            Contender::Raw if case.is_on_double() => {
                matches!(
                    (case.load, case.server),
                    (Load::Existing(_), Server::Double { pages: false, .. })
                )
            }
            Contender::Stock if case.is_on_double() => false,
            Contender::Stock => case.pools == Pools::Flags,
            Contender::Raw => {
                case.throttle == Throttle::Lifted
                    && case.pools == Pools::Flags
                    && matches!(case.load, Load::Existing(_))
            }
        };
        self.contenders.iter().copied().filter(takes_part).collect()
    }

    /// Whether a contender takes part at all.
    pub(crate) fn needs(&self, contender: Contender) -> bool {
        self.cases.iter().any(|case| self.contenders_of(case).contains(&contender))
    }

    /// Whether a case needs etcd and kube-apiserver.
    pub(crate) fn needs_control_plane(&self) -> bool {
        self.cases.iter().any(|case| !case.is_on_double())
    }
}

/// Reads the arguments after the program's name.
pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> anyhow::Result<Request> {
    let mut arguments = arguments.flat_map(|argument| match argument.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => vec![flag.to_owned(), value.to_owned()],
        _ => vec![argument],
    });
    let (mut runs, mut cases, mut quick) = (None, None, false);
    let mut options = Options {
        runs: 5,
        cases: Vec::new(),
        identity: Identity::ControllerManager,
        contenders: vec![Contender::Product, Contender::Stock, Contender::Raw],
    };
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "-h" | "--help" => return Ok(Request::Help),
            "--quick" => quick = true,
            "--runs" => runs = Some(value()?.parse().context("--runs is not a number")?),
            "--cases" => cases = Some(list(&value()?)?),
            "--contenders" => options.contenders = list(&value()?)?,
            "--identity" => options.identity = value()?.parse()?,
            other => anyhow::bail!("unknown argument {other:?}"),
        }
    }
    options.runs = runs.unwrap_or(if quick { 1 } else { options.runs });
    anyhow::ensure!(options.runs > 0, "--runs is 0: nothing to measure");
    options.cases = match cases {
        Some(cases) => cases,
        None if quick => list(
            "existing-200,existing-50-50kb,join-50x4,double-existing-500-50kb,double-ipv6-500",
        )?,
        None => list(
            "existing-1000,existing-5000,existing-20000,join-200x20,join-500x10,defaults-1000",
        )?,
    };
    Ok(Request::Measure(options))
}

fn list<T: std::str::FromStr<Err = anyhow::Error>>(text: &str) -> anyhow::Result<Vec<T>> {
    text.split(',').map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Options {
        match parse(line.split_whitespace().map(str::to_owned)).unwrap() {
            Request::Measure(options) => options,
            Request::Help => panic!("asked for help"),
        }
    }

    #[test]
    fn the_raw_loop_runs_only_where_nodes_exist_beforehand_and_no_throttle_is_measured() {
        let options = options("--cases=existing-10,join-5x2,defaults-10,cluster-cidrs-10x4");
        let raw: Vec<bool> = options
            .cases
            .iter()
            .map(|case| options.contenders_of(case).contains(&Contender::Raw))
            .collect();
        assert_eq!(raw, [true, false, false, false]);
    }

    #[test]
    fn explicit_runs_and_cases_win_over_quick() {
        let options = options("--quick --runs=3 --cases existing-7");
        assert_eq!((options.runs, options.cases.len()), (3, 1));
    }

    #[test]
    fn an_unknown_argument_a_missing_value_and_an_unknown_contender_are_refused() {
        for line in ["--fast", "--runs", "--runs few", "--runs 0", "--contenders product,others"] {
            assert!(parse(line.split_whitespace().map(str::to_owned)).is_err(), "{line}");
        }
    }
}
