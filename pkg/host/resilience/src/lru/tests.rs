use super::*;

fn has(lru: &mut Lru<u32, u32>, key: u32) -> bool {
    let mut made = false;
    lru.entry(&key, || {
        made = true;
        key
    });
    !made
}

#[test]
fn the_entry_not_used_for_longest_is_forgotten_first() {
    let mut lru = Lru::new(2);
    lru.entry(&1, || 10);
    lru.entry(&2, || 20);
    lru.entry(&1, || 99); // used again: 2 is the oldest now
    lru.entry(&3, || 30);
    assert_eq!(lru.get(&1), Some(&mut 10));
    assert!(has(&mut lru, 1));
    assert!(has(&mut lru, 3));
    assert!(!has(&mut lru, 2));
}

#[test]
fn a_value_is_kept_and_can_be_changed() {
    let mut lru = Lru::new(2);
    *lru.entry(&1, || 10) += 1;
    assert_eq!(*lru.entry(&1, || 0), 11);
    lru.insert(&1, 12);
    assert_eq!((lru.get(&1).copied(), lru.remove(&1), lru.get(&1)), (Some(12), Some(12), None));
}

#[test]
fn it_never_holds_more_than_its_capacity() {
    let mut lru = Lru::new(16);
    for key in 0..1_000_u32 {
        lru.entry(&(key % 40), || key);
        assert!(lru.entries.len() <= 16);
        assert_eq!(lru.entries.len(), lru.uses.len());
    }
}
