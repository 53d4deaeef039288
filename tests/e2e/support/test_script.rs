//! `scripts/test` and `.ci/run` with a cargo of ours: nothing is left out unnoticed, and nothing
//! runs without a limit.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tests::process::Process;
use tests::programs::workspace;
use tests::temp_dir::TempDir;

const LIMIT: Duration = tests::PATIENCE;
/// The tools that the scripts call, other than cargo and go.
const TOOLS: [&str; 17] = [
    "bash", "cat", "dirname", "env", "grep", "mktemp", "nproc", "paste", "rm", "sed", "sh",
    "sleep", "sort", "tail", "tee", "timeout", "wc",
];
/// Files that the scripts read.
const FILES: [&str; 6] = [
    ".ci/run",
    "scripts/test",
    "scripts/test-programs",
    "Cargo.toml",
    "tests/Cargo.toml",
    "tests/control-plane/go.mod",
];
const HANGS: &str = "echo 'test a::slow has been running for over 60 seconds'
echo 'test a::late has been running for over 60 seconds'
echo 'test a::late ... ok'
exec sleep 1000";

/// A folder that is all of PATH, and a checkout in it that has only what the scripts read.
struct Sandbox(TempDir);

impl Sandbox {
    /// A sandbox with a cargo that lacks the part `missing` and has built test programs that do `work`.
    fn new(missing: &str, work: &str) -> Self {
        let dir = TempDir::new("test-script").unwrap();
        for tool in TOOLS {
            let path = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            symlink(path.iter().find(|path| path.exists()).unwrap(), dir.join(tool)).unwrap();
        }
        let place = dir.display();
        let cargo = format!(
            "#!/bin/sh\necho \"$@\" >>{place}/calls\n[ \"$1\" != '{missing}' ] || exit 101\n\
             case \"$*\" in *--message-format*) exec cat {place}/built ;; *--no-run*) exit ;; esac\n\
             [ \"$1\" = test ] || exit 0\n{work}\n"
        );
        executable(&dir.join("cargo"), &cargo);
        let program = format!("#!/bin/sh\necho \"${{0##*/}} $*\" >>{place}/calls\n{work}\n");
        let mut built = artifact(&dir, "pkg/cidr", "cidr", "src/lib.rs", &program);
        for suite in suites() {
            built += &artifact(&dir, "tests", &suite, &format!("e2e/{suite}/main.rs"), &program);
        }
        fs::write(dir.join("built"), built).unwrap();
        for file in FILES {
            let copy = dir.join("checkout").join(file);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(workspace().join(file), copy).unwrap();
        }
        for script in
            ["check-citations", "control-plane-binary", "cut-aws-sdk", "demo", "moto-server"]
        {
            executable(&dir.join("checkout/scripts").join(script), "#!/bin/sh\n");
        }
        Self(dir)
    }

    /// A sandbox with Go and Python, for a user with these capabilities.
    fn of_user(capabilities: &str) -> Self {
        let sandbox = Self::new("", "");
        for tool in ["go", "python3"] {
            executable(&sandbox.0.join(tool), "#!/bin/sh\n");
        }
        let real = fs::read_link(sandbox.0.join("sed")).unwrap();
        fs::remove_file(sandbox.0.join("sed")).unwrap();
        let sed = format!(
            "#!/bin/sh\ncase $2 in *CapEff*) echo {capabilities} ;; *) exec {} \"$@\" ;; esac\n",
            real.display()
        );
        executable(&sandbox.0.join("sed"), &sed);
        sandbox
    }

    fn call(&self, script: &str, args: &[&str]) -> Process {
        self.call_within("60", script, args)
    }

    /// Runs a script with this time limit.
    fn call_within(&self, limit: &str, script: &str, args: &[&str]) -> Process {
        Process::bare()
            .program(&self.0.join("checkout").join(script))
            .args(args.iter().copied())
            .env("PATH", self.0.to_str().unwrap())
            .env("KUBEBUILDER_ASSETS", "")
            .env("TEST_LIMIT", limit)
            .start()
    }

    /// The calls of cargo.
    fn calls(&self) -> String {
        fs::read_to_string(self.0.join("calls")).unwrap_or_default()
    }

    /// Whether cargo was asked to do anything but tell whether it has a part.
    fn worked(&self) -> bool {
        self.calls().lines().any(|call| !call.ends_with(" --version"))
    }
}

/// The names of the end-to-end suites.
fn suites() -> Vec<String> {
    let folders = fs::read_dir(workspace().join("tests/e2e")).unwrap();
    folders.map(|suite| suite.unwrap().file_name().into_string().unwrap()).collect()
}

