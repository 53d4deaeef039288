//! The command line of the benchmark.

use std::time::Duration;

use anyhow::{Context as _, bail};

/// The text of `--help`.
pub(crate) const HELP: &str = "\
Lets the product watch over simulated member clusters, which one process serves on as many loopback
addresses, at a period of 10 s with a timeout of 3 s. Half-way some members fall silent and come back.
One JSON line on standard output, progress on standard error.

  --members N    member clusters, at most 60000 (10000)
  --silent P     per cent that never answer (10)
  --outage P     per cent that fall silent half-way, for a minute (1)
  --length S     seconds of measuring, at least 180, with --shards 10 (600)
  --shards N     so many replicas of the product share the members and are frozen, stopped and killed in
                 turn meanwhile; --silent and --outage do not go with it (1)
  --rolls N      with --shards, instead: replicas whose leader probes all members are replaced one by one
                 by replicas that share, and those by such ones again, N times; --length is not used (0)
  --checks N     so many checks of each member, one run of each in a minute, at most 3: ready Nodes, Leases of
                 Nodes, a Deployment; a member has 10 Nodes of 4 KiB. Compare the CPU with a run without (0)
  -h, --help     this text

The product is built from this checkout, with --release when this program was, or taken from
$ICM_BINARY when that is set. It needs two file descriptors for each member.
";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) members: u32,
    pub(crate) silent_per_cent: u32,
    pub(crate) outage_per_cent: u32,
    pub(crate) length: Duration,
    pub(crate) shards: u32,
    pub(crate) rolls: u32,
    pub(crate) checks: u32,
}

impl Options {
    /// `None` when help is asked for.
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> anyhow::Result<Option<Self>> {
        let (mut members, mut length, mut shards, mut rolls) = (10_000, 600, 1, 0);
        let mut checks = 0;
        let (mut silent, mut outage) = (None, None);
        let mut arguments = arguments.flat_map(|argument| match argument.split_once('=') {
            Some((flag, value)) => vec![flag.to_owned(), value.to_owned()],
            None => vec![argument],
        });
        while let Some(flag) = arguments.next() {
            let place = match flag.as_str() {
                "-h" | "--help" => return Ok(None),
                "--members" => &mut members,
                "--silent" => silent.insert(0),
                "--outage" => outage.insert(0),
                "--length" => &mut length,
                "--shards" => &mut shards,
                "--rolls" => &mut rolls,
                "--checks" => &mut checks,
                other => bail!("unknown argument {other:?}"),
            };
            let value = arguments.next().with_context(|| format!("{flag} needs a number"))?;
            *place = value.parse().with_context(|| format!("{flag}: {value:?} is no number"))?;
        }
        let shared = shards > 1;
        let (silent_per_cent, outage_per_cent) =
            if shared { (0, 0) } else { (silent.unwrap_or(10), outage.unwrap_or(1)) };
        let sensible = (1..=60_000).contains(&members)
            && silent_per_cent + outage_per_cent <= 100
            && length >= if shared { 10 } else { 180 }
            && (1..=8).contains(&shards)
            && (rolls == 0 || shared)
            && checks <= if shared { 0 } else { 3 }
            && !(shared && (silent.is_some() || outage.is_some()));
        if !sensible {
            bail!("a number is out of its range");
        }
        let length = Duration::from_secs(u64::from(length));
        Ok(Some(Self { members, silent_per_cent, outage_per_cent, length, shards, rolls, checks }))
    }

    /// Members that never answer: those of the highest numbers.
    pub(crate) fn silent(&self) -> u32 {
        self.members * self.silent_per_cent / 100
    }

    /// Members with an outage: those of the lowest numbers.
    pub(crate) fn outage(&self) -> u32 {
        self.members * self.outage_per_cent / 100
    }
}
