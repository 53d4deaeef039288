//! Runs each function of the crate as a test of its name.

macro_rules! tests {
    ($($file:ident::$name:ident,)*) => { $(#[test] fn $name() { memory_orders::$file::$name(); })* };
}

tests! {
    rights::a_write_leaves_only_while_the_watchdog_has_a_limit,
    rights::a_limit_ends_only_behind_a_closed_fence,
    rights::a_lost_term_ends_the_process_in_time,
    rights::a_body_is_taken_refused_or_given_up_once,
    leaving::a_handler_that_leaves_during_a_delivery_is_freed_before_the_next,
}
