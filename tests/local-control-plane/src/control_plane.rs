//! A real control plane: etcd and kube-apiserver, TLS, RBAC on, in a temporary directory, gone
//! without leftovers however this process ends.
//!
//! Called by `tests::cluster` for tests and by `main.rs` for people, demo and benchmark. etcd listens on unix sockets in the directory, kube-apiserver on
//! one free loopback port; a start that fails is tried again. Ready means: `/readyz` is 200 (it
//! covers the RBAC bootstrap roles) and the namespaces that controllers write to exist.

mod outage;
mod snapshot;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::child::Child;
pub use crate::pki::Identity;
use crate::pki::{self, Ca};
use crate::temp_dir::TempDir;
use crate::{PATIENCE, kubeconfig, ports, programs};
pub use outage::FrozenStore;

/// The user whose rights the product needs to get by with.
pub const MANAGER_USER: &str = "system:kube-controller-manager";
/// The group that RBAC's bootstrap roles let do everything.
pub const ADMIN_GROUP: &str = "system:masters";

/// What differs from the usual control plane.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Further flags of kube-apiserver; a flag given here wins over the same one of ours.
    pub api_server_args: Vec<String>,
}

/// A running control plane. Dropping it stops the processes and removes the directory.
pub struct ControlPlane {
    // Fields drop in this order: the server before its storage, the directory last.
    api_server: Child,
    etcd: Child,
    url: String,
    port: u16,
    options: Options,
    ca: Ca,
    webhook_caller: Identity,
    dir: TempDir,
}

