//! [`Vms`]: a cloud below the Nodes of a scene. Each new Node is on a VM that has the next block of a
//! range for an alias, round and round, as an allocator would give them out.

use std::path::PathBuf;
use std::sync::Arc;

use gce_stub::GceStub;
use ipnet::Ipv4Net;
use parking_lot::Mutex;

use crate::mk_node;
use crate::nodes::NewNode;
use crate::process::Launch;
use crate::temp_dir::TempDir;

const ZONE: &str = "europe-west1-b";

/// The cloud. Clones are the same.
#[derive(Clone)]
pub struct Vms(Arc<Inner>);

struct Inner {
    stub: GceStub,
    config: PathBuf,
    aliases: Mutex<Aliases>,
    _dir: TempDir,
}

/// The blocks of a range, and how many were given so far.
struct Aliases {
    range: Ipv4Net,
    mask: u8,
    given: usize,
}

impl Vms {
    /// Starts a stub without VMs.
    pub async fn start() -> Self {
        let (stub, dir) = (GceStub::start().await, TempDir::new("vms").expect("a folder"));
        stub.pages_of(500);
        let config = dir.join("cloud.conf");
        std::fs::write(&config, stub.config()).expect("the folder can be written to");
        let range = "10.0.0.0/8".parse().expect("a range");
        let aliases = Mutex::new(Aliases { range, mask: 24, given: 0 });
        Self(Arc::new(Inner { stub, config, aliases, _dir: dir }))
    }

    /// Gives a launch what leads it here. The aliases are from now on what `args` would have the
    /// other allocators give out: the last `--cluster-cidr`, in blocks of `--node-cidr-mask-size`.
    pub fn equip(&self, launch: Launch, args: &str) -> Launch {
        let last = |flag: &str| args.split_whitespace().rev().find_map(|it| it.strip_prefix(flag));
        let mut aliases = self.0.aliases.lock();
        if let Some(range) = last("--cluster-cidr=") {
            aliases.range = range.parse().expect("one IPv4 range");
        }
        if let Some(mask) = last("--node-cidr-mask-size=") {
            aliases.mask = mask.parse().expect("a number");
        }
        launch
            .args(["--cloud-provider=gce", "--configure-cloud-routes=false"])
            .args([format!("--cloud-config={}", self.0.config.display())])
            .env("GCE_METADATA_HOST", &self.0.stub.host)
    }

    /// A Node on a new VM of its name.
    pub fn node(&self, name: &str) -> NewNode {
        let alias = self.0.aliases.lock().next();
        self.0.stub.add_vm(ZONE, name, &[&alias]);
        mk_node(name).provider_id(&GceStub::provider_id(ZONE, name))
    }

    /// The alias of the VM of this name.
    pub fn alias(&self, name: &str) -> Vec<String> {
        self.0.stub.aliases(ZONE, name)
    }
}

impl Aliases {
    fn next(&mut self) -> String {
        let blocks = self.range.subnets(self.mask).expect("a block fits into the range");
        let place = self.given % blocks.count();
        self.given += 1;
        let mut blocks = self.range.subnets(self.mask).expect("as before");
        blocks.nth(place).expect("it is one of them").to_string()
    }
}
