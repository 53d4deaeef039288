use crate::reviews::*;
use std::time::Duration;

const LIFE: Duration = Duration::from_secs(10);

fn key(number: u8) -> Key {
    [number; 32]
}

#[tokio::test(start_paused = true)]
async fn answers_count_for_their_life_and_a_new_one_for_a_new_life() {
    let mut memory = AnswerCache::new(4);
    memory.insert(key(1), 'a');
    tokio::time::advance(Duration::from_millis(9_999)).await;
    assert_eq!(memory.get(&key(1), LIFE), Some('a'));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_eq!(memory.get(&key(1), LIFE), None);
    assert_eq!(memory.get(&key(1), 2 * LIFE), Some('a'), "it is kept for who can do with it");
    memory.insert(key(1), 'b');
    assert_eq!(memory.get(&key(1), LIFE), Some('b'));
    assert_eq!(memory.get(&key(1), Duration::ZERO), None, "no life, no reuse");
}

#[tokio::test(start_paused = true)]
async fn a_full_memory_forgets_what_was_not_used_for_longest() {
    let mut memory = AnswerCache::new(3);
    for number in 1..=3 {
        memory.insert(key(number), number);
    }
    memory.get(&key(1), LIFE);
    memory.remove(&key(3));
    memory.insert(key(4), 4);
    memory.insert(key(5), 5);
    let known: Vec<_> = (1..=5).filter_map(|number| memory.get(&key(number), LIFE)).collect();
    assert_eq!(known, [1, 4, 5]);
}