impl ControlPlane {
    /// Starts one and waits until it is ready: two to four seconds.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        const ATTEMPTS: usize = 3;
        let mut attempt = 1;
        loop {
            match Self::attempt(&options).await {
                // On a busy machine another process takes the port, or a start-up hook of
                // kube-apiserver gives up.
                Err(error) if attempt < ATTEMPTS => {
                    eprintln!("attempt {attempt} to start a control plane: {error:#}");
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    async fn attempt(options: &Options) -> anyhow::Result<Self> {
        let (etcd, api_server) = programs::etcd_and_apiserver()?;
        let dir = TempDir::new("control-plane")?;
        let ca = Ca::new("icm-test")?;
        write_files(&dir, &ca)?;
        let webhook_caller = write_webhook_caller(&dir)?;
        let port = ports::free_port();
        let plane = Self {
            etcd: spawn(etcd, &dir, ETCD_ARGS.iter().map(|&arg| arg.to_owned()))?,
            api_server: spawn(api_server, &dir, api_server_args(port, options))?,
            url: format!("https://127.0.0.1:{port}"),
            port,
            options: options.clone(),
            ca,
            webhook_caller,
            dir,
        };
        plane.ready().await?;
        Ok(plane)
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The directory of certificates, logs, and kubeconfigs. Removed with the control plane.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// False once etcd or kube-apiserver has ended.
    pub fn is_running(&self) -> bool {
        [&self.etcd, &self.api_server].iter().all(|child| child.exit_status().is_none())
    }

    /// Waits until etcd or kube-apiserver has ended, which neither does by itself; the end of its
    /// log.
    pub async fn ended(&self) -> String {
        let name = tokio::select! {
            _ = self.etcd.exited() => "etcd",
            _ = self.api_server.exited() => "kube-apiserver",
        };
        format!("{name} has ended:\n{}", tail(&self.dir.join(format!("{name}.log"))))
    }

    /// Process numbers of etcd and kube-apiserver.
    pub fn pids(&self) -> [u32; 2] {
        [self.etcd.pid(), self.api_server.pid()]
    }

    /// The authority of servers and clients with its key, to be given to the product as that of a
    /// cluster.
    pub fn authority(&self) -> Identity {
        self.ca.identity()
    }

    /// The CAs of the certificate that the API server shows to webhooks, as a file.
    pub fn webhook_client_ca(&self) -> PathBuf {
        self.dir.join("webhook-ca.crt")
    }

    /// The client certificate of the API server for webhooks.
    pub fn webhook_caller(&self) -> &Identity {
        &self.webhook_caller
    }

    /// An authority that nothing trusts.
    pub fn another_authority() -> anyhow::Result<Identity> {
        Ok(Ca::new("another")?.identity())
    }

    /// A client certificate for this user that ends so long from now. At most two groups.
    pub fn client_certificate(
        &self,
        user: &str,
        groups: &[&str],
        life: Duration,
    ) -> anyhow::Result<Identity> {
        self.ca.client_for(user, groups, life)
    }

    /// A client certificate of a CA that no cluster knows.
    pub fn foreign_certificate(user: &str, groups: &[&str]) -> anyhow::Result<Identity> {
        Ca::new("icm-test-foreign")?.client(user, groups)
    }

    /// The path of a kubeconfig for this user, by client certificate. At most two groups.
    pub fn kubeconfig(&self, user: &str, groups: &[&str]) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(kubeconfig_name(user));
        self.write_kubeconfig(&path, user, groups)?;
        Ok(path)
    }

    /// Like [`Self::kubeconfig`], at a path of the caller's choice.
    pub fn write_kubeconfig(&self, path: &Path, user: &str, groups: &[&str]) -> anyhow::Result<()> {
        self.write_kubeconfig_to(&self.url, path, user, groups)
    }

    /// Like [`Self::write_kubeconfig`], for another server with a certificate of our CA.
    pub fn write_kubeconfig_to(
        &self,
        url: &str,
        path: &Path,
        user: &str,
        groups: &[&str],
    ) -> anyhow::Result<()> {
        kubeconfig::write(path, url, &self.ca, user, &self.ca.client(user, groups)?)
    }

    /// The kubeconfig of an administrator.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.kubeconfig("admin", &[ADMIN_GROUP]).expect("an admin's kubeconfig can be written")
    }

    /// The kubeconfig of `system:kube-controller-manager`.
    pub fn manager_kubeconfig(&self) -> PathBuf {
        self.kubeconfig(MANAGER_USER, &[]).expect("the manager's kubeconfig can be written")
    }

    /// An administrator's client. It belongs to the runtime it is made on: make one per test.
    pub async fn client(&self) -> Client {
        client_from(&self.admin_kubeconfig()).await.expect("an admin's client can be made")
    }

    /// The authority of servers and clients.
    pub fn ca(&self) -> &Ca {
        &self.ca
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let client = self.client().await;
        let deadline = Instant::now() + PATIENCE;
        while !is_ready(&client).await {
            for (child, log) in [(&self.etcd, "etcd.log"), (&self.api_server, "kube-apiserver.log")]
            {
                if let Some(status) = child.exit_status() {
                    bail!("{log}: ended with {status}:\n{}", tail(&self.dir.join(log)));
                }
            }
            if Instant::now() > deadline {
                let log = tail(&self.dir.join("kube-apiserver.log"));
                bail!("kube-apiserver is not ready after {PATIENCE:?}:\n{log}");
            }
            sleep(Duration::from_millis(50)).await; // nothing announces readiness
        }
        Ok(())
    }
}

/// The file name of a user's kubeconfig: `system:node:a` has `system-node-a.kubeconfig`.
pub fn kubeconfig_name(user: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    format!("{}.kubeconfig", user.chars().map(plain).collect::<String>())
}

/// Makes ring the provider of all TLS in this process.
pub fn install_crypto_provider() {
    // A second call fails because there is a provider, which is what we want.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// A client for a kubeconfig file.
pub async fn client_from(kubeconfig: &Path) -> anyhow::Result<Client> {
    install_crypto_provider();
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

async fn is_ready(client: &Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new()).expect("a valid request");
    if client.request_text(request).await.is_err() {
        return false;
    }
    let namespaces = Api::<Namespace>::all(client.clone());
    let (system, default) = (namespaces.get_opt("kube-system"), namespaces.get_opt("default"));
    matches!(futures::join!(system, default), (Ok(Some(_)), Ok(Some(_))))
}

/// Both programs run in `dir`, log to `<name>.log`, and name their files relative to it.
fn spawn(
    program: &Path,
    dir: &Path,
    args: impl IntoIterator<Item = String>,
) -> anyhow::Result<Child> {
    let name = program.file_name().context("a program has a name")?.to_string_lossy();
    let log = File::create(dir.join(format!("{name}.log")))?;
    let errors = log.try_clone()?;
    Child::spawn(program, |command| {
        command.args(args).current_dir(dir).stdout(log).stderr(errors);
    })
}

fn write_files(dir: &Path, ca: &Ca) -> anyhow::Result<()> {
    let server = ca.server()?;
    let front_proxy = Ca::new("icm-test-front-proxy")?;
    let (token_key, token_public_key) = pki::token_keys()?;
    for (name, text) in [
        ("ca.crt", ca.pem()),
        ("server.crt", &server.certificate_pem),
        ("server.key", &server.key_pem),
        ("front-proxy-ca.crt", front_proxy.pem()),
        ("token.key", &token_key),
        ("token.pub", &token_public_key),
    ] {
        fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// The API server shows a certificate of a CA of its own to webhooks.
fn write_webhook_caller(dir: &Path) -> anyhow::Result<Identity> {
    let ca = Ca::new("icm-test-webhook-callers")?;
    let caller = ca.client("kube-apiserver", &[])?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config",
        "users": [{"name": "*", "user": {
            "client-certificate": "webhook-caller.crt", "client-key": "webhook-caller.key"}}],
    });
    let plugin = |name: &str| {
        json!({"name": name, "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": dir.join("webhook-caller.kubeconfig")}})
    };
    let admission = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [plugin("ValidatingAdmissionWebhook"), plugin("MutatingAdmissionWebhook")],
    });
    for (name, text) in [
        ("webhook-ca.crt", ca.pem()),
        ("webhook-caller.crt", &caller.certificate_pem),
        ("webhook-caller.key", &caller.key_pem),
        ("webhook-caller.kubeconfig", &kubeconfig.to_string()),
        ("admission.json", &admission.to_string()),
    ] {
        fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(caller)
}

/// The "port" is part of a unix socket's file name here: etcd wants a URL with one.
const ETCD_ARGS: [&str; 9] = [
    "--name=etcd",
    "--data-dir=etcd",
    "--unsafe-no-fsync",                // the data need not outlive the process
    "--quota-backend-bytes=8589934592", // for 100,000 Nodes and their history
    "--listen-client-urls=unix://client:0",
    "--advertise-client-urls=unix://client:0",
    "--listen-peer-urls=unix://peer:0",
    "--initial-advertise-peer-urls=unix://peer:0",
    "--initial-cluster=etcd=unix://peer:0",
];

fn api_server_args(port: u16, options: &Options) -> impl Iterator<Item = String> {
    [
        "--etcd-servers=unix://client:0",
        "--bind-address=127.0.0.1",
        "--endpoint-reconciler-type=none", // an Endpoints object may not hold a loopback address
        "--tls-cert-file=server.crt",
        "--tls-private-key-file=server.key",
        "--client-ca-file=ca.crt",
        "--authorization-mode=RBAC",
        "--requestheader-client-ca-file=front-proxy-ca.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-signing-key-file=token.key",
        "--service-account-key-file=token.pub",
        // No controller of this control plane makes the default ServiceAccount of a namespace.
        "--disable-admission-plugins=ServiceAccount",
        "--admission-control-config-file=admission.json",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--delete-collection-workers=8", // thousands of nodes go between two tests
    ]
    .into_iter()
    .map(str::to_owned)
    .chain([format!("--secure-port={port}")])
    .chain(options.api_server_args.clone())
}

/// The last lines of a log, for an error message.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
