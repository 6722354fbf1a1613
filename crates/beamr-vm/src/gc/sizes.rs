//! Heap sizes: OTP's sequence, so that `process_info` shows familiar numbers.

/// Fibonacci steps before growth by a fifth begins.
const FIBONACCI: usize = 23;
/// Entries of the table (the last is beyond any address space).
const COUNT: usize = 160;

const fn table() -> [usize; COUNT] {
    let mut t = [0usize; COUNT];
    t[0] = 12;
    t[1] = 38;
    let mut i = 2;
    while i < COUNT {
        t[i] = if i < FIBONACCI {
            t[i - 1] + t[i - 2] + 1
        } else {
            t[i - 1].saturating_add(t[i - 1] / 5)
        };
        i += 1;
    }
    t
}

static SIZES: [usize; COUNT] = table();

/// Words of the first block of a process with the default `min_heap_size`: most processes that only wait never need more.
/// It counts as a block of that size for whoever asks.
pub const FIRST_SIZE: usize = 64;
/// The default `min_heap_size` (words).
pub const DEFAULT_MIN_SIZE: usize = 233;
/// The off-heap weight that makes the first collection due (words).
pub const DEFAULT_MIN_VIRTUAL: usize = 46422;

/// The smallest size of the sequence that is at least `words` (`words` itself beyond the sequence).
pub fn next_size(words: usize) -> usize {
    let i = SIZES.partition_point(|s| *s < words);
    SIZES.get(i).copied().unwrap_or(words)
}

/// The smallest size of the sequence above `words`.
pub fn next_larger_size(words: usize) -> usize {
    next_size(words.saturating_add(1))
}

/// The limit of a virtual heap that weighs `weight` after a collection and had `limit` before: grows by the golden ratio
/// while more than three quarters are used, halves below one quarter.
pub fn next_virtual(weight: usize, limit: usize, min: usize) -> usize {
    let mut limit = limit;
    if weight / 3 > limit / 4 {
        while weight / 3 > limit / 4 {
            limit = limit.saturating_add(limit / 1000 * 618 + limit % 1000 * 618 / 1000 + 1);
        }
    } else if weight < limit / 4 {
        limit /= 2;
    }
    limit.max(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_otps() {
        assert_eq!(next_size(0), 12);
        assert_eq!(next_size(13), 38);
        assert_eq!(next_size(233), 233);
        let mut s = vec![12usize];
        while s.len() < 12 {
            s.push(next_larger_size(*s.last().unwrap()));
        }
        assert_eq!(
            s,
            [12, 38, 51, 90, 142, 233, 376, 610, 987, 1598, 2586, 4185]
        );
    }

    #[test]
    fn growth_slows_down() {
        let big = next_size(1_300_000);
        let next = next_larger_size(big);
        assert_eq!(next, big + big / 5);
        assert_eq!(next_size(usize::MAX), usize::MAX);
    }

    #[test]
    fn virtual_heap() {
        assert_eq!(next_virtual(0, 46422, 46422), 46422);
        assert!(next_virtual(46422, 46422, 46422) > 46422);
        assert_eq!(next_virtual(10, 200_000, 46422), 100_000);
        assert_eq!(next_virtual(60_000, 100_000, 46422), 100_000);
    }
}
