//! `scripts/control-plane-binary`, with a Go tool-chain of ours that builds nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tests::process::Process;
use tests::programs::workspace;
use tests::temp_dir::TempDir;

/// Logs its builds, writes every program a caller could ask for, and waits for the file `go-on`.
const GO: &str = r#"#!/bin/sh
here=$(dirname "$0")
[ "$1" != env ] || { echo go-of-the-test; exit; }
[ "$3 $4" != "list -m" ] || { echo "$here/module"; exit; }
[ "$3" != list ] || { echo a/package; exit; }
echo "$@" >>"$here/calls"
while [ "$1" != -o ]; do shift; done
touch "$2/server" "$2/kube-apiserver" "$2/kubectl" "$2/kube-controller-manager" "$2/core" "$2/clusterctl"
chmod +x "$2"/*
while [ -e "$here" ] && [ ! -e "$here/go-on" ]; do sleep 0.02; done
"#;

struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        let dir = TempDir::new("binaries").unwrap();
        executable(&dir.join("go"), GO);
        Self(dir)
    }

    fn call(&self, names: &[&str]) -> Process {
        self.call_with(names, &[])
    }

    fn call_with(&self, names: &[&str], environment: &[(&str, &str)]) -> Process {
        let path = format!("{}:/usr/bin:/bin", self.0.display());
        let mut launch = Process::bare()
            .program(&workspace().join("scripts/control-plane-binary"))
            .args(names.iter().copied())
            .env("PATH", &path)
            .env("XDG_CACHE_HOME", self.0.to_str().unwrap())
            .env("KUBEBUILDER_ASSETS", "");
        for (name, value) in environment {
            launch = launch.env(name, value);
        }
        launch.start()
    }

    /// Lets go finish.
    fn go_on(&self) {
        fs::write(self.0.join("go-on"), "").unwrap();
    }

    fn calls_of_go(&self) -> usize {
        fs::read_to_string(self.0.join("calls")).unwrap_or_default().lines().count()
    }

    /// The only folder below `control-plane`: that of the pinned version.
    fn cache(&self) -> PathBuf {
        self.cache_of("control-plane")
    }

    fn cache_of(&self, module: &str) -> PathBuf {
        let versions = self.0.join("infra-controller-manager").join(module);
        fs::read_dir(versions).unwrap().next().unwrap().unwrap().path()
    }

    /// Files of the module that go finds.
    fn add_to_module(&self, files: &[&str]) {
        for file in files {
            let file = self.0.join("module").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
        }
    }

    fn stages(&self) -> usize {
        let stage = |name: &str| name.starts_with(".building");
        fs::read_dir(self.cache())
            .unwrap()
            .filter(|entry| stage(&entry.as_ref().unwrap().file_name().to_string_lossy()))
            .count()
    }
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

async fn code(call: &Process) -> Option<i32> {
    call.exit(tests::PATIENCE).await.code()
}

fn assert_prints(call: &Process, paths: &[PathBuf]) {
    let lines = call.lines();
    let last = &lines[lines.len() - paths.len()..];
    assert_eq!(last, paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>());
}

#[tokio::test]
async fn of_two_callers_at_once_one_builds_and_the_other_waits() {
    let sandbox = Sandbox::new();
    let first = sandbox.call(&["etcd", "kube-apiserver"]);
    first.line("building etcd kube-apiserver").await;
    let second = sandbox.call(&["kube-apiserver"]);
    second.line("waiting for it").await;
    sandbox.go_on();
    assert_eq!((code(&first).await, code(&second).await), (Some(0), Some(0)));
    let cache = sandbox.cache();
    assert_prints(&first, &[cache.join("etcd"), cache.join("kube-apiserver")]);
    assert_prints(&second, &[cache.join("kube-apiserver")]);
    assert_eq!((sandbox.calls_of_go(), sandbox.stages()), (1, 0));
}

#[tokio::test]
async fn an_interrupted_build_leaves_nothing_half_done_and_can_be_run_again() {
    let sandbox = Sandbox::new();
    let interrupted = sandbox.call(&["etcd"]);
    interrupted.line("building etcd").await;
    interrupted.terminate();
    assert_eq!(code(&interrupted).await, Some(143));
    assert!(!sandbox.cache().join("etcd").exists());
    assert_eq!(sandbox.stages(), 0);

    let killed = sandbox.call(&["etcd"]);
    killed.line("building etcd").await;
    killed.kill();
    sandbox.go_on(); // the orphaned go holds the lock until it is done
    let again = sandbox.call(&["etcd"]);
    assert_eq!(code(&again).await, Some(0));
    assert_prints(&again, &[sandbox.cache().join("etcd")]);
    assert_eq!(sandbox.stages(), 0);
}

#[tokio::test]
async fn each_program_comes_from_the_assets_folder_if_that_holds_it() {
    let sandbox = Sandbox::new();
    sandbox.go_on();
    let assets = TempDir::new("assets").unwrap();
    executable(&assets.join("etcd"), "");
    let assets_env = ("KUBEBUILDER_ASSETS", assets.to_str().unwrap());
    let call = sandbox.call_with(&["etcd", "kube-controller-manager"], &[assets_env]);
    assert_eq!(code(&call).await, Some(0));
    call.line("does not hold kube-controller-manager").await;
    assert_prints(&call, &[assets.join("etcd"), sandbox.cache().join("kube-controller-manager")]);

    let call = sandbox.call_with(&["etcd"], &[assets_env]);
    assert_eq!(code(&call).await, Some(0));
    assert_eq!(sandbox.calls_of_go(), 1);
}

#[tokio::test]
async fn without_go_the_message_says_what_to_install_or_to_set() {
    let sandbox = Sandbox::new();
    fs::remove_file(sandbox.0.join("go")).unwrap();
    let call = sandbox.call(&["etcd"]);
    assert_eq!(code(&call).await, Some(1));
    let text = call.lines().join("\n");
    for part in ["needs Go 1.", "go.dev/dl", "KUBEBUILDER_ASSETS", "no kube-controller-manager"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[tokio::test]
async fn the_core_of_cluster_api_is_kept_with_its_crds_and_webhooks() {
    let sandbox = Sandbox::new();
    sandbox.go_on();
    sandbox
        .add_to_module(&["core/config/crd/bases/kind.yaml", "core/config/webhook/manifests.yaml"]);
    let call = sandbox.call(&["etcd", "cluster-api-core", "kubectl"]);
    assert_eq!(code(&call).await, Some(0));
    let (plane, core) = (sandbox.cache(), sandbox.cache_of("cluster-api-core"));
    assert_prints(
        &call,
        &[plane.join("etcd"), core.join("cluster-api-core"), plane.join("kubectl")],
    );
    let config = core.join("config");
    assert!(config.join("kind.yaml").is_file() && config.join("manifests.yaml").is_file());
}

#[tokio::test]
async fn clusterctl_is_kept_with_roles_and_crds_of_providers_and_leaves_the_core() {
    let sandbox = Sandbox::new();
    sandbox.go_on();
    sandbox.add_to_module(&[
        "core/config/rbac/role.yaml",
        "core/config/rbac/aggregated_role.yaml",
        "controlplane/kubeadm/config/crd/bases/kind.yaml",
        "metadata.yaml",
    ]);
    let call = sandbox.call(&["clusterctl"]);
    assert_eq!(code(&call).await, Some(0));
    let cache = sandbox.cache_of("cluster-api-core");
    assert_prints(&call, &[cache.join("clusterctl")]);
    for file in ["role.yaml", "aggregated_role.yaml", "kind.yaml", "metadata.yaml"] {
        assert!(cache.join("providers").join(file).is_file(), "{file}");
    }
    assert!(!cache.join("config").exists(), "that is of the core");
}
