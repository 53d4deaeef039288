//! [`Prices`]: what AWS asks for an hour of what a cluster has, as a flag says it, and what that comes
//! to. Pure. AWS changes its prices and tells them to its customers only, so none are built in
//! (`rule:no-price-is-made-up`).

use std::collections::BTreeMap;
use std::fmt;

use aws_network::{Upkeep, listed};

/// The name that stands for every region of which nothing else is said.
const ANY_REGION: &str = "*";

const NAT_GATEWAY: &str = "natGateway";
const PUBLIC_ADDRESS: &str = "publicIPv4";
const CLASSIC: &str = "classicLoadBalancer";
const NETWORK: &str = "networkLoadBalancer";
/// Names beside the types of instances, each of which has a dot.
const NAMES: [&str; 4] = [NAT_GATEWAY, PUBLIC_ADDRESS, CLASSIC, NETWORK];

/// Prices for an hour, by region and name, in one currency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices(BTreeMap<String, BTreeMap<String, f64>>);

/// Texts that are no prices.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read {0:?} as prices, whose form is region:name=price,name=price;region:… with the region * for all others, \
     and the names natGateway, publicIPv4, classicLoadBalancer, networkLoadBalancer or the type of an instance"
)]
pub struct PricesError(String);

/// What something costs in an hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// In the currency of the prices; of all that has a price.
    pub hourly: f64,
    /// What has none.
    pub without_price: Vec<String>,
}

impl Prices {
    /// Reads `region:name=price,name=price;region:…`; an empty text holds none.
    ///
    /// # Errors
    /// Which part of the text is none.
    pub fn read(text: &str) -> Result<Self, PricesError> {
        let mut prices = Self::default();
        for of_region in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong = |what: &str| PricesError(what.to_owned());
            let (region, all) = of_region.split_once(':').ok_or_else(|| wrong(of_region))?;
            let (region, mut read) = (region.trim(), BTreeMap::new());
            for one in all.split(',') {
                let (name, price) = price(one).ok_or_else(|| wrong(one))?;
                read.insert(name, price);
            }
            let is_new = prices.0.insert(region.to_owned(), read).is_none();
            if region.is_empty() || !is_new {
                return Err(wrong(of_region));
            }
        }
        Ok(prices)
    }

    /// What an hour costs in a region; none where no prices are known.
    pub fn cost(&self, region: &str, upkeep: &Upkeep) -> Option<Cost> {
        let prices = self.0.get(region).or_else(|| self.0.get(ANY_REGION))?;
        let mut cost = Cost { hourly: 0.0, without_price: Vec::new() };
        for (name, number) in named(upkeep) {
            match prices.get(name) {
                Some(price) => cost.hourly += price * f64::from(number),
                None => cost.without_price.push(name.to_owned()),
            }
        }
        Some(cost)
    }
}

fn price(text: &str) -> Option<(String, f64)> {
    let (name, price) = text.split_once('=')?;
    let (name, price) = (name.trim(), price.trim().parse::<f64>().ok()?);
    let is_known = NAMES.contains(&name) || name.contains('.');
    (is_known && price.is_finite() && price >= 0.0).then(|| (name.to_owned(), price))
}

/// What there is, by the name of its price, and how much of it.
fn named(upkeep: &Upkeep) -> Vec<(&str, u32)> {
    let mut all = vec![
        (NAT_GATEWAY, upkeep.nat_gateways),
        (PUBLIC_ADDRESS, upkeep.public_addresses),
        (CLASSIC, upkeep.classic_load_balancers),
        (NETWORK, upkeep.network_load_balancers),
    ];
    all.extend(upkeep.instances.iter().map(|(of_type, number)| (&**of_type, *number)));
    let counted = all.into_iter().filter(|(_, number)| *number > 0);
    counted.map(|(name, number)| (name, u32::try_from(number).unwrap_or(u32::MAX))).collect()
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.4}", self.hourly)?;
        if self.without_price.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = self.without_price.iter().map(String::as_str).collect();
        write!(formatter, " without {}", listed(&names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upkeep() -> Upkeep {
        Upkeep {
            nat_gateways: 3,
            public_addresses: 7,
            classic_load_balancers: 1,
            network_load_balancers: 0,
            instances: BTreeMap::from([("t3.micro".to_owned(), 1)]),
        }
    }

    /// rule:no-price-is-made-up
    #[test]
    fn a_cost_is_the_sum_of_the_prices_of_the_region_and_names_what_has_none() {
        let text = "us-east-2:natGateway=0.045,publicIPv4=0.005,classicLoadBalancer=0.025,t3.micro=0.0104;\
                    *: natGateway=0.05 , networkLoadBalancer=0.02;";
        let prices = Prices::read(text).unwrap();
        let cost = |region: &str| prices.cost(region, &upkeep()).unwrap().to_string();
        assert_eq!(cost("us-east-2"), "0.2054");
        let rest = "0.1500 without publicIPv4; classicLoadBalancer; t3.micro";
        assert_eq!(cost("eu-west-1"), rest);
        assert_eq!(Prices::read("").unwrap().cost("us-east-2", &upkeep()), None);
        let nothing = prices.cost("us-east-2", &Upkeep::default()).unwrap();
        assert_eq!(nothing, Cost { hourly: 0.0, without_price: Vec::new() });
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for text in [
            "us-east-2",
            "us-east-2:",
            ":natGateway=1",
            "us-east-2:natGateway",
            "us-east-2:natGateway=free",
            "us-east-2:natGateway=-1",
            "us-east-2:natGateway=NaN",
            "us-east-2:natGateway=inf",
            "us-east-2:natgateway=1",
            "us-east-2:natGateway=1;us-east-2:natGateway=2",
        ] {
            assert!(Prices::read(text).is_err(), "{text}");
        }
    }
}
