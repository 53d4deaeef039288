//! `check --pool`: one pool and the Nodes that have addresses of it.

use cidr::IpNet;
use flags::Values;
use node_ipam::{PoolDetails, Ranges, Surveyed, details};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::nodes::CLUSTER_CIDRS;
use super::recorded::Recorded;
use crate::settings::ProcessSettings;

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
    settings: &ProcessSettings,
    (wanted, form): (&str, Form),
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
    let recorded = Recorded::read(cluster, settings).await;
    let show = if form.json { in_json } else { in_text };
    Ok(show(&found, &recorded, form.claims))
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

fn in_text(found: &[PoolDetails], recorded: &Recorded, claims: bool) -> String {
    let each: Vec<String> = found.iter().map(|pool| lines(pool, recorded, claims)).collect();
    each.join("\n")
}

fn lines(pool: &PoolDetails, recorded: &Recorded, claims: bool) -> String {
    let [recorded, resting] = recorded.in_text(pool);
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
        ("resting", resting),
        ("recorded", recorded),
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

fn in_json(found: &[PoolDetails], recorded: &Recorded, claims: bool) -> String {
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
            "recorded": recorded.in_json(pool), "claims": listed.collect::<Vec<Value>>(),
        })
    });
    format!("{:#}\n", json!({"pools": pools.collect::<Vec<Value>>()}))
}

fn texts(cidrs: &[IpNet]) -> Vec<String> {
    cidrs.iter().map(cidr::canonical).collect()
}

#[cfg(test)]
mod tests {
    use node_ipam::PoolRecord;

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

    /// A record that was written by somebody who would like to control the terminal.
    fn recorded(leads: Option<bool>) -> Recorded {
        let pools = json!([{
            "pool": "10.0.0.0/16", "mask": 24, "state": "draining", "blocks": 256, "used": 7,
            "free": 249, "resting": 3,
        }]);
        let record = PoolRecord::of_config_map(&json!({
            "metadata": {"labels": {informer::MANAGED_BY: crate::build::PRODUCT}},
            "data": {
                "leader": "h\u{1b}_1", "written": "2026-01-02T03:04:05Z", "pools": pools.to_string(),
            },
        }));
        Recorded::Read { record: record.unwrap(), leads }
    }

    #[test]
    fn an_operator_reads_state_numbers_and_nodes() {
        let found = details(&nodes(2), &ranges(), "10.0.0.0/16");
        assert_eq!(
            in_text(&found, &recorded(Some(true)), false),
            "Pool 10.0.0.0/16\n\
             \x20 state               draining\n\
             \x20 blocks              256 of /24\n\
             \x20 used                4\n\
             \x20 services, excluded  2\n\
             \x20 free                252\n\
             \x20 longest free run    252\n\
             \x20 resting             3\n\
             \x20 recorded            7 used, 249 free at 2026-01-02T03:04:05Z by h\\u{1b}_1, which leads\n\
             \x20 Nodes               2\n\
             \x20   n0  10.0.2.0/24\n\
             \x20   n1  10.0.3.0/24\n"
        );
        let none = Recorded::Missing("no ConfigMap".to_owned());
        let many = details(&nodes(25), &ranges(), "fd00::/56");
        assert!(in_text(&many, &none, false).ends_with("    and 5 more; list all with --claims\n"));
        assert_eq!(in_text(&many, &none, true).lines().count(), 10 + 25);
    }

    #[test]
    fn programs_read_it_as_json_and_an_unknown_pool_names_those_there_are() {
        let text = in_json(&details(&nodes(1), &ranges(), "10.9.0.0/24"), &recorded(None), false);
        let expected = json!({"pools": [{
            "pool": "10.9.0.0/24", "clusterCIDRName": null, "state": "serving", "mask": 24,
            "blocks": 1, "used": 0, "free": 1, "servicesExcluded": 0, "longestFreeRun": 1,
            "nodes": 0, "claims": [], "recorded": null,
        }]});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        let found = details(&[], &ranges(), "10.0.0.0/16");
        let text = in_json(&found, &recorded(Some(false)), false);
        let shown: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({
            "used": 7, "free": 249, "resting": 3, "state": "draining", "leads": false,
            "written": "2026-01-02T03:04:05Z", "leader": "h\u{1b}_1",
        });
        assert_eq!(shown["pools"][0]["recorded"], expected);
        assert!(details(&[], &ranges(), "10.8.0.0/24").is_empty());
        let told = unknown("10.8.0.0/24", &ranges());
        assert!(told.ends_with("pools: 10.0.0.0/16, fd00::/56, 10.9.0.0/24"), "{told}");
    }
}
