//! clusterctl, the command of Cluster API, with a local repository: the core as it runs at a management cluster, and the
//! package that `deploy/clusterctl/package` makes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::cluster_api_core::ClusterApiCore;
use crate::kubectl::Kubectl;
use crate::programs::{control_plane_binaries, workspace};
use crate::temp_dir::TempDir;

/// Namespace of the package.
pub const NAMESPACE: &str = "icm-aws-system";
/// User that the program of the package is.
pub const ACCOUNT: &str = "system:serviceaccount:icm-aws-system:infra-controller-manager";
/// Values of variables without a default.
const VARIABLES: [(&str, &str); 3] = [
    ("ICM_AWS_IMAGE", "registry.internal/infra-controller-manager:test"),
    ("AWS_REGION", "us-east-2"),
    ("ICM_AWS_NAT_MODE", "None"),
];

/// Makes the package in a folder. The folder of its version.
pub fn package(folder: &Path) -> PathBuf {
    package_of(&[], folder)
}

/// Like [`package`], with options of the script.
pub fn package_of(options: &[&str], folder: &Path) -> PathBuf {
    let kubectl = control_plane_binaries(&["kubectl"]).unwrap().remove(0);
    let path = format!("{}:/usr/bin:/bin", kubectl.parent().unwrap().display());
    let output = Command::new(workspace().join("deploy/clusterctl/package"))
        .args(options)
        .arg(folder)
        .env("PATH", path)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "package: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().into()
}

/// A file of the package as it is, with `${NAME}` and `${NAME:=default}`.
pub fn packaged(file: &str) -> String {
    let folder = TempDir::new("package").unwrap();
    fs::read_to_string(package(&folder).join(file)).unwrap()
}

/// The objects of `infrastructure-components.yaml` with the values of variables.
pub fn components() -> Vec<Value> {
    let text = packaged("infrastructure-components.yaml");
    serde_saphyr::from_multiple(&substituted(&text)).unwrap()
}

/// Arguments of the container of a Deployment, as the kubelet expands them in the pod.
pub fn arguments(deployment: &Value) -> Vec<String> {
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let variables = container["env"].as_array().unwrap().iter();
    let value = |it: &Value| {
        // The API server leaves an empty value out.
        let value = it["value"].as_str().unwrap_or_default();
        (if it["valueFrom"].is_object() { NAMESPACE } else { value }).to_owned()
    };
    let variables: Vec<_> = variables.map(|it| (it["name"].as_str().unwrap(), value(it))).collect();
    let expand = |arg: &Value| {
        let arg = arg.as_str().unwrap().to_owned();
        variables.iter().fold(arg, |arg, (name, value)| arg.replace(&format!("$({name})"), value))
    };
    container["args"].as_array().unwrap().iter().map(expand).collect()
}

/// The names and the defaults of the variables in a text.
pub fn variables(text: &str) -> Vec<(&str, Option<&str>)> {
    let parts = text.split("${").skip(1);
    let inner = parts.map(|part| part.split_once('}').expect("a variable ends").0);
    inner.map(|it| it.split_once(":=").map_or((it, None), |(name, it)| (name, Some(it)))).collect()
}

fn substituted(text: &str) -> String {
    let mut result = text.to_owned();
    for (name, default) in variables(text) {
        let value = VARIABLES.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let written = default.map_or(format!("${{{name}}}"), |it| format!("${{{name}:={it}}}"));
        result = result.replace(&written, value.or(default).expect("a value"));
    }
    result
}

/// clusterctl for one management cluster.
pub struct Clusterctl {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// The repository and its configuration.
    folder: TempDir,
}

impl Clusterctl {
    /// Makes the repository. Builds clusterctl first where that is needed, which takes minutes.
    pub fn new(hub: &Kubectl, core: &ClusterApiCore) -> Self {
        let program = control_plane_binaries(&["clusterctl"]).unwrap().remove(0);
        let folder = TempDir::new("clusterctl").unwrap();
        let package = package(&folder).join("infrastructure-components.yaml");
        let version = program.parent().unwrap().file_name().unwrap();
        let of_core = folder.join("cluster-api").join(version);
        fs::create_dir_all(&of_core).unwrap();
        let metadata = of_file(&program, "metadata.yaml");
        fs::copy(metadata, of_core.join("metadata.yaml")).unwrap();
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "capi-system"}});
        let objects = core.components(hub).into_iter().chain([namespace]);
        let documents: Vec<_> = objects.map(|object| object.to_string()).collect();
        let components = of_core.join("core-components.yaml");
        fs::write(&components, documents.join("\n---\n")).unwrap();
        let provider =
            |name: &str, kind: &str, file: &Path| json!({"name": name, "type": kind, "url": file});
        let config = json!({"providers": [
            provider("cluster-api", "CoreProvider", &components),
            provider("icm-aws", "InfrastructureProvider", &package),
        ]});
        fs::write(folder.join("clusterctl.yaml"), config.to_string()).unwrap();
        Self { program, kubeconfig: hub.plane.admin_kubeconfig(), folder }
    }

    /// Adds a package of a newer version, in which one text of the components is another one.
    pub fn release(&self, version: &str, old: &str, new: &str) {
        let components = package_of(&["--version", version], &self.folder)
            .join("infrastructure-components.yaml");
        let text = fs::read_to_string(&components).unwrap();
        assert!(text.contains(old), "{old}");
        fs::write(&components, text.replace(old, new)).unwrap();
    }

    /// Output of clusterctl; the arguments contain no spaces.
    pub fn run(&self, arguments: &str) -> String {
        let output = Command::new(&self.program)
            .args(arguments.split_whitespace())
            .arg(format!("--config={}", self.folder.join("clusterctl.yaml").display()))
            .arg(format!("--kubeconfig={}", self.kubeconfig.display()))
            .env("XDG_CONFIG_HOME", self.folder.as_os_str())
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .envs(VARIABLES)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "clusterctl {arguments}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The objects that `clusterctl generate cluster` prints.
    pub fn generate(&self, arguments: &str) -> Vec<Value> {
        let text = self.run(&format!(
            "generate cluster {arguments} --kubernetes-version=v1.36.0 --target-namespace=default"
        ));
        serde_saphyr::from_multiple(&text).unwrap()
    }
}

/// Objects of a file next to clusterctl: the roles of the core, and CRDs of its kubeadm provider.
pub fn of_providers(file: &str) -> Vec<Value> {
    let program = control_plane_binaries(&["clusterctl"]).unwrap().remove(0);
    let text = fs::read_to_string(of_file(&program, file)).unwrap();
    serde_saphyr::from_multiple(&text).unwrap()
}

fn of_file(program: &Path, file: &str) -> PathBuf {
    program.with_file_name("providers").join(file)
}
