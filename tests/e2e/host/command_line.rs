//! Command lines that start a process, and command lines that end with one clear error line and
//! exit code 1.

use std::collections::BTreeSet;
use std::fs;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use serde_json::Value;
use tests::programs::workspace;
use tests::temp_dir::TempDir;
use tests::{Process, Stopwatch, poll, ports};

use crate::scene::{AT_ONCE, Scene};

/// Files of the `pki` folder of a kubeadm control plane that the command line names.
const PKI: [&str; 4] = ["ca.crt", "ca.key", "front-proxy-ca.crt", "sa.key"];

/// The arguments of kubeadm's manifest for kube-controller-manager, in its order, for a cluster
/// with a pod subnet. Only the folder differs.
fn kubeadm_args(kubernetes: &Path) -> Vec<String> {
    let at = |name: &str| kubernetes.join(name).display().to_string();
    let (kubeconfig, ca) = (at("controller-manager.conf"), at("pki/ca.crt"));
    vec![
        "--allocate-node-cidrs=true".into(),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".into(),
        format!("--client-ca-file={ca}"),
        "--cluster-cidr=10.244.0.0/16".into(),
        "--cluster-name=kubernetes".into(),
        format!("--cluster-signing-cert-file={ca}"),
        format!("--cluster-signing-key-file={}", at("pki/ca.key")),
        "--controllers=*,bootstrapsigner,tokencleaner".into(),
        format!("--kubeconfig={kubeconfig}"),
        "--leader-elect=true".into(),
        format!("--requestheader-client-ca-file={}", at("pki/front-proxy-ca.crt")),
        format!("--root-ca-file={ca}"),
        format!("--service-account-private-key-file={}", at("pki/sa.key")),
        "--service-cluster-ip-range=10.96.0.0/12".into(),
        "--use-service-account-credentials=true".into(),
    ]
}

