use std::convert::Infallible;

use super::*;

fn made<T>(made: Result<T, Infallible>) -> T {
    made.unwrap()
}

#[test]
fn each_place_is_given_its_own_value_of_one_type_and_the_same_one_again() {
    let once = MadeOnce::default();
    let run = |next: u32| {
        let first = made(once.get_or_make(|| Ok(next)));
        let second = made(once.get_or_make(|| Ok(next + 1)));
        (first, second)
    };
    assert_eq!(run(1), (1, 2));
    assert_eq!(run(10), (1, 2), "the next run is given what the first one made");
}

#[test]
fn what_is_made_may_ask_for_others() {
    let once = MadeOnce::default();
    let inner = || made(once.get_or_make(|| Ok(1)));
    assert_eq!(made(once.get_or_make(|| Ok(inner() + 1))), 2);
}

#[test]
fn what_could_not_be_made_is_tried_again() {
    let once = MadeOnce::default();
    let ask = |answer: Result<u32, &'static str>| once.get_or_make(|| answer);
    assert_eq!(ask(Err("taken")), Err("taken"));
    assert_eq!(ask(Ok(1)), Ok(1));
}
