//! [`Operation`]: a change that Google has begun.

use serde::Deserialize;

use crate::call_error::CallError;

/// An operation of a zone, as far as it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Operation {
    pub(crate) name: String,
    status: String,
    error: Option<Failure>,
    http_error_status_code: Option<u16>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Failure {
    errors: Vec<Cause>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Cause {
    code: String,
    message: String,
}

impl Operation {
    /// What it came to; `None` while it goes on.
    pub(crate) fn outcome(&self) -> Option<Result<(), CallError>> {
        if self.status != "DONE" {
            return None;
        }
        if self.error.is_none() && self.http_error_status_code.is_none() {
            return Some(Ok(()));
        }
        let cause = self.error.iter().flat_map(|error| &error.errors).next();
        let Cause { code, message } = cause.cloned().unwrap_or_default();
        let message = message.chars().take(300).collect();
        Some(Err(CallError::Failed { code, message }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn outcome(operation: Value) -> Option<Result<(), CallError>> {
        serde_json::from_value::<Operation>(operation).unwrap().outcome()
    }

    #[test]
    fn an_operation_that_is_done_has_worked_only_without_any_error() {
        let causes = json!({"errors": [{"code": "IP_IN_USE", "message": "by b"}]});
        for status in ["PENDING", "RUNNING", ""] {
            assert_eq!(outcome(json!({"status": status, "error": causes})), None);
        }
        assert_eq!(outcome(json!({"name": "op", "status": "DONE"})), Some(Ok(())));
        let failed = outcome(json!({"status": "DONE", "error": causes}));
        let (code, message) = ("IP_IN_USE".into(), "by b".into());
        assert_eq!(failed, Some(Err(CallError::Failed { code, message })));
        for other in [json!({"error": {}}), json!({"httpErrorStatusCode": 400})] {
            let mut operation = json!({"status": "DONE"});
            operation.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
            assert!(outcome(operation).unwrap().is_err(), "{other}");
        }
    }
}