#[test]
fn the_manifest_that_replaces_stock_has_kubeadms_command_line_and_denies_loopback_to_probes() {
    let path = workspace().join("deploy/replacement/kube-controller-manager.yaml");
    let pod: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let container = &pod["spec"]["containers"][0];
    let command: Vec<_> = container["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    assert_eq!(command[0], "kube-controller-manager");
    let (own, kubeadms): (Vec<&str>, Vec<&str>) =
        command[1..].iter().partition(|word| word.starts_with("--dial-deny-cidrs="));
    assert_eq!(own, ["--dial-deny-cidrs=127.0.0.0/8,::1/128"]);
    assert_eq!(kubeadms, kubeadm_args(Path::new("/etc/kubernetes")));
    for probe in ["startupProbe", "livenessProbe"] {
        assert_eq!(container[probe]["httpGet"]["path"], "/healthz", "as stock's");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stocks_kubeadm_command_line_starts_it_and_nodes_are_served() {
    let scene = Scene::set().await;
    let kubernetes = kubeadm_files(&scene);
    let opened = watch_opens(&kubernetes.join("pki"));
    // The port is the one thing that cannot be kept: a stock process may own it.
    let port = format!("--secure-port={}", ports::free_port());
    let manager = Process::bare().args(kubeadm_args(&kubernetes)).args([port]).start();

    scene.serves("a").await;
    assert_eq!(scene.nodes.now().cidrs("a"), ["10.244.0.0/24"]);
    manager.line("10.244.0.0/16 in 256 blocks of /24").await;
    let lines = manager.lines();
    let warnings: Vec<_> = lines.iter().filter(|line| line.starts_with('W')).collect();
    assert_eq!(warnings.len(), 1, "{warnings:#?}");
    for accepted in [
        "--cluster-name",
        "--cluster-signing-cert-file",
        "--cluster-signing-key-file",
        "--root-ca-file",
        "--service-account-private-key-file",
        "bootstrapsigner",
        "tokencleaner",
    ] {
        assert!(warnings[0].contains(accepted), "{accepted} is missing in {}", warnings[0]);
    }
    for hosted in ["--cluster-cidr", "--allocate-node-cidrs", "--use-service-account-credentials"] {
        assert!(!warnings[0].contains(hosted), "{hosted} has an effect: {}", warnings[0]);
    }
    manager.terminate();
    assert!(manager.exit(AT_ONCE).await.success());

    let mut opened = opened();
    opened.retain(|name| !["ca.crt", "front-proxy-ca.crt"].contains(&&**name));
    assert!(opened.is_empty(), "the product must not open {opened:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_anything_to_do_says_so() {
    let manager = Process::bare()
        .args([
            "--secure-port=0",
            "--kubeconfig=/nonexistent",
            "--controllers=node-ipam-controller",
        ])
        .start();
    let why = manager.line("Controller is not started").await;
    assert!(why.contains("--allocate-node-cidrs is false"), "{why}");
    manager.line("No controller is started").await;
    assert_eq!(manager.exit(AT_ONCE).await.code(), Some(1));
}

/// `/etc/kubernetes` as kubeadm leaves it, with the only credentials that the product gets.
fn kubeadm_files(scene: &Scene) -> TempDir {
    let kubernetes = TempDir::new("kubernetes").unwrap();
    let pki = kubernetes.join("pki");
    fs::create_dir(&pki).unwrap();
    for name in PKI {
        fs::write(pki.join(name), "not for the eyes of this program").unwrap();
    }
    for name in ["ca.crt", "front-proxy-ca.crt"] {
        fs::copy(scene.cluster.dir().join(name), pki.join(name)).unwrap();
    }
    let conf = kubernetes.join("controller-manager.conf");
    fs::copy(scene.cluster.manager_kubeconfig(), conf).unwrap();
    kubernetes
}

/// Asks the kernel to note every file in `folder` that is opened from now on. The result ends
/// that and returns the names.
fn watch_opens(folder: &Path) -> impl FnOnce() -> BTreeSet<String> + use<> {
    let notes = inotify::init(CreateFlags::NONBLOCK).unwrap();
    inotify::add_watch(&notes, folder, WatchFlags::OPEN).unwrap();
    // The watch works: an empty result below is not a mistake of this function.
    let seen = "seen-by-the-watch";
    fs::write(folder.join(seen), "").unwrap();
    move || {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&notes, &mut buffer);
        let mut names = BTreeSet::new();
        while let Ok(event) = reader.next() {
            assert!(!event.events().contains(ReadFlags::QUEUE_OVERFLOW), "too many to note");
            names.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        assert!(names.remove(seen), "the kernel notes nothing");
        names
    }
}

/// Runs the program to its end; exit code and output.
async fn run(args: &[&str]) -> (Option<i32>, String) {
    let manager = Process::bare().args(args).start();
    let status = manager.exit(AT_ONCE).await;
    (status.code(), manager.lines().join("\n"))
}

#[tokio::test]
async fn an_unknown_flag_fails_with_the_usage_and_a_hint() {
    for (flag, hint) in [
        ("--cluster-cidrs=10.0.0.0/16", "did you mean --cluster-cidr?"),
        ("--leader-elects", "did you mean --leader-elect?"),
        ("--pod-eviction-timeout=5m", "kube-controller-manager removed it"),
    ] {
        let (code, output) = run(&[flag]).await;
        assert_eq!(code, Some(1), "{flag}: {output}");
        let last = output.lines().last().unwrap_or_default();
        let name = flag.split('=').next().unwrap_or_default();
        assert!(last.contains(&format!("unknown flag: {name}")), "{flag}: {last}");
        assert!(last.contains(hint), "{hint:?} is missing in {last:?}");
        assert!(output.contains("Generic flags:"), "no usage text: {output}");
    }
}

/// A command line for each flag, and each kind of value, that is refused because obeying or ignoring it
/// would do harm.
const REFUSED: [&str; 16] = [
    "--enable-leader-migration",
    "--leader-migration-config=/migration",
    "--leader-elect-resource-lock=endpoints",
    "--leader-elect-resource-name=kube-controller-manager",
    "--leader-elect-lease-duration=10s",
    "--leader-elect-renew-deadline=2s",
    "--cloud-provider=aws",
    "--kube-api-qps=0",
    "--kube-api-burst=0",
    "--kube-api-content-type=application/cbor",
    "--secure-port=65536",
    "--log-text-split-stream",
    "--log-flush-frequency=0",
    "--controllers=*,no-such-controller",
    "--cidr-allocator-type=CloudAllocator",
    "--emulated-version=new",
];

#[tokio::test]
async fn what_is_refused_ends_at_once_with_1_and_nothing_was_asked() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let master = format!("--master=http://{}", server.local_addr().unwrap());
    let fine = [&*master, "--secure-port=0", "--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16"];
    for refused in REFUSED {
        let begun = Stopwatch::start();
        let (code, output) = run(&[&fine[..], &[refused]].concat()).await;
        let took = begun.elapsed();
        assert_eq!(code, Some(1), "{refused}: {output}");
        assert!(took < Duration::from_secs(1), "{refused}: {took:?}");
        let name = refused.split('=').next().unwrap();
        let last = output.lines().last().unwrap_or_default();
        assert!(last.contains(name), "{refused}: {output}");
        assert!(!last.contains("panicked") && !output.contains("Starting"), "{refused}: {output}");
        assert!(server.accept().is_err(), "{refused}: it asked the API server");
    }
    let manager = Process::bare().args(fine).start();
    poll("without any of them it asks", async || server.accept().ok()).await;
    manager.kill();
}

#[tokio::test]
async fn help_goes_to_stdout_and_exits_0() {
    let program = tests::programs::product();
    for flag in ["--help", "-h"] {
        let output = std::process::Command::new(program).arg(flag).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{flag}");
        assert!(output.stderr.is_empty(), "{flag}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        for part in ["Generic flags:", "--cluster-cidr", "node-ipam-controller"] {
            assert!(text.contains(part), "{flag}: {part:?} is missing in {text}");
        }
    }
}

#[tokio::test]
async fn a_port_in_use_ends_the_start_with_the_port_and_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let flag = format!("--secure-port={port}");
    // The kubeconfig is not looked at before the port is ours.
    let (code, output) =
        run(&["--bind-address=127.0.0.1", &flag, "--kubeconfig=/nonexistent"]).await;
    assert_eq!(code, Some(1), "{output}");
    let line = output.lines().find(|line| line.contains(&format!("port {port} is in use")));
    let line = line.unwrap_or_else(|| panic!("no line names port {port}: {output}"));
    assert!(line.contains("choose a free one with --secure-port"), "{line}");
    assert!(line.starts_with('E'), "{line}");
}

#[tokio::test]
async fn a_kubeconfig_that_cannot_be_used_ends_the_start_with_its_path_and_the_flag() {
    let folder = TempDir::new("kubeconfigs").unwrap();
    let no_context = "apiVersion: v1\nkind: Config\nclusters: []\nusers: []\ncontexts: []\n";
    for (name, content) in [
        ("missing", None),
        ("empty", Some("")),
        ("garbage", Some("\u{0}\u{1}{{{: not YAML")),
        ("another-document", Some("- a\n- list\n")),
        ("no-current-context", Some(no_context)),
    ] {
        let path = folder.join(name);
        if let Some(content) = content {
            fs::write(&path, content).unwrap();
        }
        let path = path.display().to_string();
        let (code, output) = run(&["--secure-port=0", &format!("--kubeconfig={path}")]).await;
        assert_eq!(code, Some(1), "{name}: {output}");
        let line = output.lines().find(|line| line.starts_with('E')).unwrap_or_default();
        assert!(line.contains(&path) && line.contains("--kubeconfig"), "{name}: {output}");
    }
}
