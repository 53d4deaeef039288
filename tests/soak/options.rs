//! The command line of `scripts/soak`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use tests::Allocator;

pub(crate) const HELP: &str = "\
Plays two replicas under all faults at once on a real API server: Nodes come and go, leaders are
killed and stopped, and a proxy draws lost answers, resets, errors, cut and stale watches and frozen
moments from a seed. One JSON line a scene on standard output, progress and a table on standard
error. Exit 1 when a block was doubled, leaked or a Node forgotten, when a process of the product panicked
or ended without a reason, or with --peer when the product served a smaller share of the Nodes during their
life than kube-controller-manager did with the same seed, at the same time and on a control plane of its own.

  --seeds FIRST-LAST  the scenes (1-10)
  --cluster-cidrs     the product takes pod CIDRs from ClusterCIDRs
  --cloud             the product takes pod CIDRs from VMs, which a stub of Google's calls has
  --seconds N         how long the faults of one scene last (60)
  --logs FOLDER       keeps the log of every process there
  --peer              plays every scene with kube-controller-manager too
  -h, --help          this text
";

pub(crate) struct Options {
    pub(crate) seeds: RangeInclusive<u64>,
    pub(crate) length: Duration,
    pub(crate) peer: bool,
    pub(crate) allocator: Allocator,
    pub(crate) logs: Option<PathBuf>,
}

/// Parses the options; `None` when help is requested.
pub(crate) fn parse(
    mut arguments: impl Iterator<Item = String>,
) -> anyhow::Result<Option<Options>> {
    let mut options = Options {
        seeds: 1..=10,
        length: Duration::from_secs(60),
        peer: false,
        allocator: Allocator::Range,
        logs: None,
    };
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "-h" | "--help" => return Ok(None),
            "--logs" => options.logs = Some(value()?.into()),
            "--cloud" => options.allocator = Allocator::Cloud,
            "--cluster-cidrs" => options.allocator = Allocator::MultiCidr,
            "--peer" => options.peer = true,
            "--seconds" => options.length = Duration::from_secs(value()?.parse()?),
            "--seeds" => {
                let text = value()?;
                let (first, last) = text.split_once('-').unwrap_or((&text, &text));
                options.seeds = first.parse()?..=last.parse()?;
            }
            other => anyhow::bail!("unknown argument {other:?}; see --help"),
        }
    }
    Ok(Some(options))
}
