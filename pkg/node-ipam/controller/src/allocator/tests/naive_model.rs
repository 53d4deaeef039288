//! What Nodes get from each source, compared with a model that looks at every block.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::super::ServingState;
use super::cluster_cidrs::{empty, everybody, join, labelled, see, serve};
use super::every_source::{Source, sources};
use super::*;

/// A ClusterCIDR in the naive model, or the pool of another source.
#[derive(Clone, Debug)]
struct Naive {
    label: Option<&'static str>,
    /// First address, addresses, addresses of a block.
    range: (u32, u32, u32),
    cursor: u32,
    is_draining: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Join(u8, Option<&'static str>),
    Leave(u8),
    /// A drain begins or ends, of ClusterCIDRs only.
    Drain(usize, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let label = prop::option::of(prop::sample::select(vec!["a", "b"]));
    let step = prop_oneof![
        3 => (0..12_u8, label).prop_map(|(node, label)| Step::Join(node, label)),
        1 => (0..12_u8).prop_map(Step::Leave),
        1 => (0..5_usize, any::<bool>()).prop_map(|(object, on)| Step::Drain(object, on)),
    ];
    prop::collection::vec(step, 1..40)
}

fn objects() -> impl Strategy<Value = Vec<Naive>> {
    let label = prop::option::of(prop::sample::select(vec!["a", "b"]));
    // Ranges of 64 to 256 addresses inside of 10.0.0.0/24, blocks of 16 to 64: they overlap.
    let object = (label, 6..9_u32, 0..4_u32, 4..7_u32).prop_map(|(label, size, place, bits)| {
        let size = 1 << size;
        let range = ((place * 64) & !(size - 1), size, 1 << bits);
        Naive { label, range, cursor: 0, is_draining: false }
    });
    prop::collection::vec(object, 0..5)
}

impl Naive {
    fn text(&self) -> String {
        let (first, size, _) = self.range;
        format!("10.0.0.{first}/{}", 32 - size.ilog2())
    }

    fn spec(&self) -> Value {
        let (range, (_, _, block)) = (self.text(), self.range);
        let bits = i64::from(block.ilog2());
        self.label.map_or_else(|| everybody(&range, bits), |label| labelled(&range, bits, label))
    }

    /// The free block at or after the cursor, by looking at all.
    fn next(&self, claims: &BTreeMap<u8, (u32, u32)>) -> Option<(u32, u32)> {
        let (first, size, block) = self.range;
        let blocks = size / block;
        let is_free =
            |index: &u32| are_free(claims, first + index * block, first + (index + 1) * block);
        let index = (0..blocks).map(|step| (self.cursor + step) % blocks).find(is_free)?;
        Some((index, first + index * block))
    }
}

fn are_free(claims: &BTreeMap<u8, (u32, u32)>, start: u32, end: u32) -> bool {
    claims.values().all(|(from, to)| *to <= start || end <= *from)
}

/// The allocator of a source, and what the model has of it: ClusterCIDRs, or one pool.
fn with_model(source: Source, objects: Vec<Naive>) -> (Allocator, Vec<Naive>) {
    if source == Source::ClusterCidrs {
        let mut allocator = empty();
        for (number, object) in objects.iter().enumerate() {
            drop(serve(&mut allocator, &format!("o{number}"), &object.spec()));
        }
        return (allocator, objects);
    }
    let first = objects.into_iter().next();
    let range = first.map_or((0, 128, 32), |object| object.range);
    let pool = Naive { label: None, range, cursor: 0, is_draining: false };
    (source.allocator(&pool.text(), range.2), vec![pool])
}

proptest! {
    /// `rule:block-has-one-holder`
    #[test]
    fn nodes_get_what_the_naive_model_gives_them(
        source in sources().prop_filter("it chooses", |source| *source != Source::Exact),
        objects in objects(),
        steps in steps(),
    ) {
        let (mut allocator, mut naive) = with_model(source, objects);
        // Number of the Node to first address and the one behind the last.
        let mut claims: BTreeMap<u8, (u32, u32)> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Join(number, label) if !claims.contains_key(&number) => {
                    let labels: Vec<&str> = label.into_iter().collect();
                    let given = join(&mut allocator, &number.to_string(), &labels);
                    let mut order: Vec<usize> = (0..naive.len())
                        .filter(|it| !naive[*it].is_draining)
                        .filter(|it| naive[*it].label.is_none_or(|wanted| label == Some(wanted)))
                        .collect();
                    order.sort_by_key(|it| {
                        let Naive { label, range: (_, size, block), .. } = naive[*it];
                        (label.is_none(), size / block, block, naive[*it].text(), *it)
                    });
                    let wanted = order.iter().find_map(|it| Some((*it, naive[*it].next(&claims)?)));
                    match wanted {
                        Some((object, (index, first))) => {
                            let (_, size, block) = naive[object].range;
                            naive[object].cursor = (index + 1) % (size / block);
                            claims.insert(number, (first, first + block));
                            let text = format!("10.0.0.{first}/{}", 32 - block.ilog2());
                            prop_assert_eq!(sent(given), [text]);
                        }
                        None => {
                            prop_assert!(matches!(given, Assignment::Starved(_)), "{:?}", given);
                            // Who waits would be served by what others leave: not in this model.
                            drop(allocator.gone(&number.to_string(), now()));
                        }
                    }
                }
                Step::Drain(object, on) if object < naive.len() && source == Source::ClusterCidrs => {
                    let state = if on { ServingState::Draining } else { ServingState::Serving };
                    let (name, spec) = (format!("o{object}"), naive[object].spec());
                    drop(see(&mut allocator, &name, state, &spec));
                    naive[object].is_draining = on;
                    // What was reserved moves; here every Node has what was sent to it.
                }
                Step::Join(..) | Step::Drain(..) => {}
                Step::Leave(number) => {
                    claims.remove(&number);
                    drop(allocator.gone(&number.to_string(), now()));
                }
            }
        }
    }

    /// `rule:block-has-one-holder`
    #[test]
    fn nodes_get_what_the_cloud_names_while_no_other_node_has_it(
        steps in prop::collection::vec((0..12_u8, any::<bool>(), 0..16_u32, 4..7_u32), 1..40),
    ) {
        let mut allocator = Source::Exact.allocator("10.0.0.0/25", 16);
        let mut claims: BTreeMap<u8, (u32, u32)> = BTreeMap::new();
        for (number, joins, place, bits) in steps {
            let (uid, name) = (Uid::from(number.to_string()), number.to_string());
            if !joins {
                claims.remove(&number);
                drop(allocator.gone(&name, now()));
            } else if !claims.contains_key(&number) {
                drop(allocator.observe(&node(&name, &name), now()));
                let first = (place * 16) & !((1 << bits) - 1);
                let named: IpNet = format!("10.0.0.{first}/{}", 32 - bits).parse().unwrap();
                let given = allocator.assign_exact(&uid, &[named]).0;
                if are_free(&claims, first, first + (1 << bits)) {
                    claims.insert(number, (first, first + (1 << bits)));
                    prop_assert_eq!(sent(given), [named.to_string()]);
                } else {
                    let is_in_use = matches!(given, Assignment::Starved(Shortage::InUse { .. }));
                    prop_assert!(is_in_use, "{:?}", given);
                }
            }
        }
    }
}
