//! Runs the product as its users do: the real binary, its command line, its log, its exit code.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use kube::Client;
use kube::config::AuthInfo;
use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use crate::child::Child;
use crate::log_lines::LogLines;
use crate::metrics::Metrics;
use crate::{PATIENCE, control_plane, ports, programs};

/// A command line in the making.
#[derive(Debug)]
#[must_use = "nothing runs before `start`"]
pub struct Launch {
    program: Option<PathBuf>,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    port: Option<u16>,
    /// Readers of its pages need no permission.
    is_open: bool,
}

/// A program, most often the product, running or ended. Killed on drop; on a test's failure its log
/// is printed.
pub struct Process {
    child: Child,
    log: LogLines,
    port: Option<u16>,
}

impl Process {
    /// No flags but those the test gives: for tests of the command line.
    pub fn bare() -> Launch {
        Launch {
            program: None,
            args: Vec::new(),
            environment: Vec::new(),
            port: None,
            is_open: false,
        }
    }

    /// Flags that every run needs: the kubeconfig, and serving everybody on a free loopback port.
    pub fn with_kubeconfig(kubeconfig: &Path) -> Launch {
        let port = ports::free_port();
        let mut launch = Self::bare()
            .args(["--bind-address=127.0.0.1".to_owned(), format!("--secure-port={port}")])
            .args([OsString::from("--kubeconfig"), kubeconfig.into()]);
        launch.port = Some(port);
        launch.is_open = true;
        launch
    }

    /// The process ID.
    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// The port given with `--secure-port`.
    pub fn port(&self) -> u16 {
        self.port.expect("a process started bare has no known port")
    }

    /// False once it has ended.
    pub fn is_running(&self) -> bool {
        self.child.exit_status().is_none()
    }

    /// The lines that the process has printed, stdout and stderr together.
    pub fn lines(&self) -> Vec<String> {
        self.log.all()
    }

    /// Whether a line that it has printed so far contains `text`.
    pub fn has_said(&self, text: &str) -> bool {
        self.log.any(|line| line.contains(text))
    }

    /// The first line that contains `text`; waits for it.
    pub async fn line(&self, text: &str) -> String {
        self.line_where(&format!("a line with {text:?}"), |line| line.contains(text)).await
    }

    /// The first line that satisfies `wanted`; waits for it. `what` names it in the failure.
    pub async fn line_where(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        match timeout(PATIENCE, self.log.find(0, wanted)).await {
            Ok(Some((_, line))) => line,
            Ok(None) => panic!("the process ended without {what}"),
            Err(elapsed) => panic!("no sign of {what} within {PATIENCE:?}: {elapsed}"),
        }
    }

    /// Waits until it has ended and all of its output is in [`Self::lines`].
    pub async fn exit(&self, limit: Duration) -> ExitStatus {
        let ended = async {
            let status = self.child.exited().await;
            self.log.ended().await;
            status
        };
        let status = timeout(limit, ended).await;
        status.unwrap_or_else(|_| panic!("the process has not ended within {limit:?}"))
    }

    /// SIGTERM: asks it to shut down.
    pub fn terminate(&self) {
        self.child.signal(Signal::TERM);
    }

    /// SIGINT, as Ctrl-C sends.
    pub fn interrupt(&self) {
        self.child.signal(Signal::INT);
    }

    /// SIGKILL: it dies at once, with all its connections.
    pub fn kill(&self) {
        self.child.signal(Signal::KILL);
    }

    /// SIGSTOP: it stands still when this returns, its connections stay open.
    pub fn pause(&self) {
        self.child.halt();
    }

    /// SIGCONT: goes on after [`Self::pause`].
    pub fn resume(&self) {
        self.child.signal(Signal::CONT);
    }

    /// GET from its serving port: [`get`].
    pub async fn get(&self, path: &str) -> anyhow::Result<(u16, String)> {
        get(self.port(), path).await
    }

    /// The current metrics of the process.
    pub async fn metrics(&self) -> Metrics {
        let (status, page) = self.get("/metrics").await.expect("/metrics answers");
        assert_eq!(status, 200, "/metrics: {page}");
        Metrics::parse(&page)
    }

    /// One metric now: see [`Metrics::value`].
    pub async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.metrics().await.value(name, labels)
    }

    /// Reads one metric again and again until it is as `wanted` (absent is NaN); its value then.
    pub async fn until_metric(
        &self,
        name: &str,
        labels: &[(&str, &str)],
        wanted: impl Fn(f64) -> bool,
    ) -> f64 {
        let mut last = f64::NAN;
        let wait = async {
            loop {
                if let Ok((200, page)) = self.get("/metrics").await {
                    last = Metrics::parse(&page).value(name, labels).unwrap_or(f64::NAN);
                }
                if wanted(last) {
                    break;
                }
                sleep(Duration::from_millis(50)).await; // metrics can only be polled
            }
        };
        let in_time = timeout(PATIENCE, wait).await.is_ok();
        assert!(in_time, "{name}{labels:?} is {last} after {PATIENCE:?}");
        last
    }
}

impl Launch {
    /// Runs another program, such as the stock kube-controller-manager.
    pub fn program(mut self, path: &Path) -> Self {
        self.program = Some(path.to_owned());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Authenticates and authorizes readers of pages with this kubeconfig.
    pub fn guarded_by(mut self, kubeconfig: &Path) -> Self {
        self.is_open = false;
        let flags = ["--authentication-kubeconfig", "--authorization-kubeconfig"];
        self.args(flags.map(|flag| format!("{flag}={}", kubeconfig.display())))
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts it. The first call of a test process builds the product.
    pub fn start(self) -> Process {
        let (output, write_end) = std::io::pipe().expect("a pipe can be made");
        let errors = write_end.try_clone().expect("a pipe end can be cloned");
        let program = self.program.unwrap_or_else(|| programs::product().to_owned());
        let open = self.is_open.then_some("--authorization-always-allow-paths=/*");
        let child = Child::spawn(&program, |command| {
            command
                .args(open)
                .args(self.args)
                .envs(self.environment)
                .stdout(write_end)
                .stderr(errors);
        });
        let child = child.expect("the product starts");
        Process { child, log: LogLines::follow(output), port: self.port }
    }
}

/// GET from a loopback port that serves TLS with a certificate of its own making: status and body.
/// An error while nothing listens there.
pub async fn get(port: u16, path: &str) -> anyhow::Result<(u16, String)> {
    let request = http::Request::get(path).body(kube::client::Body::empty())?;
    ask(port, AuthInfo::default(), request).await
}

/// Like [`get`], with any request and with credentials.
pub async fn ask(
    port: u16,
    credentials: AuthInfo,
    request: http::Request<kube::client::Body>,
) -> anyhow::Result<(u16, String)> {
    control_plane::install_crypto_provider();
    let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse()?);
    config.accept_invalid_certs = true;
    // With None, kube decodes all roots of the system for each client.
    config.root_cert = Some(Vec::new());
    config.auth_info = credentials;
    config.default_retry = false; // a 503 of /readyz is an answer
    let response = Client::try_from(config)?.send(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect_bytes().await?;
    Ok((status, String::from_utf8(body.to_vec())?))
}

impl Drop for Process {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let lines = self.lines();
        let last = &lines[lines.len().saturating_sub(60)..];
        eprintln!("--- last lines of process {} ---\n{}\n---", self.pid(), last.join("\n"));
    }
}
