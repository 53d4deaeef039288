//! A control plane with the CRDs of `config/crd`, and kubectl for its administrator.

use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::PATIENCE;
use crate::control_plane::{ControlPlane, Options};
use crate::pool::{Lent, Pool};
use crate::programs::{control_plane_binaries, workspace};
use serde_json::Value;

/// Namespace of KubeFed, and of the Secrets of members.
pub const FEDERATION: &str = "kube-federation-system";
/// Has the rights of `config/rbac/role.yaml`, and of `cluster-health.yaml` without accounts, at a [`hub`].
pub const IDENTITY: &str = "system:serviceaccount:kube-system:infra-controller-manager";

/// A management cluster for one test, with the CRDs and the rights for cluster-health.
pub async fn hub() -> Lent<Kubectl> {
    static HUBS: Pool<Kubectl> = Pool::new();
    let make = async || {
        let hub = Kubectl::with_crds().await;
        hub.run(&format!("create namespace {FEDERATION}"));
        let health = ["cluster-health", "cluster-health-account", "cluster-health-process"];
        for file in ["role", "role-binding"].into_iter().chain(health) {
            hub.run(&format!("apply -f config/rbac/{file}.yaml"));
        }
        hub
    };
    let clean = async |hub: &Kubectl| {
        hub.run("delete cls,cc,mc --all");
        let kinds = "kubefedclusters,kubefedconfigs,secrets,events";
        hub.run(&format!("delete {kinds} --all -n {FEDERATION}"));
        hub.run("delete events --all -n default");
    };
    HUBS.lend(make, clean).await
}

/// A user at a control plane of its own: CRDs would be in others' way.
pub struct Kubectl {
    /// The control plane, as its administrator.
    pub plane: ControlPlane,
    shell: Shell,
}

/// kubectl, as a user types it.
#[derive(Clone)]
pub struct Shell {
    kubeconfig: PathBuf,
    program: PathBuf,
}

impl Deref for Kubectl {
    type Target = Shell;

    fn deref(&self) -> &Shell {
        &self.shell
    }
}

impl Kubectl {
    /// A control plane with the CRDs of `config/crd`, installed by one command.
    pub async fn with_crds() -> Self {
        let kubectl = Self::without_crds().await;
        kubectl.run("apply -f config/crd");
        kubectl.await_crds();
        kubectl
    }

    /// A control plane without any CRD.
    pub async fn without_crds() -> Self {
        let plane = ControlPlane::start(Options::default()).await.expect("a control plane starts");
        let shell = Shell::new(plane.admin_kubeconfig());
        Self { plane, shell }
    }
}

impl Shell {
    /// kubectl for the user of a kubeconfig.
    pub fn new(kubeconfig: PathBuf) -> Self {
        let program = control_plane_binaries(&["kubectl"]).unwrap().remove(0);
        Self { kubeconfig, program }
    }

    /// Output of kubectl; the arguments contain no spaces.
    pub fn run(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the API server serves the kinds of all CRDs.
    pub fn await_crds(&self) {
        let limit = PATIENCE.as_secs();
        self.run(&format!("wait --for=condition=established --timeout={limit}s crd --all"));
    }

    /// Whether kubectl ends without an error.
    pub fn succeeds(&self, arguments: &str) -> bool {
        self.output(arguments).status.success()
    }

    /// Error text of kubectl, which must be refused.
    pub fn refused(&self, arguments: &str) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "kubectl {arguments} is not refused");
        String::from_utf8(output.stderr).unwrap()
    }

    fn output(&self, arguments: &str) -> Output {
        Command::new(&self.program)
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .args(arguments.split_whitespace())
            // What it remembers of the API server goes with the server, not into the home of the user.
            .env("KUBECACHEDIR", self.kubeconfig.with_file_name("kubectl-cache"))
            .current_dir(workspace())
            .output()
            .unwrap()
    }

    /// An object, as it is stored.
    pub fn object(&self, of: &str) -> Value {
        serde_json::from_str(&self.run(&format!("get {of} -o json"))).unwrap()
    }

    /// Makes an object.
    pub fn create(&self, object: &Value) {
        let file = self.file(object);
        self.run(&format!("create -f {}", file.display()));
    }

    /// Makes many objects.
    pub fn create_all(&self, objects: &[Value]) {
        self.create(&serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects}));
    }

    /// Tries to make an object; whether the API server took it.
    pub fn may_create(&self, object: &Value) -> bool {
        let file = self.file(object);
        self.output(&format!("create -f {}", file.display())).status.success()
    }

    /// Tries to make an object that the API server refuses; what it says.
    pub fn create_refused(&self, object: &Value) -> String {
        let file = self.file(object);
        self.refused(&format!("create -f {}", file.display()))
    }

    /// Tries to write a status by server-side apply, which is refused; what the API server says.
    pub fn apply_status_refused(&self, object: &Value) -> String {
        let file = self.file(object);
        let flags = "--server-side --force-conflicts --subresource=status --validate=false";
        self.refused(&format!("apply {flags} -f {}", file.display()))
    }

    /// Writes a status, as a controller does.
    pub fn patch_status(&self, of: &str, status: &Value) {
        let patch = serde_json::json!({ "status": status });
        self.patch(&format!("{of} --subresource=status"), "merge", &patch);
    }

    /// Changes an object.
    pub fn patch(&self, of: &str, kind: &str, patch: &Value) {
        let file = self.file(patch);
        self.run(&format!("patch {of} --type={kind} --patch-file={}", file.display()));
    }

    /// Writes a file next to the kubeconfig, so that it is deleted with the control plane.
    fn file(&self, object: &Value) -> PathBuf {
        let path = self.kubeconfig.with_file_name("object.json");
        std::fs::write(&path, object.to_string()).unwrap();
        path
    }
}

/// The words of each line; an age is `AGE`.
pub fn table(printed: &str) -> Vec<Vec<String>> {
    let word = |word: &str| if is_age(word) { "AGE".to_owned() } else { word.to_owned() };
    printed.lines().map(|line| line.split_whitespace().map(word).collect()).collect()
}

/// `7s`, `2m8s`, `3h`: numbers with their units.
fn is_age(word: &str) -> bool {
    let mut parts = word.split_inclusive(|c: char| "smhdy".contains(c));
    parts.all(|part| part.len() > 1 && part[..part.len() - 1].parse::<u32>().is_ok())
        && word.ends_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn ages_differ_from_names_numbers_and_versions() {
        let printed = "NAME AGE\na-1s 7s\n2 2m8s\n1.36.3 5d4h\ns 3h\n";
        let expected =
            [["NAME", "AGE"], ["a-1s", "AGE"], ["2", "AGE"], ["1.36.3", "AGE"], ["s", "AGE"]];
        assert_eq!(table(printed), expected);
    }
}
