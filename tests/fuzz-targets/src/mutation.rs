//! [`Random`] numbers from a seed, and a [`Mutator`] that makes inputs of others without coverage, for
//! bounded runs on the compiler as it is.

/// SplitMix64: small, and the same on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % bound as u64).unwrap()
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.draw().to_le_bytes()).flatten().take(length).collect()
    }

    fn byte(&mut self) -> u8 {
        self.draw().to_le_bytes()[0]
    }
}

/// Bytes that end, begin or escape something in one of the formats.
const TOKENS: [&[u8]; 16] = [
    b"\0",
    b"\n",
    b"\"",
    b"{",
    b"}",
    b"[",
    b":",
    b",",
    b"=",
    b"/",
    b"null",
    b"-1",
    b"1e999",
    b"\xff\xff\xff\xff\x7f",
    b"\r\n\r\n",
    b"99999999999999999999",
];

/// Makes inputs from seeds.
pub struct Mutator {
    random: Random,
    seeds: Vec<Vec<u8>>,
}

impl Mutator {
    pub fn new(seed: u64, seeds: Vec<Vec<u8>>) -> Self {
        assert!(!seeds.is_empty(), "a target needs a seed");
        Self { random: Random(seed), seeds }
    }

    /// An input of up to five changes to a seed.
    pub fn input(&mut self) -> Vec<u8> {
        let at = self.random.below(self.seeds.len());
        let mut input = self.seeds[at].clone();
        for _ in 0..=self.random.below(5) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(input.len() + 1);
        let end = (at + random.below(32)).min(input.len());
        match random.below(7) {
            0 if at < input.len() => input[at] = random.byte(),
            1 if at < input.len() => input[at] ^= 1 << random.below(8),
            2 => drop(input.drain(at..end)),
            3 => {
                let part = input[at..end].to_vec();
                let to = random.below(input.len() + 1);
                input.splice(to..to, part);
            }
            4 => {
                let token = TOKENS[random.below(TOKENS.len())];
                input.splice(at..at, token.iter().copied());
            }
            5 => {
                let other = &self.seeds[random.below(self.seeds.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(64)).min(other.len());
                input.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                let length = random.below(8);
                let bytes = random.bytes(length);
                input.splice(at..end, bytes);
            }
        }
    }
}
