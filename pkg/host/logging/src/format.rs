//! Which of the two formats is written.

/// `--logging-format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// klog's lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}
