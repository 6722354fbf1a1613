//! What is known at one place of a function, and how two such states join.

use crate::code::Arg;

/// What a register holds.
///
/// The low bits are the kind, one bit marks a part of a message that is only
/// peeked at, the rest is the handler's label of a catch or try tag (0 when
/// paths with different handlers joined).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slot(u32);

const KIND: u32 = 15;
const FRAGILE: u32 = 16;
const LABEL: u32 = 5;

impl Slot {
    pub const UNINIT: Slot = Slot(0);
    /// A term.
    pub const TERM: Slot = Slot(1);
    /// The result of `setelement/3`, nothing collected since.
    pub const NEW: Slot = Slot(2);
    /// A match context.
    pub const CTX: Slot = Slot(3);
    /// A term or a match context.
    pub const MAYBE_CTX: Slot = Slot(4);
    /// A part of a message that is only peeked at.
    pub const FRAGILE: Slot = Slot(1 | FRAGILE);

    /// Held the time of a `wait_timeout` whose timer runs now: not read again.
    pub const TIMED: Slot = Slot(7);

    const CATCH: u32 = 5;
    const TRY: u32 = 6;
    /// A tag on some paths, a term on others: only raising can follow.
    const MAYBE_CATCH: u32 = 8;
    const MAYBE_TRY: u32 = 9;

    pub fn tag(is_try: bool, label: u32) -> Slot {
        Slot(if is_try { Slot::TRY } else { Slot::CATCH } | label << LABEL)
    }

    fn kind(self) -> u32 {
        self.0 & KIND
    }

    pub fn is_init(self) -> bool {
        !matches!(self.kind(), 0 | 7)
    }

    /// Whether it may be read as a term.
    pub fn is_term(self) -> bool {
        matches!(self.kind(), 1 | 2)
    }

    /// Whether it may be moved: a term or a match context.
    pub fn is_movable(self) -> bool {
        matches!(self.kind(), 1..=4)
    }

    pub fn is_ctx(self) -> bool {
        self.kind() == 3
    }

    pub fn may_be_ctx(self) -> bool {
        matches!(self.kind(), 3 | 4)
    }

    pub fn is_new(self) -> bool {
        self.kind() == 2
    }

    pub fn is_fragile(self) -> bool {
        self.0 & FRAGILE != 0
    }

    pub fn with_fragile(self, fragile: bool) -> Slot {
        if fragile {
            Slot(self.0 | FRAGILE)
        } else {
            self
        }
    }

    pub fn durable(self) -> Slot {
        if self.is_tag() {
            self
        } else {
            Slot(self.0 & !FRAGILE)
        }
    }

    /// After a possible collection: a new tuple may have become old.
    pub fn aged(self) -> Slot {
        if self.is_new() {
            Slot(self.0 - 1)
        } else {
            self
        }
    }

    pub fn is_tag(self) -> bool {
        matches!(self.kind(), Slot::CATCH | Slot::TRY)
    }

    /// Whether it is a tag, or may be one.
    pub fn may_be_tag(self) -> bool {
        self.is_tag() || matches!(self.kind(), Slot::MAYBE_CATCH | Slot::MAYBE_TRY)
    }

    pub fn is_try(self) -> bool {
        matches!(self.kind(), Slot::TRY | Slot::MAYBE_TRY)
    }

    /// The label of the handler of a tag; 0 when it is not one.
    pub fn handler(self) -> u32 {
        self.0 >> LABEL
    }

    pub fn join(self, other: Slot) -> Slot {
        if self == other {
            return self;
        }
        let fragile = (self.0 | other.0) & FRAGILE;
        match (self.kind(), other.kind()) {
            (0, _) | (_, 0) => Slot::UNINIT,
            (7, 1..=2) | (1..=2, 7) => Slot::TIMED,
            _ if self.may_be_tag() || other.may_be_tag() => self.join_tags(other),
            (a, b) if a == b => Slot(a | fragile),
            (1 | 2, 1 | 2) => Slot(1 | fragile),
            _ => Slot(4 | fragile),
        }
    }

    fn join_tags(self, other: Slot) -> Slot {
        let (a, b) = if self.may_be_tag() {
            (self, other)
        } else {
            (other, self)
        };
        let is_try = a.is_try();
        if !b.may_be_tag() {
            let kind = if is_try {
                Slot::MAYBE_TRY
            } else {
                Slot::MAYBE_CATCH
            };
            return if b.is_movable() && !b.is_fragile() {
                Slot(kind | a.handler() << LABEL)
            } else {
                Slot::UNINIT
            };
        }
        if is_try != b.is_try() {
            return Slot::UNINIT;
        }
        let handler = if a.handler() == b.handler() {
            a.handler()
        } else {
            0
        };
        let kind = a.kind().max(b.kind());
        Slot(kind | handler << LABEL)
    }
}