/// Makes a test program of a package; what cargo says of it.
fn artifact(dir: &TempDir, package: &str, name: &str, main: &str, program: &str) -> String {
    let (folder, path) = (dir.join("checkout").join(package), dir.join("programs").join(name));
    for made in [&folder, &dir.join("programs")] {
        fs::create_dir_all(made).unwrap();
    }
    executable(&path, program);
    let target = json!({"name": name, "src_path": folder.join(main), "test": true});
    let (manifest, profile) = (folder.join("Cargo.toml"), json!({"debuginfo": 0, "test": true}));
    // In the order of cargo, which serde_json does not keep.
    format!(
        "{{\"reason\":\"compiler-artifact\",\"manifest_path\":{},\"target\":{target},\"profile\":{profile},\
         \"executable\":{},\"fresh\":true}}\n",
        json!(manifest),
        json!(path)
    )
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

async fn ends(run: &Process) -> (Option<i32>, String) {
    let status = run.exit(LIMIT).await;
    (status.code(), run.lines().join("\n"))
}

#[tokio::test]
async fn ci_fails_before_any_work_when_a_tool_is_missing_and_says_what_to_install() {
    for (missing, remedy) in [
        ("fmt", "rustup component add rustfmt"),
        ("clippy", "rustup component add clippy"),
        ("", "install Go 1."), // the sandbox has none
    ] {
        let sandbox = Sandbox::new(missing, "");
        let (code, output) = ends(&sandbox.call(".ci/run", &[])).await;
        assert_eq!(code, Some(1), "{missing}: {output}");
        assert!(output.contains(remedy), "{missing}: {output}");
        assert!(!sandbox.worked(), "{missing}: {output}");
    }
}

#[tokio::test]
async fn with_partial_tests_that_lack_a_tool_are_left_out_and_named() {
    let (code, output) = ends(&Sandbox::new("fmt", "").call("scripts/test", &["--partial"])).await;
    assert_eq!(code, Some(0), "{output}");
    for part in ["left out: format: ", "left out: end-to-end tests: "] {
        assert!(output.contains(part), "{part}: {output}");
    }
}

#[tokio::test]
async fn a_filter_that_matches_no_test_is_an_error() {
    let args = ["--fast", "--partial", "a_filter"];
    for (cargo_says, wanted) in [("running 0 tests", 1), ("running 2 tests", 0)] {
        let sandbox = Sandbox::new("", &format!("echo '{cargo_says}'"));
        let (code, output) = ends(&sandbox.call("scripts/test", &args)).await;
        assert_eq!(code, Some(wanted), "{output}");
        assert_eq!(output.contains("no test has 'a_filter' in its name"), wanted == 1, "{output}");
    }
}

#[tokio::test]
async fn a_user_without_ptrace_is_warned_before_any_work_and_skips_the_tests_that_need_it() {
    let sandbox = Sandbox::of_user("0000000000000000");
    let (code, output) = ends(&sandbox.call(".ci/run", &[])).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("CAP_SYS_PTRACE") && !sandbox.worked(), "{output}");

    let (code, output) = ends(&sandbox.call("scripts/test", &["--partial"])).await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("left out: end-to-end tests that stop threads"), "{output}");
    let call = "host --skip starvation::";
    assert!(sandbox.calls().contains(call), "{output}");
}

#[tokio::test]
async fn whoever_may_trace_leaves_nothing_out() {
    let sandbox = Sandbox::of_user("0000000000080000");
    let (code, output) = ends(&sandbox.call(".ci/run", &[])).await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("nothing was left out") && !sandbox.calls().contains("--skip"));
}

#[tokio::test]
async fn without_python_ci_fails_before_any_work_and_the_tests_on_moto_are_left_out() {
    let sandbox = Sandbox::of_user("0000000000080000");
    fs::remove_file(sandbox.0.join("python3")).unwrap();
    let (code, output) = ends(&sandbox.call(".ci/run", &[])).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("install Python 3.10") && !sandbox.worked(), "{output}");

    let (code, output) = ends(&sandbox.call("scripts/test", &["--partial"])).await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("left out: tests on moto"), "{output}");
}

#[tokio::test]
async fn tests_that_hang_are_ended_at_the_limit_and_named() {
    // The steps before the step that hangs must be over by then, also on a busy machine.
    let sandbox = Sandbox::new("", HANGS);
    let run = sandbox.call_within("10", "scripts/test", &["--fast", "--partial"]);
    let (code, output) = ends(&run).await;
    assert_eq!(code, Some(1), "{output}");
    let message = output.lines().find(|line| line.contains("Tests that had not ended"));
    let message = message.unwrap_or_else(|| panic!("no such message: {output}"));
    assert!(message.contains("'unit and property tests'"), "{message}");
    assert!(message.contains("cidr/cidr: a::slow"), "{message}");
    assert!(!message.contains("a::late"), "{message}");
}

#[tokio::test]
async fn each_program_runs_and_one_that_fails_is_named_and_stops_no_other() {
    let work = "case $0 in */races) echo 'test a::b ... FAILED'; exit 101 ;; esac";
    let sandbox = Sandbox::new("", work);
    let (code, output) = ends(&sandbox.call("scripts/test-programs", &["a_filter"])).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("races: test a::b ... FAILED"), "{output}");
    assert!(output.contains("failed: races"), "{output}");
    let calls = sandbox.calls();
    let suites = suites().into_iter().map(|suite| format!("{suite} a_filter"));
    for call in suites.chain(["cidr --quiet a_filter".to_owned()]) {
        assert!(calls.lines().any(|line| line == call), "{call} is not among {calls}");
    }
}

#[tokio::test]
async fn a_failing_step_fails_the_whole() {
    let (code, output) =
        ends(&Sandbox::new("", "exit 101").call("scripts/test", &["--fast", "--partial"])).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("'unit and property tests' failed"), "{output}");
}
