//! Runs each function of the crate as a test of its name.

macro_rules! tests {
    ($($file:ident::$name:ident,)*) => { $(#[test] fn $name() { thread_schedules::$file::$name(); })* };
}

tests! {
    keys::no_wake_up_of_a_worker_thread_is_lost,
    keys::two_keys_reach_two_worker_threads_at_once,
    keys::a_stop_at_any_moment_ends_all_worker_threads,
    tokens::the_oldest_caller_goes_first,
    tokens::a_caller_that_leaves_stops_no_other_caller,
    deltas::a_handler_that_subscribes_during_deliveries_misses_no_change,
    deltas::a_frozen_reader_stands_between_two_changes,
    deltas::a_handler_that_left_gets_no_later_change,
}
