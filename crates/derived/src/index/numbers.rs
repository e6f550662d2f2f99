//! The numbers of one list in memory, in order.

/// The numbers of one list. Most lists have a single one: the Record about an object.
#[derive(Debug)]
pub(super) enum Numbers {
    One(u64),
    Many(Vec<u64>),
}

impl Numbers {
    pub(super) fn as_slice(&self) -> &[u64] {
        match self {
            Self::One(number) => std::slice::from_ref(number),
            Self::Many(numbers) => numbers,
        }
    }

    /// The numbers, in a vector from now on.
    pub(super) fn many(&mut self) -> &mut Vec<u64> {
        if let Self::One(number) = self {
            // A charge has two Records, and perhaps a few more.
            let mut numbers = Vec::with_capacity(4);
            numbers.push(*number);
            *self = Self::Many(numbers);
        }
        match self {
            Self::Many(numbers) => numbers,
            Self::One(_) => unreachable!("it was just made many"),
        }
    }

    pub(super) fn add(&mut self, number: u64) {
        let numbers = self.many();
        if numbers.last().is_none_or(|last| *last <= number) {
            numbers.push(number);
        } else {
            numbers.insert(numbers.partition_point(|known| *known <= number), number);
        }
    }
}
