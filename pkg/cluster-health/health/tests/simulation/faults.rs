//! Faults, and when they happen.

use crate::management::Mode;
use crate::member_cluster::{BEHAVIOURS, Behaviour};
use crate::replica::Replica;
use crate::world::{LEADING, POLICIES, REPLICAS, World};

const MODES: [Mode; 5] =
    [Mode::Throttled, Mode::Refusing, Mode::Losing, Mode::LeasesFail, Mode::Well];

/// One fault, or the end of one.
pub(crate) fn strike(world: &mut World) {
    let uid = *world.random.pick(&world.truths.keys().collect::<Vec<_>>());
    let replica = usize::try_from(world.random.below(REPLICAS as u64)).unwrap();
    match world.random.below(32) {
        0..=7 => {
            let behaviour = world.random.pick(&BEHAVIOURS);
            behave(world, uid, behaviour);
        }
        8..=11 => behave(world, uid, Behaviour::Healthy),
        12 => {
            world.management.mode = world.random.pick(&MODES);
            world.management.well_since = world.now;
        }
        13 => {
            world.management.mode = Mode::Well;
            world.management.well_since = world.now;
        }
        14 => kill(world, replica),
        15 => restart(world, replica),
        16 => edit(world, uid),
        17 => retarget(world, uid),
        18 => hang(world, uid),
        19 => replace(world, uid),
        20..=21 => world.management.refuse(uid),
        22 => see(world, replica),
        23 => tune(world, uid),
        24 => stand_still(world, replica),
        25 => delete_lease(world, replica),
        26 => end(world, replica),
        27 => restart(world, LEADING),
        28 if world.paused.contains(&uid) => resume(world, uid),
        28 => pause(world, uid),
        29 => world.paused.first().copied().into_iter().for_each(|uid| resume(world, uid)),
        _ => allow(world),
    }
}

fn behave(world: &mut World, uid: u64, behaviour: Behaviour) {
    let now = world.now;
    let truth = world.truths.get_mut(&uid).expect("it is there");
    let same = (truth.behaviour.is_well() && behaviour.is_well())
        || (truth.behaviour.is_ill() && behaviour.is_ill());
    if !same {
        truth.since = now;
    }
    truth.behaviour = behaviour;
}

/// Kills a replica.
pub(crate) fn kill(world: &mut World, replica: usize) {
    world.disturbed_at = world.now;
    let this = &mut world.replicas[replica];
    this.alive = false;
    this.life += 1;
    this.held.clear();
}

/// Stops a replica in order: it releases its lease, if none of its writes is in flight.
fn end(world: &mut World, replica: usize) {
    let this = &world.replicas[replica];
    let (key, life) = (this.lease(replica), this.life);
    let is_calm = this.alive && this.still_until <= world.now && !world.is_writing(replica, life);
    if is_calm && world.management.mode == Mode::Well {
        kill(world, replica);
        world.management.release(key);
    }
}

/// A new process in the place of one that has ended. One that still runs goes on.
pub(crate) fn restart(world: &mut World, replica: usize) {
    if !world.has_ended(replica) {
        return;
    }
    let life = world.replicas[replica].life + 1;
    world.replicas[replica] = Replica::new(replica, life, world.now, world.instant());
    world.replicas[replica].blind = world.faults && world.random.one_in(2);
    world.boot(replica);
}

/// Changes a replica's period, time limit and thresholds.
fn tune(world: &mut World, uid: u64) {
    let number = world.random.below(POLICIES);
    let before = world.policy(uid);
    world.tuned.insert(uid, number);
    let (policy, now) = (world.policy(uid), world.instant());
    for replica in 0..REPLICAS {
        if let Some(held) = world.replicas[replica].held.get_mut(&uid) {
            // What was promised until now was promised of the other one.
            (held.calm_since, held.tuned_at) = (world.now, world.now);
            held.last_start = None;
            held.member.follow(&before, &policy, now);
            held.member.trigger(now);
            world.wait_for_due(replica, uid);
        }
    }
}

/// The process gets no processor for up to a minute, and does not notice.
fn stand_still(world: &mut World, replica: usize) {
    let rest = world.random.below(60_000);
    let this = &mut world.replicas[replica];
    if this.alive && this.still_until <= world.now {
        this.still_until = world.now + rest;
        // Of what it does until then nothing is promised.
        this.up_since = this.still_until;
        for held in this.held.values_mut() {
            held.calm_since = this.still_until;
            held.last_start = None;
        }
    }
}