/// The stack frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// There is none.
    None,
    /// There is one of this size.
    Size(u16),
    /// Paths with different frames joined here: only raising can follow.
    Unknown,
}

/// Whether a message is current in a receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Receive {
    /// No.
    Outside,
    /// Between `loop_rec` and `remove_message` or `loop_rec_end`.
    Peeked,
    /// On some paths only.
    Mixed,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// Those past the end are not initialised.
    pub x: Vec<Slot>,
    /// The slots of the frame; of an unknown frame, those that all paths have.
    pub y: Vec<Slot>,
    pub frame: Frame,
    /// Float registers as bits.
    pub float: Vec<u64>,
    /// Reserved heap: words, floats, funs.
    pub heap: [u64; 3],
    pub receive: Receive,
    /// Between the start of an old-style binary and its last `bs_put_*`: its register.
    pub building: Option<Arg>,
}

impl State {
    pub fn entry(args: Vec<Slot>) -> State {
        State {
            x: args,
            y: Vec::new(),
            frame: Frame::None,
            float: Vec::new(),
            heap: [0; 3],
            receive: Receive::Outside,
            building: None,
        }
    }

    pub fn x(&self, x: u16) -> Slot {
        self.x.get(x as usize).copied().unwrap_or(Slot::UNINIT)
    }

    /// All X registers are gone, but for what stands for a running timer.
    pub fn clear_x(&mut self) {
        for slot in &mut self.x {
            if *slot != Slot::TIMED {
                *slot = Slot::UNINIT;
            }
        }
    }

    pub fn set_x(&mut self, x: u16, slot: Slot) {
        if self.x.len() <= x as usize {
            self.x.resize(x as usize + 1, Slot::UNINIT);
        }
        self.x[x as usize] = slot;
    }

    pub fn float(&self, fr: u16) -> bool {
        self.float
            .get(fr as usize / 64)
            .is_some_and(|w| w >> (fr % 64) & 1 != 0)
    }

    pub fn set_float(&mut self, fr: u16) {
        if self.float.len() <= fr as usize / 64 {
            self.float.resize(fr as usize / 64 + 1, 0);
        }
        self.float[fr as usize / 64] |= 1 << (fr % 64);
    }

    /// The cost of a step on this state, for the budget.
    pub fn size(&self) -> u64 {
        (self.x.len() + self.y.len() + self.float.len()) as u64 / 8 + 1
    }

    /// Whether frame, tags and receive are the same, so that a join keeps them.
    pub fn same_control(&self, other: &State) -> bool {
        let tag = |s: &Slot| if s.may_be_tag() { *s } else { Slot::UNINIT };
        self.frame == other.frame
            && self.receive == other.receive
            && self.y.len() == other.y.len()
            && self.y.iter().map(tag).eq(other.y.iter().map(tag))
    }

    /// Takes the join of this and another state; whether that changed it. Gives
    /// `None` when they cannot join.
    pub fn join(&mut self, other: &State) -> Option<bool> {
        let mut changed = false;
        if self.x.len() > other.x.len() {
            self.x.truncate(other.x.len());
            changed = true;
        }
        for (a, b) in self.x.iter_mut().zip(&other.x) {
            changed |= replace(a, a.join(*b));
        }
        if self.frame != other.frame {
            // Every slot must be a term, in both: the frames are scanned by tag.
            let whole = |s: &State| s.y.iter().all(|s| s.is_init());
            if !whole(self) || !whole(other) {
                return None;
            }
            let len = self.y.len().min(other.y.len());
            if self.y[len..]
                .iter()
                .chain(&other.y[len..])
                .any(|s| s.may_be_tag())
            {
                return None;
            }
            changed |= replace(&mut self.frame, Frame::Unknown) || self.y.len() != len;
            self.y.truncate(len);
        } else if self.frame == Frame::Unknown {
            let len = self.y.len().min(other.y.len());
            if self.y[len..]
                .iter()
                .chain(&other.y[len..])
                .any(|s| s.may_be_tag())
            {
                return None;
            }
            changed |= self.y.len() != len;
            self.y.truncate(len);
        }
        for (a, b) in self.y.iter_mut().zip(&other.y) {
            changed |= replace(a, a.join(*b));
        }
        if self.float.len() > other.float.len() {
            self.float.truncate(other.float.len());
            changed = true;
        }
        for (a, b) in self.float.iter_mut().zip(&other.float) {
            changed |= replace(a, *a & b);
        }
        for (a, b) in self.heap.iter_mut().zip(other.heap) {
            changed |= replace(a, b.min(*a));
        }
        if self.receive != other.receive {
            changed |= replace(&mut self.receive, Receive::Mixed);
        }
        Some(changed)
    }
}

fn replace<T: PartialEq>(place: &mut T, new: T) -> bool {
    let changed = *place != new;
    *place = new;
    changed
}
