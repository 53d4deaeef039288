//! Refusals of AWS and of the fence, and their outcomes in the executor.

use std::time::Duration;

use aws::{Rate, Rates};
use aws_fixtures::{identity, present, with_nats};
use aws_network::{Action, NatMode, Outcome, Query, Refused, Rest, Tags};
use resilience::Fence;
use tests::aws_proxy::Fate;
use tokio::time::Instant;

use crate::world::World;

fn vpc() -> Action {
    let tags = Tags::from([(identity().cluster_tag(), "owned".to_owned())]);
    Action::CreateVpc { cidr: "10.66.0.0/24".parse().unwrap(), ipv6: false, tags }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// The value of a series of the world's metrics.
fn metric(world: &World, start: &str, label: &str) -> u64 {
    let text = prometheus::TextEncoder::new().encode_to_string(&world.registry.gather()).unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with(start) && line.contains(label));
    let line = lines.next().unwrap_or_else(|| panic!("no {start} {label} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_without_a_token_is_never_repeated_when_its_answer_is_lost() {
    let Some(world) = World::new().await else { return };
    for (fate, made) in [(Fate::AnswerLost, 1), (Fate::CallLost, 1), (Fate::RefuseWith(503, ""), 1)]
    {
        world.reset().await;
        let lost = fate.clone();
        world.proxy.decide(move |_, _| lost.clone());
        let outcome = world.executor().write(&vpc(), soon()).await;
        let wanted = match &fate {
            Fate::RefuseWith(..) => {
                Outcome::Refused(Refused { status: 503, ..Refused::with_code("") })
            }
            _ => Outcome::Unknown,
        };
        assert_eq!(outcome, wanted, "{fate:?}");
        assert_eq!(world.actions().len(), made, "{fate:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_make_a_second_resource_is_repeated() {
    let Some(world) = World::new().await else { return };
    let Outcome::Done(made) = world.executor().write(&vpc(), soon()).await else {
        panic!("no VPC")
    };
    world.proxy.forget();
    world.proxy.decide(|number, _| if number == 0 { Fate::AnswerLost } else { Fate::Pass });
    let enable = Action::EnableDnsHostnames { vpc: made.id.clone() };
    assert!(matches!(world.executor().write(&enable, soon()).await, Outcome::Done(_)));
    assert_eq!(world.actions(), ["ModifyVpcAttribute"; 2]);

    world.proxy.forget();
    world.proxy.decide(|number, _| if number < 2 { Fate::CallLost } else { Fate::Pass });
    let delete = Action::DeleteVpc { vpc: made.id };
    assert!(matches!(world.executor().write(&delete, soon()).await, Outcome::Done(_)));
    assert_eq!(metric(&world, "aws_api_call_retries_sum", "DeleteVpc"), 2);
    assert_eq!(
        metric(
            &world,
            "aws_api_requests_total",
            "DeleteVpc\",region=\"us-east-2\",service=\"ec2\",status_code=\"200"
        ),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_call_is_repeated_and_slows_all_others_down() {
    let rate = Rate { per_second: 4.0, burst: 100 };
    let Some(world) = World::with_rates(Rates { read: rate, write: rate }).await else { return };
    world.proxy.decide(|number, _| match number {
        0 => Fate::RefuseWith(503, "RequestLimitExceeded"),
        _ => Fate::Pass,
    });
    let started = Instant::now();
    assert!(matches!(world.executor().write(&vpc(), soon()).await, Outcome::Done(_)));
    assert_eq!(world.actions(), ["CreateVpc"; 2], "AWS has not looked at the first");
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(450), "half of 4 in a second: {waited:?}");
    let refused = "error_code=\"RequestLimitExceeded\",operation=\"CreateVpc\"";
    assert_eq!(metric(&world, "aws_api_requests_total", refused), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_fence_lets_nothing_leave_not_even_a_second_attempt() {
    let Some(mut world) = World::new().await else { return };
    world.fence = Fence::closed();
    assert_eq!(world.executor().write(&vpc(), soon()).await, Outcome::NotSent);
    assert_eq!(world.actions(), Vec::<String>::new());
    assert!(world.executor().read(&Query::TaggedVpcs).await.is_ok(), "reads need no lease");

    // It closes while the first attempt is under way: that one may have been carried out.
    world.fence.open_for(world.fence.read_clocks(), Duration::from_secs(3600));
    world.proxy.forget();
    let fence = world.fence.clone();
    world.proxy.decide(move |_, _| {
        fence.close();
        Fate::AnswerLost
    });
    let delete = Action::DeleteVpc { vpc: "vpc-1".to_owned() };
    assert_eq!(world.executor().write(&delete, soon()).await, Outcome::Unknown);
    assert_eq!(world.actions(), ["DeleteVpc"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_planned_too_long_ago_does_not_leave() {
    let Some(world) = World::new().await else { return };
    let past = Instant::now().checked_sub(Duration::from_millis(1)).unwrap();
    assert_eq!(world.executor().write(&vpc(), past).await, Outcome::NotSent);
    assert_eq!(world.actions(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_leave_in_time_does_not_take_the_turn_of_another() {
    // rule:a-throttle-slows-everybody
    let rate = Rate { per_second: 1.0 / 60.0, burst: 1 };
    let Some(world) = World::with_rates(Rates { read: rate, write: rate }).await else { return };
    assert!(matches!(world.executor().write(&vpc(), soon()).await, Outcome::Done(_)));
    // The next turn comes in a minute.
    let (asked, by) = (Instant::now(), Instant::now() + Duration::from_millis(100));
    assert_eq!(world.executor().write(&vpc(), by).await, Outcome::NotSent);
    let waited = asked.elapsed();
    assert!(waited < Duration::from_secs(30), "{waited:?}: it has waited for a turn in vain");
    assert_eq!(world.actions(), ["CreateVpc"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_come_through_as_aws_gives_them() {
    let Some(world) = World::new().await else { return };
    for code in ["VpcLimitExceeded", "UnauthorizedOperation", "InvalidVpc.Range"] {
        world.proxy.forget();
        world.proxy.decide(move |_, _| Fate::Refuse(code));
        let outcome = world.executor().write(&vpc(), soon()).await;
        assert_eq!(
            (outcome, world.actions().len()),
            (Outcome::Refused(Refused::with_code(code)), 1)
        );
        let refused = world.executor().read(&Query::TaggedVpcs).await.unwrap_err();
        assert_eq!(refused.code(), code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_missing_from_the_answer() {
    use aws_network::{Lookup, Reply};
    let Some(world) = World::new().await else { return };
    let executor = world.executor();
    let missing = vec!["missing".to_owned()];
    let by_name = Lookup { names: missing.clone(), vpc: None };
    for (query, wanted) in [
        (Query::Vpc("vpc-0123456789abcdef0".to_owned()), Reply::Vpcs(Vec::new())),
        (Query::ClassicLoadBalancers(by_name.clone()), Reply::ClassicLoadBalancers(Vec::new())),
        (Query::NetworkLoadBalancers(by_name), Reply::NetworkLoadBalancers(Vec::new(), Vec::new())),
        (Query::ClassicTags(missing), Reply::ClassicTags(Vec::new())),
    ] {
        assert_eq!(executor.read(&query).await, Ok(wanted), "{query:?}");
    }
    let zones = executor.zones().await.unwrap();
    let usable: Vec<_> =
        zones.iter().filter(|it| it.is_default()).map(|it| &*it.zone.name).collect();
    assert_eq!(usable, ["us-east-2a", "us-east-2b", "us-east-2c"]);
    assert_eq!(zones.len(), 6, "edge zones, one of them without opt-in, are shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_says_the_secret_of_the_credentials() {
    let Some(world) = World::new().await else { return };
    world.proxy.decide(|_, _| Fate::CallLost);
    let error = world.executor().read(&Query::TaggedVpcs).await.unwrap_err();
    let said = format!("{error} {error:?} {:?}", world.executor());
    assert!(!said.contains("planted-secret"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_made_through_throttles_and_failures() {
    let Some(world) = World::new().await else { return };
    world.proxy.decide(|number, call| match number % 7 {
        2 if call.is_write() => Fate::RefuseWith(503, "Unavailable"),
        4 => Fate::RefuseWith(503, "RequestLimitExceeded"),
        _ => Fate::Pass,
    });
    let (reconciliation, rest) = world.run(&present(&with_nats(NatMode::PerZone))).await;
    assert_eq!(rest, Rest::Reached, "{:#?}", reconciliation.problems());
}
