//! The shipped samples: taken as they are, and refused with one mistake, in words that are printed to be read.

use std::collections::BTreeSet;

use kube::Client;
use serde_json::Value;
use tests::dynamic::api;
use tests::kubectl::Kubectl;
use validation::{Environment, Kind, Operation, validate};

use crate::samples::{of_other_types, samples, with_a_mistake};
use crate::server::{Cause, agree, as_a_schema_says, causes, comparable, dry_run};

fn by_library(kind: Kind, object: &Value) -> BTreeSet<Cause> {
    let findings = validate(kind, object, Operation::Create, &Environment::default());
    let errors = findings.errors.iter();
    errors.map(|error| as_a_schema_says(&error.field, error.error_type.reason())).collect()
}

/// The API server's causes, and its words.
async fn by_server(client: &Client, object: &Value) -> (BTreeSet<Cause>, String) {
    let (api, sent) = api(client, object).await;
    let answer = api.create(&dry_run(), &sent).await;
    let said = match &answer {
        Ok(_) => String::new(),
        Err(kube::Error::Api(status)) => status.message.clone(),
        Err(error) => error.to_string(),
    };
    (causes(answer), said)
}

/// Each field of another type, and each of the usual mistakes, is refused for that field; the words of those.
pub(crate) async fn are_judged_alike(kubectl: &Kubectl, client: &Client) -> Vec<String> {
    kubectl.run("create namespace kube-federation-system");
    let mut words = Vec::new();
    // Of an object without a name of text the client would make none.
    for (kind, field, object) in of_other_types().iter().filter(|it| it.1 != "metadata.name") {
        let (found, said) = by_server(client, object).await;
        let wrong = (field.clone(), "FieldValueTypeInvalid".to_owned());
        assert!(found.contains(&wrong) && said.contains(&**field), "{kind} {field}: {said}");
    }
    for (kind, object, _) in with_a_mistake() {
        let expected = by_library(kind, &object);
        let (found, said) = by_server(client, &object).await;
        let found = comparable(found, &expected);
        assert!(agree(&found, &expected) && !expected.is_empty(), "{expected:?}, not {said}");
        words.push(said);
    }
    kubectl.run("apply -f config/samples");
    assert!(samples().len() > 7, "all of them were taken");
    words
}
