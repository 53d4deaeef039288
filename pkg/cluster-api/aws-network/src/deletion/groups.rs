//! Security groups at the end of a cluster. AWS deletes none that a rule of another names, so such
//! rules go first.

use crate::action::Action;
use crate::part::{Part, Reason};
use crate::plan::Plan;
use crate::resources::SecurityGroup;
use crate::rule::{Rule, Source};

use super::ending::Ending;
use super::load_balancers;

fn ours<'a>(ending: &Ending<'a>) -> impl Iterator<Item = &'a SecurityGroup> {
    let ending = *ending;
    ending.observed.security_groups.all().iter().filter(move |found| is_ours(&ending, found))
}

fn is_ours(ending: &Ending<'_>, group: &SecurityGroup) -> bool {
    let removal = ending.removal;
    let is_of_service = || {
        ending.collects_in(&group.vpc)
            && removal.identity.is_service_group(&group.tags, &group.name)
    };
    // The default group of a VPC goes with it, whatever its tags.
    group.name != "default"
        && !removal.named_groups.contains(&group.id)
        && (ending.is_ours(&group.tags, &group.id) || is_of_service())
}

pub(super) fn plan(ending: &Ending<'_>, plan: &mut Plan) {
    let are_free = load_balancers::are_gone(ending) && ending.bastions_are_gone();
    for group in ours(ending) {
        let naming = named_by(ending, group);
        if are_free && naming.is_none() {
            let group = group.id.clone();
            plan.act(Part::Deletion, Action::DeleteSecurityGroup { group });
            continue;
        }
        let rules: Vec<Rule> = rules_naming_others(group).cloned().collect();
        if !rules.is_empty() {
            plan.act(Part::Deletion, Action::RevokeIngress { group: group.id.clone(), rules });
        }
        if let Some(other) = naming.filter(|other| !is_ours(ending, other)) {
            let message =
                format!("{} is named by a rule of {}, which is not ours", group.id, other.id);
            plan.problem(Part::Deletion, Reason::InUse, message);
        }
    }
}

/// The rules of a group that keep another one from being deleted.
fn rules_naming_others(group: &SecurityGroup) -> impl Iterator<Item = &Rule> {
    group.rules.iter().filter(|rule| match &rule.key.source {
        Source::Group(id) => *id != group.id,
        Source::Cidr(_) | Source::PrefixList(_) => false,
    })
}

fn named_by<'a>(ending: &Ending<'a>, group: &SecurityGroup) -> Option<&'a SecurityGroup> {
    let source = Source::Group(group.id.clone());
    let mut others =
        ending.observed.security_groups.all().iter().filter(|other| other.id != group.id);
    others.find(|other| other.rules.iter().any(|rule| rule.key.source == source))
}
