//! Where the API server is, and what to print instead of running.

use pflag::{Kind, Spec};

pub(super) const FLAGS: &[Spec] = &[
    Spec::honoured(
        "misc",
        "kubeconfig",
        Kind::String,
        "",
        "Kubeconfig with the API server and the identity to use; inside a cluster it may be left out.",
    ),
    Spec::honoured(
        "misc",
        "master",
        Kind::String,
        "",
        "Address of the API server, instead of the one in --kubeconfig.",
    ),
    Spec::honoured("global", "help", Kind::Bool, "false", "Print this text and exit."),
    Spec::honoured(
        "global",
        "version",
        Kind::Version,
        "false",
        "Print the version and exit; =raw prints all there is to know about the build, =vX.Y.Z... reports another version that extends the real one.",
    ),
];
