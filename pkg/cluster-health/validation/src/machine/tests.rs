use super::*;

#[test]
fn the_room_is_a_power_of_two_and_nothing_where_a_block_is_larger_than_the_range() {
    for (range, node, expected) in
        [(16, 24, 256), (24, 26, 4), (28, 24, 0), (24, 24, 1), (0, 32, 1 << 32)]
    {
        assert_eq!(room(range, node), expected, "/{range} in /{node}");
    }
}
