//! A Cluster that is made.

use serde_json::{Value, json};

use crate::objects::{baremetal, credential, imported, machine, master, range};
use crate::row::{Row, all_hold, row};

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

fn long() -> String {
    "a".repeat(64)
}

pub(crate) fn rows() -> Vec<Row> {
    [names(), types(), sizes(), ranges(), masters(), set_up(), features(), addresses()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn a_cluster_is_judged_field_by_field() {
    all_hold(rows());
}

fn names() -> Vec<Row> {
    let at = |edits: Value| row("names-are-labels", imported, edits);
    let refused =
        |name: &str| format!("metadata.name: Invalid: Invalid value: \"{name}\": {LABEL}");
    vec![
        at(json!({})),
        at(json!({"metadata.name": "1-a"})),
        at(json!({"metadata": {"generateName": "cls-"}})),
        at(json!({"metadata": {}}))
            .says(&["metadata.name: Required: Required value: name or generateName is required"]),
        at(json!({"metadata.name": "a.b"})).says(&[&refused("a.b")]),
        at(json!({"metadata.name": "A"})).says(&[&refused("A")]),
        at(json!({"metadata.name": "-a"})).says(&[&refused("-a")]),
        at(json!({"metadata.name": long()})).says(&[&format!(
            "metadata.name: Invalid: Invalid value: \"{}\": must be no more than 63 characters",
            long()
        )]),
        row("names-are-labels", credential, json!({"metadata.name": "a.b"})),
        row("names-are-labels", machine, json!({"metadata.name": "a.b"}))
            .given(json!({"clusters": [baremetal()]}))
            .says(&[&refused("a.b")]),
        row("names-are-labels", range, json!({"metadata.name": "a.b"})).says(&[&refused("a.b")]),
    ]
}

fn set_up() -> Vec<Row> {
    let of = |rule, name: &str, value: Value| {
        row(rule, baremetal, json!({format!("spec.machines.1.{name}"): value}))
    };
    let taint = |taint: Value| of("taints-are-whole", "taints", json!([taint]));
    let proxy = |kind: &str| of("proxies-are-known", "proxy", json!({"type": kind, "port": 0}));
    let file = |file: Value| {
        row("files-have-both-paths", baremetal, json!({"spec.features": {"files": [file]}}))
    };
    let at = "spec.machines[1]";
    vec![
        taint(json!({"key": "k", "effect": "NoExecute"})),
        taint(json!({"effect": "NoExecute"})).says(&[&format!("{at}.taints[0].key: Required: Required value: the name of the taint")]),
        taint(json!({"key": "k"})).says(&[&format!("{at}.taints[0].effect: Required: Required value: what the taint does, such as NoSchedule")]),
        taint(json!({"key": "k", "effect": "NoExecute", "timeAdded": "today"})).says(&[&format!("{at}.taints[0].timeAdded: TypeInvalid: Invalid value: \"string\": {at}.taints[0].timeAdded in body must be of type date-time (such as 2026-01-02T03:04:05Z): \"string\"")]),
        taint(json!({"key": "k", "effect": "Never"})).says(&[&format!("{at}.taints[0].effect: NotSupported: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"")]),
        proxy("SOCKS5"),
        proxy("HTTP").says(&[&format!("{at}.proxy.type: NotSupported: Unsupported value: \"HTTP\": supported values: \"SSHJumpServer\", \"SOCKS5\"")]),
        file(json!({"src": "a", "dst": "b"})),
        file(json!({"src": "a"})).says(&["spec.features.files[0].dst: Required: Required value: a file is copied from src to dst"]),
    ]
}

fn types() -> Vec<Row> {
    let at = |edits: Value| row("cluster-types-are-known", imported, edits);
    let version = |edits: Value| row("new-versions-are-supported", baremetal, edits);
    let known = json!({"supportedVersions": ["1.22.3", "1.21.4"]});
    vec![
        at(json!({"spec.type": "EKSHosting"})),
        at(json!({})).given(json!({"clusterTypes": ["Imported"]})),
        at(json!({"spec.type": "Edge"})).given(json!({"clusterTypes": ["Imported"]})).says(&["spec.type: NotSupported: Unsupported value: \"Edge\": supported values: \"Imported\""]),
        at(json!({"spec.type": "Own"})).says(&["spec.type: NotSupported: Unsupported value: \"Own\": supported values: \"Imported\", \"Baremetal\", \"EKSHosting\", \"Edge\""]),
        at(json!({"spec.type": null})).says(&["spec.type: Required: Required value: who made the cluster, such as Imported or Baremetal"]),
        at(json!({"spec.type": ""})).says(&["spec.type: NotSupported: Unsupported value: \"\": supported values: \"Imported\", \"Baremetal\", \"EKSHosting\", \"Edge\""]),
        at(json!({"spec.tenantID": null})).says(&["spec.tenantID: Required: Required value: the tenant that the cluster is of"]),
        at(json!({"spec": null})).says(&["spec: Required: Required value: the desired cluster"]),
        version(json!({})),
        version(json!({})).given(known.clone()),
        row("new-versions-are-supported", imported, json!({"spec.version": "1"})).given(known.clone()),
        version(json!({"spec.displayName": "b", "spec.version": "1.0.0"}))
            .was(json!({"spec.version": "1.0.0"}))
            .given(known.clone()),
        version(json!({"spec.version": "1.0.0"})).given(known).says(&["spec.version: NotSupported: Unsupported value: \"1.0.0\": supported values: \"1.22.3\", \"1.21.4\""]),
        version(json!({"spec.version": null})).says(&["spec.version: Required: Required value: the version of Kubernetes to install"]),
    ]
}

fn sizes() -> Vec<Row> {
    let at = |edits: Value| row("sizes-are-powers-of-two", baremetal, edits);
    let one = |edits: Value| row("one-word-on-services", baremetal, edits);
    let services = "spec.properties.maxClusterServiceNum";
    vec![
        at(json!({"spec.properties": {"maxNodePodNum": 16, "maxClusterServiceNum": 32}})),
        at(json!({"spec.properties": {"maxNodePodNum": 256.0, "maxClusterServiceNum": 32768}})),
        at(json!({"spec.properties": {"maxNodePodNum": 8}})).says(&["spec.properties.maxNodePodNum: NotSupported: Unsupported value: 8: supported values: \"16\", \"32\", \"64\", \"128\", \"256\""]),
        at(json!({"spec.properties": {"maxNodePodNum": 4_294_967_296_i64}})).says(&["spec.properties.maxNodePodNum: Invalid: Invalid value: 4294967296: must be between -2147483648 and 2147483647, inclusive", "spec.properties.maxNodePodNum: NotSupported: Unsupported value: 4294967296: supported values: \"16\", \"32\", \"64\", \"128\", \"256\""]),
        at(json!({"spec.properties": {"maxClusterServiceNum": 65536}})).says(&[&format!("{services}: NotSupported: Unsupported value: 65536: supported values: \"32\", \"64\", \"128\", \"256\", \"512\", \"1024\", \"2048\", \"4096\", \"8192\", \"16384\", \"32768\"")]),
        one(json!({"spec.serviceCIDR": "10.96.0.0/16"})),
        one(json!({"spec.serviceCIDR": "", "spec.properties": {"maxClusterServiceNum": 64}})),
        one(json!({"spec.serviceCIDR": "10.96.0.0/16", "spec.properties": {"maxClusterServiceNum": 64}})).says(&[&format!("{services}: Forbidden: Forbidden: spec.serviceCIDR says how many Services there are")]),
    ]
}

fn ranges() -> Vec<Row> {
    let pods = |edits: Value| row("pod-ranges-are-given", baremetal, edits);
    let masters = |edits: Value| row("masters-are-outside-of-pod-ranges", baremetal, edits);
    let services = |edits: Value| row("service-ranges-stand-apart", baremetal, edits);
    let dual =
        |text: &str| json!({"spec.features": {"ipv6DualStack": true}, "spec.clusterCIDR": text});
    let pods_say = |shown: &str, why: &str| {
        format!("spec.clusterCIDR: Invalid: Invalid value: \"{shown}\": {why}")
    };
    let services_say = |shown: &str, why: &str| {
        format!("spec.serviceCIDR: Invalid: Invalid value: \"{shown}\": {why}")
    };
    vec![
        pods(json!({})),
        pods(dual("10.244.0.0/16,fd00::/48")),
        pods(dual("fd00::/48")),
        row("pod-ranges-are-given", imported, json!({})),
        pods(json!({"spec.clusterCIDR": null})).says(&["spec.clusterCIDR: Required: Required value: the range of Pods, such as 10.244.0.0/16"]),
        pods(json!({"spec.clusterCIDR": "10.244.0.0"})).says(&[&pods_say("10.244.0.0", CIDR)]),
        pods(json!({"spec.clusterCIDR": "10.244.0.0/016"})).says(&[&pods_say("10.244.0.0/016", CIDR)]),
        pods(json!({"spec.clusterCIDR": "::ffff:10.0.0.0/104"})).says(&[&pods_say("::ffff:10.0.0.0/104", CIDR)]),
        pods(json!({"spec.clusterCIDR": "10.244.0.0/16,fd00::/48"})).says(&[&pods_say("10.244.0.0/16,fd00::/48", "must be one CIDR; two need features.ipv6DualStack")]),
        pods(dual("10.244.0.0/16,10.245.0.0/16")).says(&[&pods_say("10.244.0.0/16,10.245.0.0/16", "must be one CIDR of each family")]),
        pods(dual("10.1.0.0/16,fd00::/48,10.2.0.0/16")).says(&[&pods_say("10.1.0.0/16,fd00::/48,10.2.0.0/16", "must be one CIDR of each family")]),
        masters(json!({"spec.machines.1": master("10.243.255.255")})),
        masters(json!({"spec.machines.1": master("10.244.0.1")})).says(&[&pods_say("10.244.0.0/16", "must not contain the address of spec.machines[1]")]),
        services(json!({"spec.serviceCIDR": "10.96.0.0/28"})),
        row("service-ranges-stand-apart", imported, json!({"spec.serviceCIDR": "fd00::/124"})),
        services(json!({"spec.serviceCIDR": "10.96.0.0"})).says(&[&services_say("10.96.0.0", CIDR)]),
        services(json!({"spec.serviceCIDR": "10.96.0.0/29"})).says(&[&services_say("10.96.0.0/29", "must have 16 addresses: the tenth Service is the DNS server")]),
        services(json!({"spec.serviceCIDR": "10.244.255.0/24"})).says(&[&services_say("10.244.255.0/24", "must not overlap spec.clusterCIDR")]),
        services(json!({"spec.serviceCIDR": "10.0.0.0/8", "spec.machines.0": master("192.168.0.1"), "spec.machines.1": null})).says(&[&services_say("10.0.0.0/8", "must not overlap spec.clusterCIDR")]),
    ]
}

fn masters() -> Vec<Row> {
    let some = |edits: Value| row("baremetal-has-masters", baremetal, edits);
    let login = |name: &str, value: Value| {
        let mut machine = master("10.0.0.2");
        machine[name] = value;
        row("machines-can-be-logged-into", baremetal, json!({"spec.machines.1": machine}))
    };
    let different = |ip: &str| {
        row("masters-are-different-machines", baremetal, json!({"spec.machines.1": master(ip)}))
    };
    let none = ["spec.machines: Required: Required value: a Cluster of type Baremetal has masters"];
    let port = |shown: &str| {
        format!(
            "spec.machines[1].port: Invalid: Invalid value: {shown}: must be between 1 and 65535, inclusive"
        )
    };
    let no_key =
        "spec.machines[1].password: Required: Required value: password or privateKey, in base64";
    vec![
        some(json!({"spec.machines.1": null})),
        row("baremetal-has-masters", imported, json!({})),
        some(json!({"spec.machines": null})).says(&none),
        some(json!({"spec.machines": []})).says(&none),
        login("ip", json!("fd00::1")),
        login("port", json!(65535)),
        login("passPhrase", json!("c2VjcmV0")),
        login("ip", json!(null)).says(&["spec.machines[1].ip: Required: Required value: the IP address of the machine"]),
        login("ip", json!("10.0.0.256")).says(&[&format!("spec.machines[1].ip: Invalid: Invalid value: \"10.0.0.256\": {IP}")]),
        login("ip", json!("::ffff:10.0.0.2")).says(&[&format!("spec.machines[1].ip: Invalid: Invalid value: \"::ffff:10.0.0.2\": {IP}")]),
        login("port", json!(null)).says(&["spec.machines[1].port: Required: Required value: the port of SSH, such as 22"]),
        login("port", json!(0)).says(&[&port("0")]),
        login("port", json!(65536)).says(&[&port("65536")]),
        login("port", json!(-1)).says(&[&port("-1")]),
        login("username", json!("")).says(&["spec.machines[1].username: Required: Required value: the user of SSH"]),
        login("password", json!(null)).says(&[no_key]),
        login("password", json!("")).says(&["spec.machines[1].password: TypeInvalid: Invalid value: \"string\": spec.machines[1].password in body must be of type byte (base64): \"string\""]),
        login("password", json!("not base64")).says(&["spec.machines[1].password: TypeInvalid: Invalid value: \"string\": spec.machines[1].password in body must be of type byte (base64): \"string\""]),
        different("10.0.0.3"),
        different("10.0.0.1").says(&["spec.machines[1].ip: Duplicate: Duplicate value: \"10.0.0.1\""]),
    ]
}

fn features() -> Vec<Row> {
    let gpu = |value: Value| {
        row("gpu-types-are-known", baremetal, json!({"spec.features": {"gpuType": value}}))
    };
    let ipvs = |edits: Value| row("ipvs-needs-a-service-range", baremetal, edits);
    let ha = |value: Value| {
        row("high-availability-has-an-address", baremetal, json!({"spec.features": {"ha": value}}))
    };
    let ip = |at: &str, shown: &str| {
        format!("spec.features.ha.{at}.vip: Invalid: Invalid value: \"{shown}\": {IP}")
    };
    vec![
        gpu(json!("Physical")),
        gpu(json!("Virtual")),
        gpu(json!(null)),
        gpu(json!("virtual")).says(&["spec.features.gpuType: NotSupported: Unsupported value: \"virtual\": supported values: \"Physical\", \"Virtual\""]),
        ipvs(json!({"spec.features": {"ipvs": true}, "spec.serviceCIDR": "10.96.0.0/16"})),
        ipvs(json!({"spec.features": {"ipvs": false}})),
        ipvs(json!({"spec.features": {"ipvs": true}})).says(&["spec.features.ipvs: Invalid: Invalid value: true: needs spec.serviceCIDR"]),
        ha(json!({"tke": {"vip": "10.0.0.9", "vrid": 255}})),
        ha(json!({"thirdParty": {"vip": "fd00::9", "vport": 6443}, "tke": null})),
        ha(json!({"thirdParty": {"vip": "10.0.0.9"}})).says(&["spec.features.ha.thirdParty.vport: Invalid: Invalid value: \"\": must be between 1 and 65535, inclusive"]),
        ha(json!({"tke": {"vip": "lb"}})).says(&[&ip("tke", "lb")]),
        ha(json!({"tke": {}})).says(&[&ip("tke", "")]),
        ha(json!({"tke": {"vip": "10.0.0.9", "vrid": 256}})).says(&["spec.features.ha.tke.vrid: Invalid: Invalid value: 256: must be between 1 and 255, inclusive"]),
        ha(json!({"tke": {"vip": "10.0.0.9", "vrid": 0}})).says(&["spec.features.ha.tke.vrid: Invalid: Invalid value: 0: must be between 1 and 255, inclusive"]),
        ha(json!({"thirdParty": {"vip": "x", "vport": 0}})).says(&[
            "spec.features.ha.thirdParty.vport: Invalid: Invalid value: 0: must be between 1 and 65535, inclusive",
            &ip("thirdParty", "x"),
        ]),
    ]
}

fn addresses() -> Vec<Row> {
    let some = |edits: Value| row("imported-clusters-have-addresses", imported, edits);
    let whole = |name: &str, value: Value| {
        let mut address = json!({"type": "Real", "host": "api.example", "port": 443, "path": "/a"});
        address[name] = value;
        row("addresses-are-whole", imported, json!({"spec.addresses.1": address}))
    };
    let of_status = |list: Value| json!({"spec.addresses": null, "status": {"addresses": list}});
    let none = [
        "status.addresses: Required: Required value: say in spec.addresses where the API server of the cluster is",
    ];
    vec![
        some(json!({})),
        some(of_status(json!([{"type": "Real", "host": "h", "port": 1}]))),
        row("imported-clusters-have-addresses", baremetal, json!({})),
        some(json!({"spec.addresses": null})).says(&none),
        some(json!({"spec.addresses": []})).says(&none),
        some(of_status(json!([{"type": "Real", "port": 1}]))).says(&["status.addresses[0].host: Required: Required value: the name or IP address of the API server"]),
        some(of_status(json!([{"type": "Real", "host": "h", "port": 0}]))).says(&["status.addresses[0].port: Invalid: Invalid value: 0: must be between 1 and 65535, inclusive"]),
        whole("type", json!("Advertise")),
        whole("path", json!(null)),
        whole("path", json!("")),
        whole("port", json!(65535)),
        row("addresses-are-whole", baremetal, json!({"spec.addresses": [{"type": "Public", "host": "h", "port": 1}]})),
        whole("type", json!("Public")).says(&["spec.addresses[1].type: NotSupported: Unsupported value: \"Public\": supported values: \"Advertise\", \"Real\", \"Internal\""]),
        whole("type", json!(null)).says(&["spec.addresses[1].type: Required: Required value: what kind of address it is, such as Internal"]),
        whole("host", json!("")).says(&["spec.addresses[1].host: Required: Required value: the name or IP address of the API server"]),
        whole("host", json!("https://api.example")).says(&["spec.addresses[1].host: Invalid: Invalid value: \"https://api.example\": must be a name or an IP address and nothing else"]),
        whole("host", json!("user:planted@api.example")).says(&["spec.addresses[1].host: Invalid: Invalid value: \"(hidden)\": must be a name or an IP address and nothing else"]),
        whole("port", json!(null)).says(&["spec.addresses[1].port: Required: Required value: the port of the API server, such as 6443"]),
        whole("port", json!(70_000)).says(&["spec.addresses[1].port: Invalid: Invalid value: 70000: must be between 1 and 65535, inclusive"]),
        whole("path", json!("a")).says(&["spec.addresses[1].path: Invalid: Invalid value: \"a\": must begin with /"]),
        row("addresses-are-whole", baremetal, json!({"spec.addresses": [{"type": "Tunnel", "host": "h", "port": 1}]})).says(&["spec.addresses[0].type: NotSupported: Unsupported value: \"Tunnel\": supported values: \"Public\", \"Advertise\", \"Real\", \"Internal\", \"Support\""]),
    ]
}
