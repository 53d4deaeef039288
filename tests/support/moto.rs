//! moto, an emulation of AWS, as a child process on a port of its own choice. It has one account
//! and all regions.
//!
//! It refuses less than AWS does; [`crate::aws_proxy`] refuses the rest.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};

use crate::child::Child;
use crate::poll::poll;
use crate::pool::{Lent, Pool};
use crate::programs::workspace;
use crate::temp_dir::TempDir;

/// A running server. Dropping it stops it.
pub struct Moto {
    _process: Child,
    port: u16,
}

impl Moto {
    /// Lends a server to one test, with what its last user has left in it.
    pub async fn lend() -> Lent<Self> {
        static SERVERS: Pool<Moto> = Pool::new();
        SERVERS.lend(Self::start, async |_| {}).await
    }

    /// Starts one, empty but for the default VPC of each region, and waits until it answers.
    async fn start() -> Self {
        let server = server().expect("moto is installed");
        let dir = TempDir::new("moto").expect("a directory");
        let log = dir.join("moto.log");
        let output = File::create(&log).expect("a log");
        let process = Child::spawn(server, |command| {
            command.args(["-H", "127.0.0.1", "-p", "0"]);
            // Instead of moto's own thousand images, which have no image for a bastion.
            command.env("MOTO_AMIS_PATH", workspace().join("tests/moto/images.json"));
            // For sitecustomize.py; Python must write no files next to it.
            command.env("PYTHONPATH", workspace().join("tests/moto"));
            command.env("PYTHONDONTWRITEBYTECODE", "1");
            command.stdout(output.try_clone().expect("a second handle")).stderr(output);
        })
        .expect("moto starts");
        let port = poll("moto says on which port it listens", async || {
            assert!(process.exit_status().is_none(), "{}", fs::read_to_string(&log).unwrap());
            port_in(&fs::read_to_string(&log).unwrap_or_default())
        })
        .await;
        // Its log goes with the directory: all that was wanted of it is known.
        Self { _process: process, port }
    }

    /// The port of the server, on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// `Running on http://127.0.0.1:PORT`, as the server's log has it once it listens.
fn port_in(log: &str) -> Option<u16> {
    let (_, rest) = log.split_once("http://127.0.0.1:")?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    rest[..end].parse().ok()
}

/// Words for what `scripts/test` has left out, with `--partial` only.
const LEFT_OUT: &str = "TESTS_LEFT_OUT";

/// Whether the tests that need moto are left out, which each of them says where the test harness hides nothing.
pub fn is_left_out() -> bool {
    let left_out = std::env::var(LEFT_OUT).unwrap_or_default();
    let is_left_out = left_out.split_whitespace().any(|word| word == "moto");
    if is_left_out {
        let thread = std::thread::current();
        let line = format!("skipped: {} needs moto\n", thread.name().unwrap_or("a test"));
        std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
    }
    is_left_out
}

fn server() -> anyhow::Result<&'static PathBuf> {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    if let Some(path) = PATH.get() {
        return Ok(path);
    }
    let script = workspace().join("scripts/moto-server");
    let output = Command::new(&script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", script.display()))?;
    if !output.status.success() {
        bail!("cannot get moto: see the message of {} above", script.display());
    }
    let path = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    Ok(PATH.get_or_init(|| path))
}
