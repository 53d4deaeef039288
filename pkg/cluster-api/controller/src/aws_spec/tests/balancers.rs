//! Fields of the load balancers that are refused before the first write.

use serde_json::{Value, json};

use super::{NEWER, wanted};

/// The refusals of a spec with these load balancers.
fn refusals(first: &Value, second: &Value) -> Vec<String> {
    let mut spec = json!({"region": "r", "controlPlaneLoadBalancer": first});
    if !second.is_null() {
        spec["secondaryControlPlaneLoadBalancer"] = second.clone();
    }
    let read = wanted(spec, NEWER);
    let errors = read.map_or_else(|errors| errors, |wanted| wanted.unsupported);
    errors.iter().map(|it| it.to_string().replace("cannot use spec.", "")).collect()
}

#[test]
fn each_load_balancer_that_cannot_be_made_is_refused_with_the_cause() {
    let nlb =
        |listeners: Value| json!({"loadBalancerType": "nlb", "additionalListeners": listeners});
    let second = |name: &str| json!({"name": name, "scheme": "internal"});
    let none = Value::Null;
    let named = "secondaryControlPlaneLoadBalancer.name: must be set and differ from the primary";
    let listeners = "controlPlaneLoadBalancer.additionalListeners";
    let listener = |rest: &str| format!("{listeners}[0].{rest}");
    for (first, second, expected) in [
        (
            json!({"loadBalancerType": "alb"}),
            none.clone(),
            "controlPlaneLoadBalancer.loadBalancerType: \"alb\" cannot forward TCP; use classic, nlb or \
             disabled"
                .to_owned(),
        ),
        (
            json!({"loadBalancerType": "elb"}),
            none.clone(),
            "controlPlaneLoadBalancer.loadBalancerType: \"elb\" cannot forward TCP; use classic, nlb or \
             disabled"
                .to_owned(),
        ),
        (
            json!({"additionalListeners": [{"port": 8443}]}),
            none.clone(),
            format!("{listeners}: requires loadBalancerType nlb"),
        ),
        (nlb(json!([{"port": 6443}])), none.clone(), listener("port: 6443 is the API server port; choose another one")),
        (nlb(json!([{"port": 70000}])), none.clone(), listener("port: 70000 is not a port")),
        (
            nlb(json!([{"port": 6443, "protocol": "UDP"}])),
            none.clone(),
            listener("protocol: \"UDP\" is not TCP"),
        ),
        (
            json!({"targetGroupIPType": "ipv6"}),
            none.clone(),
            "controlPlaneLoadBalancer.targetGroupIPType: ipv6 requires vpc.ipv6".to_owned(),
        ),
        (json!({}), second(""), named.to_owned()),
        (json!({}), second("testnetwork3-apiserver"), named.to_owned()),
        (nlb(json!([])), second("default-testnetwork3-apiserver"), named.to_owned()),
        (json!({"name": "same"}), second("same"), named.to_owned()),
        (
            json!({"scheme": "internal"}),
            second("second"),
            "secondaryControlPlaneLoadBalancer.scheme: must differ from the primary".to_owned(),
        ),
        (
            json!({}),
            json!({"name": "second", "loadBalancerType": "classic"}),
            "secondaryControlPlaneLoadBalancer.loadBalancerType: must be nlb".to_owned(),
        ),
        (
            json!({"loadBalancerType": "disabled"}),
            second("second"),
            "secondaryControlPlaneLoadBalancer: requires a primary load balancer; set \
             spec.controlPlaneLoadBalancer.loadBalancerType to classic or nlb, or remove this field".to_owned(),
        ),
        (
            json!({"loadBalancerType": "disabled", "subnets": ["subnet-f0000001"]}),
            none.clone(),
            "controlPlaneLoadBalancer.subnets: must be empty when loadBalancerType is disabled"
                .to_owned(),
        ),
    ] {
        assert_eq!(refusals(&first, &second), [expected], "{first} {second}");
    }
}

/// Each is refused by itself, so that all can be corrected at once.
#[test]
fn the_refusals_of_both_load_balancers_are_reported_together() {
    let first = json!({"loadBalancerType": "nlb", "scheme": "internal", "additionalListeners": [
        {"port": 6443}, {"port": 8443, "targetGroupIPType": "ipv6"}, {"port": 8443}]});
    let second = json!({"loadBalancerType": "classic"});
    let refused = refusals(&first, &second);
    for path in [
        "controlPlaneLoadBalancer.additionalListeners[0].port: 6443 is the API server port; choose another one",
        "controlPlaneLoadBalancer.additionalListeners[1].targetGroupIPType: ipv6 requires vpc.ipv6",
        "controlPlaneLoadBalancer.additionalListeners[2].port: 8443 is in the list twice; remove one entry",
        "secondaryControlPlaneLoadBalancer.loadBalancerType: must be nlb",
        "secondaryControlPlaneLoadBalancer.name: must be set and differ from the primary",
        "secondaryControlPlaneLoadBalancer.scheme: must differ from the primary",
    ] {
        assert!(refused.iter().any(|it| it == path), "{path}: {refused:#?}");
    }
}

#[test]
fn the_health_check_of_an_additional_listener_may_ask_another_port() {
    let of = |check: Value| {
        let listener = json!({"port": 8443, "healthCheck": check});
        let balancer = json!({"loadBalancerType": "nlb", "additionalListeners": [listener]});
        let wanted = wanted(json!({"region": "r", "controlPlaneLoadBalancer": balancer}), NEWER);
        wanted.map(|it| it.spec.load_balancer.unwrap().listeners.remove(0))
    };
    let said = json!({"protocol": "HTTPS", "port": "9000", "path": "/p", "intervalSeconds": 7,
        "timeoutSeconds": 3, "thresholdCount": 4, "unhealthyThresholdCount": 5});
    let listener = of(said).unwrap();
    assert_eq!((listener.port, listener.check_port), (8443, Some(9000)));
    let check = listener.health_check;
    assert_eq!((check.protocol.as_deref(), check.path.as_deref()), (Some("HTTPS"), Some("/p")));
    let times = [check.interval, check.timeout, check.healthy, check.unhealthy];
    assert_eq!(times, [7, 3, 4, 5].map(Some));
    assert_eq!(of(json!({"port": "traffic-port"})).unwrap().check_port, None);
    let errors = of(json!({"port": "http"})).unwrap_err();
    let path = "spec.controlPlaneLoadBalancer.additionalListeners[0].healthCheck.port";
    assert_eq!(
        errors[0].to_string(),
        format!("cannot use {path}: \"http\" is not a port or traffic-port")
    );
}
