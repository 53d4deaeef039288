//! The API server by the CRDs alone, without a webhook: it refuses what the library refuses without knowing other
//! objects, for the same causes.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use kube::api::{DeleteParams, DynamicObject, PostParams};
use tests::dynamic::api;
use tests::kubectl::Kubectl;
use validation::{Environment, Kind, Operation, validate};

use crate::row::Row;
use crate::server::{Cause, agree, as_a_schema_says, causes, comparable, dry_run};
use crate::table::rows;

/// The causes that the library finds with nothing but the object.
fn expected(row: &Row) -> BTreeSet<Cause> {
    let (object, old) = (row.object(), row.stored());
    let operation = match &old {
        Some(old) => Operation::Update { old },
        None => Operation::Create,
    };
    let kind = Kind::of(&object).unwrap();
    let errors = validate(kind, &object, operation, &Environment::default()).errors;
    errors.iter().map(|error| as_a_schema_says(&error.field, error.error_type.reason())).collect()
}

/// The API server's causes; `None` where the row cannot be played: a status is dropped when an object is made, and what
/// a schema refuses cannot be stored.
async fn found(client: &Client, row: &Row) -> Option<BTreeSet<Cause>> {
    let object = row.object();
    if !object["status"].is_null() {
        return None;
    }
    let Some(stored) = row.stored() else {
        let (api, sent) = api(client, &object).await;
        return Some(causes(api.create(&dry_run(), &sent).await));
    };
    let (api, sent) = api(client, &stored).await;
    let made = api.create(&PostParams::default(), &sent).await.ok()?;
    let name = made.metadata.name.clone().unwrap();
    let mut changed: DynamicObject = serde_json::from_value(object).unwrap();
    changed.metadata.resource_version.clone_from(&made.metadata.resource_version);
    let answer = causes(api.replace(&name, &dry_run(), &changed).await);
    api.delete(&name, &DeleteParams::default()).await.unwrap();
    Some(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_alone_refuses_what_the_library_refuses_by_the_object_alone() {
    let kubectl = Kubectl::with_crds().await;
    kubectl.run("create namespace fed");
    let client = kubectl.plane.client().await;
    let (mut asked, mut refused, mut beyond) = (BTreeMap::new(), 0, 0);
    let mut wrong = Vec::new();
    for row in rows() {
        let expected = expected(&row);
        let Some(found) = found(&client, &row).await else { continue };
        let found = comparable(found, &expected);
        *asked.entry(row.rule).or_insert(0) += 1;
        refused += usize::from(!expected.is_empty());
        beyond += usize::from(found.is_empty() && !expected.is_empty());
        if !agree(&found, &expected) {
            let (object, stored) = (row.object(), row.stored());
            wrong.push(format!(
                "{}: {object}, was {stored:?}: {found:?}, not {expected:?}",
                row.rule
            ));
        }
    }
    println!("rows that the API server was asked about, by rule: {asked:#?}");
    println!("{refused} refused, {beyond} of them by the library alone");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 90, "{refused} refusals");
    println!("{}", crate::shipped::are_judged_alike(&kubectl, &client).await.join("\n"));
}