/// Lets a replica read leases that it could not read before.
pub(crate) fn see(world: &mut World, replica: usize) {
    let this = &mut world.replicas[replica];
    if std::mem::take(&mut this.blind) {
        this.up_since = world.now;
    }
}

/// Somebody deletes the lease of a replica, which may be alive; not while a leader starts, which
/// does not wait when it finds no lease at all.
fn delete_lease(world: &mut World, replica: usize) {
    let leader = &world.replicas[LEADING];
    if leader.alive && !leader.shards.has_read() {
        return;
    }
    world.disturbed_at = world.now;
    world.deleted_at = Some(world.now);
    world.management.leases.retain(|(index, _), _| *index != replica);
}

/// Somebody edits the object or its Secret, twenty times.
fn edit(world: &mut World, uid: u64) {
    let now = world.instant();
    for replica in 0..REPLICAS {
        if let Some(held) = world.replicas[replica].held.get_mut(&uid) {
            held.member.trigger(now);
            world.wait_for_due(replica, uid);
        }
    }
}

/// The object points to another cluster, which does as it does. A probe of the one before is void.
fn retarget(world: &mut World, uid: u64) {
    let now = world.instant();
    let behaviour = world.random.pick(&BEHAVIOURS);
    behave(world, uid, behaviour);
    for replica in 0..REPLICAS {
        if let Some(held) = world.replicas[replica].held.get_mut(&uid) {
            held.member.discard(now);
            held.member.retarget(now);
            held.probe = None;
            held.retargeted = true;
            world.wait_for_due(replica, uid);
        }
    }
}

/// Somebody locks the cluster: it is left alone, and what was known of it is forgotten.
fn pause(world: &mut World, uid: u64) {
    let now = world.instant();
    world.paused.insert(uid);
    // That is written, too.
    world.reasons += 1;
    for replica in 0..REPLICAS {
        if let Some(held) = world.replicas[replica].held.get_mut(&uid) {
            held.member.discard(now);
            held.member.pause();
            held.probe = None;
            held.ready = None;
            held.results.clear();
            world.consider(replica, uid);
        }
    }
}

/// Ends a pause: the first result is published, whatever was true before.
pub(crate) fn resume(world: &mut World, uid: u64) {
    let now = world.instant();
    world.paused.remove(&uid);
    for replica in 0..REPLICAS {
        if let Some(held) = world.replicas[replica].held.get_mut(&uid) {
            held.member.resume(now);
            (held.since, held.calm_since) = (world.now, world.now);
            (held.last_start, held.last_end, held.asked_at) = (None, None, None);
            world.wait_for_due(replica, uid);
        }
    }
}

/// The task of a cluster hangs; half of the time the watchdog hangs with it.
fn hang(world: &mut World, uid: u64) {
    let for_ever = world.random.one_in(2);
    let until = if for_ever { u64::MAX } else { world.now + world.random.below(60_000) };
    for replica in &mut world.replicas {
        if let Some(held) = replica.held.get_mut(&uid)
            && held.hangs_until != u64::MAX
        {
            held.hangs_until = until;
        }
    }
}

/// Writes of half of the objects that were refused are taken again.
fn allow(world: &mut World) {
    let odd = world.random.below(2);
    world.management.allow(world.now, |uid| uid % 2 == odd);
}

/// The object is deleted, and one of the same name created.
fn replace(world: &mut World, uid: u64) {
    world.truths.remove(&uid);
    world.paused.remove(&uid);
    world.management.objects.remove(&uid);
    for replica in 0..REPLICAS {
        world.share_out(replica);
    }
    world.create();
}

/// A task that hangs comes to itself, late.
pub(crate) fn wake(world: &mut World, replica: usize, uid: u64) {
    let now = world.instant();
    let Some(held) = world.replicas[replica].held.get_mut(&uid) else { return };
    if held.hangs_until > 0 {
        held.hangs_until = 0;
        held.calm_since = world.now;
        held.probe = None;
        held.last_start = None;
        held.member.restart(now);
        world.wait_for_due(replica, uid);
    }
}
