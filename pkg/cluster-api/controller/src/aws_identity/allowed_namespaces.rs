//! [`permit`]: whether `allowedNamespaces` of an identity permits a namespace, as upstream decides.

use std::collections::BTreeMap;

use crate::api::aws_identity::{AllowedNamespaces, Requirement, Selector};

/// Labels of a namespace.
pub(crate) type Labels = BTreeMap<Box<str>, Box<str>>;

/// Whether a namespace is permitted, or what is wrong with the selector. The labels are asked for
/// only when they matter: an identity without a selector needs no right to read Namespaces.
///
/// # Errors
/// The labels are unknown, for the reason that is returned.
pub(super) fn permit(
    allowed: Option<&AllowedNamespaces>,
    namespace: &str,
    labels: impl FnOnce() -> Result<Option<Labels>, String>,
) -> Result<Result<bool, String>, String> {
    let Some(allowed) = allowed else { return Ok(Ok(false)) };
    // Upstream's clients write the empty value as `{list: null, selector: {}}`.
    let is_everybody = *allowed == AllowedNamespaces::default();
    let mut listed = allowed.list.iter().flatten();
    if is_everybody || listed.any(|name| name == namespace) {
        return Ok(Ok(true));
    }
    if let Some(problem) = problem(&allowed.selector) {
        return Ok(Err(problem));
    }
    // An empty selector selects nothing here, unlike elsewhere in Kubernetes.
    if is_empty(&allowed.selector) {
        return Ok(Ok(false));
    }
    Ok(Ok(labels()?.is_some_and(|labels| selects(&allowed.selector, &labels))))
}

fn is_empty(selector: &Selector) -> bool {
    selector.match_labels.iter().flatten().next().is_none()
        && selector.match_expressions.iter().flatten().next().is_none()
}

fn problem(selector: &Selector) -> Option<String> {
    selector.match_expressions.iter().flatten().find_map(|requirement| {
        let Requirement { key, operator, values } = requirement;
        let is_right = match operator.as_str() {
            "In" | "NotIn" => !values.is_empty(),
            "Exists" | "DoesNotExist" => values.is_empty(),
            _ => false,
        };
        let number = values.len();
        (!is_right).then(|| {
            format!(
                "allowedNamespaces.selector: {operator} with {number} values is no requirement \
                 for the label {key}"
            )
        })
    })
}

fn selects(selector: &Selector, labels: &Labels) -> bool {
    let mut equal = selector.match_labels.iter().flatten();
    let mut required = selector.match_expressions.iter().flatten();
    let label = |key: &str| labels.get(key).map(|value| &**value);
    equal.all(|(key, value)| label(key) == Some(value))
        && required.all(|it| is_met(it, label(&it.key)))
}

fn is_met(requirement: &Requirement, value: Option<&str>) -> bool {
    let is_listed = requirement.values.iter().any(|it| Some(&**it) == value);
    match requirement.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        _ => value.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn permits(allowed: Value, labels: Option<&[(&str, &str)]>) -> Result<bool, String> {
        let allowed: Option<AllowedNamespaces> = serde_json::from_value(allowed).unwrap();
        let text = |it: &(&str, &str)| (it.0.into(), it.1.into());
        let labels = labels.map(|all| all.iter().map(text).collect());
        permit(allowed.as_ref(), "ns", || Ok(labels)).unwrap()
    }

    /// rule:an-awscluster-stays-in-its-account
    #[test]
    fn each_shape_permits_what_upstream_permits() {
        let team_a: &[(&str, &str)] = &[("team", "a")];
        let expression = |operator: &str, values: &[&str]| {
            json!({"selector": {"matchExpressions": [
                {"key": "team", "operator": operator, "values": values}]}})
        };
        let cases = [
            (json!(null), false),
            (json!({}), true),
            (json!({"list": null, "selector": {}}), true),
            (json!({"list": []}), false),
            (json!({"list": ["other", "ns"]}), true),
            (json!({"list": ["other"]}), false),
            (json!({"selector": {"matchLabels": {}}}), false),
            (json!({"selector": {"matchExpressions": []}}), false),
            (json!({"selector": {"matchLabels": {"team": "a"}}}), true),
            (json!({"selector": {"matchLabels": {"team": "b"}}}), false),
            (json!({"list": [], "selector": {"matchLabels": {"team": "a"}}}), true),
            (json!({"list": ["other"], "selector": {"matchLabels": {"team": "b"}}}), false),
            (expression("In", &["a", "b"]), true),
            (expression("NotIn", &["a"]), false),
            (expression("NotIn", &["b"]), true),
            (expression("Exists", &[]), true),
            (expression("DoesNotExist", &[]), false),
        ];
        for (allowed, wanted) in cases {
            assert_eq!(permits(allowed.clone(), Some(team_a)), Ok(wanted), "{allowed}");
        }
        let both = json!({"selector": {"matchLabels": {"team": "a"}, "matchExpressions": [
            {"key": "tier", "operator": "Exists"}]}});
        assert_eq!(permits(both.clone(), Some(team_a)), Ok(false));
        assert_eq!(permits(both, Some(&[("team", "a"), ("tier", "")])), Ok(true));
    }

    #[test]
    fn a_namespace_that_is_gone_is_selected_by_nothing() {
        let absent = json!({"selector": {"matchExpressions": [
            {"key": "team", "operator": "DoesNotExist"}]}});
        assert_eq!(permits(absent.clone(), Some(&[])), Ok(true));
        assert_eq!(permits(absent, None), Ok(false));
    }

    #[test]
    fn a_requirement_that_is_none_is_named_and_permits_nothing() {
        for (operator, values) in [("Like", &["a"][..]), ("In", &[]), ("Exists", &["a"])] {
            let wrong = json!({"selector": {"matchExpressions": [
                {"key": "team", "operator": operator, "values": values}]}});
            let problem = permits(wrong, Some(&[("team", "a")])).unwrap_err();
            assert!(problem.contains(&format!("{operator} with ")), "{problem}");
        }
    }

    #[test]
    fn labels_are_read_only_for_a_selector() {
        let unread = || Err("Namespaces are unknown".to_owned());
        let listed = AllowedNamespaces { list: Some(vec!["x".to_owned()]), ..Default::default() };
        for allowed in [None, Some(&AllowedNamespaces::default()), Some(&listed)] {
            permit(allowed, "ns", unread).unwrap().unwrap();
        }
        let selector = json!({"selector": {"matchLabels": {"team": "a"}}});
        let selecting: AllowedNamespaces = serde_json::from_value(selector).unwrap();
        assert_eq!(permit(Some(&selecting), "ns", unread), Err("Namespaces are unknown".into()));
    }
}
