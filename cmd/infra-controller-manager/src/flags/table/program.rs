//! Where the API server is, and what to print instead of running.

use flags::{Flag, Spec, VersionRequest};

pub(crate) const KUBECONFIG: Flag<String> = Flag::string(
    "misc",
    "kubeconfig",
    "",
    "Kubeconfig with the API server and the identity to use; inside a cluster it may be left out.",
);

pub(crate) const MASTER: Flag<String> = Flag::string(
    "misc",
    "master",
    "",
    "Address of the API server, instead of the one in --kubeconfig.",
);

pub(crate) const HELP: Flag<bool> = Flag::bool(
    "global",
    "help",
    "false",
    "Print this text and exit; =all adds the flags without effect.",
);

pub(crate) const VERSION: Flag<VersionRequest> = Flag::version(
    "global",
    "version",
    "false",
    "Print the version and exit; =raw prints all there is to know about the build, =vX.Y.Z... reports another version that extends the real one.",
);

pub(super) const FLAGS: &[Spec] = &[KUBECONFIG.spec(), MASTER.spec(), HELP.spec(), VERSION.spec()];
