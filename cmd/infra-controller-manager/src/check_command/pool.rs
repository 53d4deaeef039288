//! `check --pool`: one pool and the Nodes that have addresses of it.

use cidr::IpNet;
use flags::Values;
use node_ipam::{PoolDetails, Ranges, Surveyed, details};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::nodes::CLUSTER_CIDRS;

/// Nodes that are listed without `--claims`, and pools that a message names.
const LISTED: usize = 20;

/// How it is shown.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// All Nodes, not the first ones only.
    pub(super) claims: bool,
    pub(super) json: bool,
}

/// The pools of this range, or of the ClusterCIDR of this name.
///
/// # Errors
/// The API server cannot be asked, or there is no such pool.
pub(super) async fn show(
    cluster: &Cluster,
    values: &Values,
    wanted: &str,
    form: Form,
) -> Result<String, String> {
    let mut ranges = Ranges::of(values).ok_or(
        "cannot show a pool: these flags assign no pod CIDRs; set --allocate-node-cidrs and the \
         flags of the cluster",
    )?;
    let nodes: Vec<Surveyed> = cluster.list("/api/v1/nodes?").await.map_err(|error| {
        format!("cannot list the Nodes: {error}; allow the identity of --kubeconfig to list nodes")
    })?;
    if ranges.are_of_cluster_cidrs() {
        let objects = cluster.list::<Value>(CLUSTER_CIDRS).await.map_err(|error| {
            format!(
                "cannot list the ClusterCIDRs: {error}; allow the identity of --kubeconfig to list \
                 clustercidrs"
            )
        })?;
        ranges = ranges.with_cluster_cidrs(objects);
    }
    let found = details(&nodes, &ranges, wanted);
    if found.is_empty() {
        return Err(unknown(wanted, &ranges));
    }
    Ok(if form.json { in_json(&found, form.claims) } else { in_text(&found, form.claims) })
}

fn unknown(wanted: &str, ranges: &Ranges) -> String {
    let mut there: Vec<String> =
        ranges.pools.iter().take(LISTED).map(|pool| cidr::canonical(&pool.cidr())).collect();
    if ranges.pools.len() > LISTED {
        there.push(format!("{} more", ranges.pools.len() - LISTED));
    }
    if there.is_empty() {
        there.push("none".to_owned());
    }
    let there = there.join(", ");
    format!("cannot show pool {wanted:?}: no pool has this range or name; pools: {there}")
}

fn in_text(found: &[PoolDetails], claims: bool) -> String {
    let each: Vec<String> = found.iter().map(|pool| lines(pool, claims)).collect();
    each.join("\n")
}

fn lines(pool: &PoolDetails, claims: bool) -> String {
    let PoolDetails { cluster_cidr, state, usage, kept_out, longest_free_run, held } = pool;
    let free = usage.blocks - usage.used;
    let of = cluster_cidr.as_ref().map(|name| format!(" of ClusterCIDR {name}"));
    let range = cidr::canonical(&usage.range);
    let mut lines = vec![format!("Pool {range}{}", of.unwrap_or_default())];
    let facts = [
        ("state", (*state).to_owned()),
        ("blocks", format!("{} of /{}", usage.blocks, usage.mask)),
        ("used", usage.used.to_string()),
        ("services, excluded", kept_out.to_string()),
        ("free", free.to_string()),
        ("longest free run", longest_free_run.to_string()),
        ("resting", "see node_ipam_resting_claims of the leader".to_owned()),
        ("Nodes", usage.nodes.to_string()),
    ];
    lines.extend(facts.map(|(what, value)| format!("  {what:18}  {value}")));
    let shown = if claims { held.len() } else { held.len().min(LISTED) };
    let width = held.iter().take(shown).map(|(node, _)| node.len()).max().unwrap_or_default();
    let node = |(node, cidrs): &(String, Vec<IpNet>)| {
        format!("    {node:width$}  {}", texts(cidrs).join(", "))
    };
    lines.extend(held.iter().take(shown).map(node));
    if shown < held.len() {
        lines.push(format!("    and {} more; list all with --claims", held.len() - shown));
    }
    lines.join("\n") + "\n"
}

