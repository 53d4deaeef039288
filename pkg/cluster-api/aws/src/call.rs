//! [`Call`]: what is known of a call before it is sent.

use crate::limits::{Class, Service};

/// One call of one API.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) service: Service,
    pub(crate) class: Class,
    /// AWS's name of it.
    pub(crate) operation: &'static str,
    /// It may be sent again when nobody knows what became of it.
    pub(crate) is_repeatable: bool,
}

impl Call {
    /// A describe call of EC2.
    pub(crate) fn ec2_read(operation: &'static str) -> Self {
        Self { service: Service::Ec2, class: Class::Read, operation, is_repeatable: true }
    }

    /// A describe call of either API of load balancers.
    pub(crate) fn balancer_read(operation: &'static str) -> Self {
        Self { service: Service::LoadBalancers, ..Self::ec2_read(operation) }
    }
}
