"""Has moto answer faster, and answer upstream's AWS provider.

Python imports this before moto's server begins, since tests name this folder in PYTHONPATH. moto asks for the tags of
each resource by a filter of its id, and compares that with every tag that there is: with a few hundred clusters one
describe call takes longer than its caller waits. moto lists its own folder and the methods of a class for each
request, which is more than half of the time of a request; here it does so once. What is answered is the same.
Upstream's provider sends no ports for protocols that have none, at which moto fails, and asks for the target groups of
load balancers without any, for which AWS has an empty list and moto an error. It uses an IPv6 CIDR of a subnet only
while its state is associated (EC2 API, SubnetCidrBlockState), which moto writes as a Python dictionary.
"""

import gc
from functools import cache

gc.set_threshold(100_000, 50, 100)  # before the imports, which make as many objects that stay

from moto import backends
from moto.core import responses
from moto.ec2.models import security_groups, subnets, tags
from moto.elbv2.exceptions import TargetGroupNotFoundError
from moto.elbv2.models import ELBv2Backend

modules = frozenset(backends.list_of_moto_modules())
backends.list_of_moto_modules = lambda: modules
responses.method_names_from_class = cache(responses.method_names_from_class)

WILDCARDS = "*?[\\"
with_filters = tags.TagBackend.describe_tags


def describe_tags(self, filters=None):
    ids = (filters or {}).get("resource-id", [])
    is_plain = list(filters or {}) == ["resource-id"] and not any(c in i for i in ids for c in WILDCARDS)
    if not is_plain:
        return with_filters(self, filters)
    return [
        {
            "resource_id": resource,
            "key": key,
            "value": value,
            "resource_type": tags.EC2_PREFIX_TO_RESOURCE.get(tags.get_prefix(resource), ""),
        }
        for resource in dict.fromkeys(ids)
        for key, value in list(self.tags.get(resource, {}).items())
    ]


tags.TagBackend.describe_tags = describe_tags

rule_with_ports = security_groups.SecurityGroupRule.__init__


def rule(self, ec2_backend, ip_protocol, group_id, from_port, to_port, *rest, **named):
    ports = (-1 if port is None else port for port in (from_port, to_port))
    rule_with_ports(self, ec2_backend, ip_protocol, group_id, *ports, *rest, **named)


security_groups.SecurityGroupRule.__init__ = rule

known_target_groups = ELBv2Backend.describe_target_groups


def describe_target_groups(self, load_balancer_arn, target_group_arns, names):
    try:
        return known_target_groups(self, load_balancer_arn, target_group_arns, names)
    except TargetGroupNotFoundError:
        if load_balancer_arn:
            return []
        raise


ELBv2Backend.describe_target_groups = describe_target_groups

associations_of_subnet = subnets.Subnet.ipv6_cidr_block_association_set.fget


def ipv6_cidr_block_association_set(self):
    return [
        {**association, "ipv6CidrBlockState": association["ipv6CidrBlockState"]["state"]}
        for association in associations_of_subnet(self)
    ]


subnets.Subnet.ipv6_cidr_block_association_set = property(ipv6_cidr_block_association_set)
