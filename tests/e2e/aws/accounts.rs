//! A request leaves only with credentials of the account that it is meant for.

use aws_fixtures::{present, seed};
use aws_network::{Outcome, Query, Rest};
use tokio::time::{Duration, Instant};

use crate::world::World;

/// rule:a-request-reaches-one-account
#[tokio::test(flavor = "multi_thread")]
async fn neither_reads_nor_writes_leave_with_credentials_of_another_account() {
    let Some(world) = World::new().await else { return };
    let account = world.caller().await;
    assert_eq!(account, "123456789012", "moto's");
    let executor = world.executor_for("111111111111");
    world.proxy.forget();
    let error = executor.read(&Query::TaggedVpcs).await.unwrap_err();
    let wanted = "the credentials belong to account 123456789012, but the cluster is in account 111111111111";
    assert!(error.to_string().contains(wanted), "{error}");
    let tags = aws_fixtures::identity().base_tags("common");
    let create = aws_network::Action::CreateInternetGateway { tags };
    let outcome = executor.write(&create, Instant::now() + Duration::from_secs(10)).await;
    assert!(matches!(outcome, Outcome::NotSent), "{outcome:?}");
    assert_eq!(world.actions(), [""; 0]);

    // With those of the right one all goes on, and STS is asked once for each key.
    let executor = world.executor_for(&account);
    let found = executor.read(&Query::TaggedVpcs).await;
    assert!(found.is_ok(), "{found:?}");
    assert_eq!(world.actions(), ["DescribeVpcs"]);
    assert_eq!(world.run(&present(&seed())).await.1, Rest::Reached);
}
