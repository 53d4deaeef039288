//! The process's own panic hook, in a process of its own since a hook is global.

use std::panic::set_hook;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn contained_panics_are_silent_and_all_others_reach_the_hook_that_was_there_before() {
    static REACHED: AtomicUsize = AtomicUsize::new(0);
    set_hook(Box::new(|_| {
        REACHED.fetch_add(1, Ordering::SeqCst);
    }));
    assert!(resilience::panics::contain_call(|| panic!("contained")).is_err());
    assert_eq!(REACHED.load(Ordering::SeqCst), 0);
    std::thread::spawn(|| panic!("not contained")).join().unwrap_err();
    assert_eq!(REACHED.load(Ordering::SeqCst), 1);
}
