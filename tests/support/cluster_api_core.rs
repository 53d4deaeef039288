//! Cluster API's own core, which runs together with the product: its CRDs, its webhooks, and its program; and upstream's
//! AWS provider, which is installed and started in the same way.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::kubectl::Kubectl;
use crate::poll::poll;
use crate::programs::control_plane_binaries;
use crate::temp_dir::TempDir;
use crate::{Process, ports};

/// Contracts of the core's own kinds, which it looks up as those of any other kind, and their versions.
const OF_CORE: &[(&str, &str)] = &[("v1beta1", "v1beta1"), ("v1beta2", "v1beta2")];
const OF_AWS: &[(&str, &str)] = &[("v1beta1", "v1beta1_v1beta2")];

/// The core at one management cluster; [`Self::start`] starts it.
pub struct ClusterApiCore {
    name: &'static str,
    contracts: &'static [(&'static str, &'static str)],
    program: PathBuf,
    kubeconfig: PathBuf,
    /// The certificate of its webhooks.
    folder: TempDir,
    port: u16,
}

impl ClusterApiCore {
    /// The core for one management cluster, where nothing of it is installed yet. Builds it first where that is needed,
    /// which takes minutes.
    pub fn new(hub: &Kubectl) -> Self {
        Self::of(hub, "cluster-api-core", OF_CORE)
    }

    fn of(
        hub: &Kubectl,
        name: &'static str,
        contracts: &'static [(&'static str, &'static str)],
    ) -> Self {
        let program = control_plane_binaries(&[name]).unwrap().remove(0);
        let folder = TempDir::new("cluster-api-core").unwrap();
        let server = hub.plane.ca().server().unwrap();
        fs::write(folder.join("tls.crt"), server.certificate_pem).unwrap();
        fs::write(folder.join("tls.key"), server.key_pem).unwrap();
        let (kubeconfig, port) = (hub.plane.admin_kubeconfig(), ports::free_port());
        Self { name, contracts, program, kubeconfig, folder, port }
    }

    /// Like [`Self::new`], with the CRDs of the core, with their conversion, and its webhooks.
    pub fn install(hub: &Kubectl) -> Self {
        Self::new(hub).installed(hub)
    }

    /// Like [`Self::install`], of the release 1.10, which knows no newer contract than v1beta1.
    pub fn install_older(hub: &Kubectl) -> Self {
        Self::of(hub, "cluster-api-core-1.10", OF_CORE).installed(hub)
    }

    /// Like [`Self::install`], but upstream's AWS provider.
    pub fn install_aws_provider(hub: &Kubectl) -> Self {
        Self::of(hub, "cluster-api-provider-aws", OF_AWS).installed(hub)
    }

    fn installed(self, hub: &Kubectl) -> Self {
        let list = self.folder.join("list.json");
        let items = json!({"apiVersion": "v1", "kind": "List", "items": self.components(hub)});
        fs::write(&list, items.to_string()).unwrap();
        // An apply that is not of the server would keep each CRD in an annotation, which is too small for it.
        hub.run(&format!("apply --server-side --force-conflicts -f {}", list.display()));
        hub.await_crds();
        self
    }

    /// The CRDs of the core, with their conversion, and its webhooks.
    pub fn components(&self, hub: &Kubectl) -> Vec<Value> {
        let config = self.program.with_file_name("config");
        let mut files: Vec<_> =
            fs::read_dir(config).unwrap().map(|it| it.unwrap().path()).collect();
        files.sort();
        let mut objects = Vec::new();
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let read: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            objects.extend(read.into_iter().map(|object| self.adapted(hub.plane.ca_pem(), object)));
        }
        objects
    }

    /// An object of the core for a program outside of the cluster.
    fn adapted(&self, ca: &str, mut object: Value) -> Value {
        let ca = STANDARD.encode(ca);
        let client = |path: &str| json!({"url": format!("https://127.0.0.1:{}{path}", self.port), "caBundle": ca});
        if object["kind"] == "CustomResourceDefinition" {
            for (contract, versions) in self.contracts {
                object["metadata"]["labels"][format!("cluster.x-k8s.io/{contract}")] =
                    json!(versions);
            }
            object["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook":
                {"conversionReviewVersions": ["v1"], "clientConfig": client("/convert")}});
        }
        if object.get("webhooks").is_some() {
            let kind = object["metadata"]["name"].as_str().unwrap();
            object["metadata"]["name"] = json!(format!("{}-{kind}", self.name));
        }
        for webhook in
            object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten()
        {
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
            webhook["clientConfig"] = client(&path);
        }
        object
    }

    /// Starts the core as an administrator, and waits until its webhooks can be called.
    pub async fn start(&self, args: &[&str]) -> Process {
        self.start_as(&self.kubeconfig, args).await
    }

    /// Like [`Self::start`], as the user of this kubeconfig.
    pub async fn start_as(&self, kubeconfig: &Path, args: &[&str]) -> Process {
        self.start_with(kubeconfig, args, &[]).await
    }

    /// Like [`Self::start_as`], with these variables.
    pub async fn start_with(
        &self,
        kubeconfig: &Path,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Process {
        let mut core = Process::bare()
            .program(&self.program)
            .args([format!("--webhook-port={}", self.port)])
            .args([format!("--webhook-cert-dir={}", self.folder.display())])
            .args(["--diagnostics-address=0", "--health-addr=0"])
            .args(args.iter().copied())
            .env("KUBECONFIG", &kubeconfig.display().to_string());
        for (name, value) in variables {
            core = core.env(name, value);
        }
        let core = core.start();
        poll("the webhooks of the core can be called", async || {
            TcpStream::connect(("127.0.0.1", self.port)).await.ok()
        })
        .await;
        core
    }
}
