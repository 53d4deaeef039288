"""Has moto find the tags of one resource without a look at those of all others.

Python imports this before moto's server begins, since tests name this folder in PYTHONPATH. moto asks for the tags of each
resource by a filter of its id, and compares that with every tag that there is: with a few hundred clusters one describe
call takes longer than its caller waits. What is answered is the same.
"""

from moto.ec2.models import tags

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
