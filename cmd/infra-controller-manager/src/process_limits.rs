//! What the operating system allows this process: as many open files as it can have, and no memory
//! in a core dump or in the hands of a debugger (rule:memory-is-not-dumped).

use std::io;

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};
use tracing::{info, warn};

/// Sets the limits. What cannot be set is told and does not stop the start: the program works, with
/// less room or less well protected.
pub(crate) fn set() {
    match raise_open_files() {
        Ok(limit) => info!(v = 1, open_files = limit, "Open files are limited"),
        Err(error) => warn!(err = %error, "Cannot raise the limit of open files"),
    }
    if let Err(error) = keep_memory_private() {
        warn!(err = %error, "Cannot turn off core dumps, which would hold credentials");
    }
}

/// The soft limit becomes the hard one, which is returned; `None` is no limit.
fn raise_open_files() -> io::Result<Option<u64>> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum)
}

fn keep_memory_private() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    /// rule:memory-is-not-dumped
    #[test]
    fn as_many_files_as_can_be_may_be_open_and_no_memory_is_dumped() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(128), maximum }).unwrap();
        set();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(getrlimit(Resource::Core).maximum, Some(0));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        set();
    }
}