fn in_json(found: &[PoolDetails], claims: bool) -> String {
    // 2^64 blocks are one more than a number of JSON readers holds.
    let number = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
    let pools = found.iter().map(|pool| {
        let PoolDetails { cluster_cidr, state, usage, kept_out, longest_free_run, held } = pool;
        let listed = held.iter().take(if claims { held.len() } else { LISTED });
        let listed = listed.map(|(node, cidrs)| json!({"node": node, "podCIDRs": texts(cidrs)}));
        json!({
            "pool": cidr::canonical(&usage.range), "clusterCIDRName": cluster_cidr, "state": state,
            "mask": usage.mask, "blocks": number(usage.blocks), "used": number(usage.used),
            "free": number(usage.blocks - usage.used), "servicesExcluded": number(*kept_out),
            "longestFreeRun": number(*longest_free_run), "nodes": usage.nodes,
            "claims": listed.collect::<Vec<Value>>(),
        })
    });
    format!("{:#}\n", json!({"pools": pools.collect::<Vec<Value>>()}))
}

fn texts(cidrs: &[IpNet]) -> Vec<String> {
    cidrs.iter().map(cidr::canonical).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_command::tests::values;

    fn ranges() -> Ranges {
        let flags = ["--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/16,fd00::/56"];
        let more = ["--additional-cluster-cidrs=10.9.0.0/24", "--drain-cluster-cidrs=10.0.0.0/16"];
        let services = ["--service-cluster-ip-range=10.0.0.0/23"];
        Ranges::of(&values(&[&flags[..], &more, &services].concat())).unwrap()
    }

    fn nodes(count: u8) -> Vec<Surveyed> {
        let node = |index: u8| Surveyed {
            name: format!("n{index}"),
            cidrs: vec![format!("10.0.{}.0/24", index + 2), format!("fd00:0:0:{index:x}::/64")],
            ..Surveyed::default()
        };
        (0..count).map(node).collect()
    }

    #[test]
    fn an_operator_reads_state_numbers_and_nodes() {
        let found = details(&nodes(2), &ranges(), "10.0.0.0/16");
        assert_eq!(
            in_text(&found, false),
            "Pool 10.0.0.0/16\n\
             \x20 state               draining\n\
             \x20 blocks              256 of /24\n\
             \x20 used                4\n\
             \x20 services, excluded  2\n\
             \x20 free                252\n\
             \x20 longest free run    252\n\
             \x20 resting             see node_ipam_resting_claims of the leader\n\
             \x20 Nodes               2\n\
             \x20   n0  10.0.2.0/24\n\
             \x20   n1  10.0.3.0/24\n"
        );
        let many = details(&nodes(25), &ranges(), "fd00::/56");
        assert!(in_text(&many, false).ends_with("    and 5 more; list all with --claims\n"));
        assert_eq!(in_text(&many, true).lines().count(), 9 + 25);
    }

    #[test]
    fn programs_read_it_as_json_and_an_unknown_pool_names_those_there_are() {
        let text = in_json(&details(&nodes(1), &ranges(), "10.9.0.0/24"), false);
        let expected = json!({"pools": [{
            "pool": "10.9.0.0/24", "clusterCIDRName": null, "state": "serving", "mask": 24,
            "blocks": 1, "used": 0, "free": 1, "servicesExcluded": 0, "longestFreeRun": 1,
            "nodes": 0, "claims": [],
        }]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        assert!(details(&[], &ranges(), "10.8.0.0/24").is_empty());
        let told = unknown("10.8.0.0/24", &ranges());
        assert!(told.ends_with("pools: 10.0.0.0/16, fd00::/56, 10.9.0.0/24"), "{told}");
    }
}
