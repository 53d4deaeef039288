//! `scripts/test` and `.ci/run` with a cargo of ours: nothing is left out unnoticed, and nothing
//! runs without a limit.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::Duration;

use tests::process::Process;
use tests::programs::workspace;
use tests::temp_dir::TempDir;

const LIMIT: Duration = tests::PATIENCE;
/// The tools that the scripts call, other than cargo and go.
const TOOLS: [&str; 15] = [
    "bash", "cat", "dirname", "env", "grep", "mktemp", "paste", "rm", "sed", "sh", "sleep", "sort",
    "tail", "tee", "timeout",
];
/// Files that the scripts read.
const FILES: [&str; 6] = [
    ".ci/run",
    "scripts/test",
    "scripts/test-suites",
    "Cargo.toml",
    "tests/Cargo.toml",
    "tests/control-plane/go.mod",
];
const HANGS: &str = "echo 'test a::slow has been running for over 60 seconds'
echo 'races: test a::hung has been running for over 60 seconds'
echo 'test a::late has been running for over 60 seconds'
echo 'test a::late ... ok'
exec sleep 1000";

/// A folder that is all of PATH, and a checkout in it that has only what the scripts read.
struct Sandbox(TempDir);

impl Sandbox {
    /// A sandbox with a cargo that runs `work` instead of tests and lacks the part `missing`.
    fn new(missing: &str, work: &str) -> Self {
        let dir = TempDir::new("test-script").unwrap();
        for tool in TOOLS {
            let path = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            symlink(path.iter().find(|path| path.exists()).unwrap(), dir.join(tool)).unwrap();
        }
        let calls = dir.join("calls");
        let cargo = format!(
            "#!/bin/sh\necho \"$@\" >>{}\n[ \"$1\" != '{missing}' ] || exit 101\n\
             [ \"$1\" = test ] || exit 0\n{work}\n",
            calls.display()
        );
        executable(&dir.join("cargo"), &cargo);
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
    let call = "--test host --no-fail-fast -- --skip starvation::";
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
    assert!(message.contains("a::slow") && !message.contains("a::late"), "{message}");
    assert!(message.contains("races: a::hung"), "{message}");
}

#[tokio::test]
async fn each_suite_runs_and_one_that_fails_is_named_and_stops_no_other() {
    let work = "case \"$*\" in *'--test races'*) echo 'test a::b ... FAILED'; exit 101 ;; esac";
    let sandbox = Sandbox::new("", work);
    let (code, output) = ends(&sandbox.call("scripts/test-suites", &["a_filter"])).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("races: test a::b ... FAILED"), "{output}");
    assert!(output.contains("failed: races"), "{output}");
    for suite in fs::read_dir(workspace().join("tests/e2e")).unwrap() {
        let suite = suite.unwrap().file_name();
        let call = format!("--test {} --no-fail-fast a_filter", suite.display());
        assert!(sandbox.calls().contains(&call), "{call} is not among {}", sandbox.calls());
    }
}

#[tokio::test]
async fn a_failing_step_fails_the_whole() {
    let (code, output) =
        ends(&Sandbox::new("", "exit 101").call("scripts/test", &["--fast", "--partial"])).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("'unit and property tests' failed"), "{output}");
}
