//! The messages of one process in order, with the receive position and receive markers.
//!
//! The list is made of the nodes that carried the messages through the signal queue. The position of a
//! running receive is the node *before* the message looked at, so that a message is taken out in constant time;
//! a marker likewise is the last node that was there when it was reserved. When a node goes, what
//! pointed to it points to the one before: only the node at the position is ever taken out, whose
//! predecessor is known.

use beamr_abi::{Heap, STACK_SLACK};
use beamr_sync::signal_queue::Node;
use beamr_term::word::PRIMARY_HEADER;
use beamr_term::{Fragment, FunEntry, Header, Leaving, Word};

use super::carried::Carried;
use super::ids::RefKey;
use crate::gc;
use crate::signal::Signal;

/// A message on its way or in a mailbox.
#[derive(Debug)]
pub struct Message {
    /// Link of the mailbox list.
    next: *mut Node<Signal>,
    /// The message. Lies in `fragment`, or is immediate, or literal, or was adopted by the receiver's heap.
    pub term: Word,
    /// Where it lies until the receiver adopts it.
    pub fragment: Option<Box<Fragment>>,
}

// SAFETY: an unadopted message owns its fragment; `next` is null while it travels between threads,
// and an adopted one belongs to the mailbox of the process whose heap it lies in.
unsafe impl Send for Message {}

impl Message {
    /// Words of its fragments.
    fn words(&self) -> usize {
        self.fragment.as_ref().map_or(0, |f| f.total_used())
    }
    /// Whether it refers to something outside fragments of its own.
    fn is_adopted(&self) -> bool {
        self.fragment.is_none() && !self.term.is_immediate()
    }
    /// A message in a fragment of its own (or none for an immediate or literal).
    pub fn new(term: Word, fragment: Option<Box<Fragment>>) -> Message {
        Message {
            next: std::ptr::null_mut(),
            term,
            fragment,
        }
    }
}

/// What a message takes without its terms, with what the allocator adds.
const NODE_BYTES: usize = 96;

/// Receive markers of one process at most; a further one replaces the oldest.
const MARKERS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Marker {
    /// Number handed out by `reserve`; 0 when the place is free.
    id: u64,
    key: Option<RefKey>,
    after: *mut Node<Signal>,
}

#[derive(Debug, Default)]
struct Markers {
    places: Vec<Marker>,
    next_id: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Mailbox {
    first: *mut Node<Signal>,
    last: *mut Node<Signal>,
    /// The node before the receive position; null at the start.
    before: *mut Node<Signal>,
    /// The last of the messages of priority, which stand before all others; null when there is none.
    last_priority: *mut Node<Signal>,
    len: usize,
    /// Messages that lie in the receiver's heap or a literal area: only these are looked at by a collection.
    adopted: usize,
    /// Words of the fragments of messages that are not adopted.
    words: usize,
    markers: Option<Box<Markers>>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Mailbox {
            first: std::ptr::null_mut(),
            last: std::ptr::null_mut(),
            before: std::ptr::null_mut(),
            last_priority: std::ptr::null_mut(),
            len: 0,
            adopted: 0,
            words: 0,
            markers: None,
        }
    }
}

/// The message in a node of a mailbox.
///
/// # Safety
/// `node` is a live node of a mailbox (these all carry messages) and no other reference to it is in use.
unsafe fn message<'a>(node: *mut Node<Signal>) -> &'a mut Message {
    match &mut (*node).value {
        Signal::Message(m) => m,
        other => unreachable!("a mailbox holds messages only, not {other:?}"),
    }
}

impl Mailbox {
    /// How many messages.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Copies messages that refer to literals of these areas and are not adopted. (Adopted ones are roots of the collector.)
    pub(crate) fn own_literals(&mut self, areas: Leaving) {
        let mut node = self.first;
        while !node.is_null() {
            // SAFETY: the list owns its nodes; fragments of messages hold complete terms.
            unsafe {
                let m = message(node);
                if let Some(f) = &m.fragment
                    && gc::fragment_refers(f, areas)
                {
                    let c = Carried::copy(m.term);
                    self.words -= m.words();
                    self.adopted -= usize::from(m.is_adopted());
                    (m.term, m.fragment) = (c.term, c.fragment);
                    self.words += m.words();
                    self.adopted += usize::from(m.is_adopted());
                }
                node = m.next;
            }
        }
    }
    /// How many funs of `entry` lie in messages that are not adopted.
    pub(crate) fn funs(&self, entry: *const FunEntry) -> usize {
        let fragments = self.iter().filter_map(|m| m.fragment.as_deref());
        // SAFETY: fragments of messages hold complete terms.
        fragments
            .map(|f| unsafe { gc::funs_in_fragments(f, entry) })
            .sum()
    }
    /// Words of the terms that do not lie in the receiver's heap.
    pub fn words(&self) -> usize {
        self.words
    }
    /// Bytes that it takes besides what lies in the receiver's heap.
    pub fn bytes(&self) -> usize {
        self.words * 8 + self.len * NODE_BYTES
    }
    /// Adds a node at the end; it must carry a message.
    #[inline]
    pub fn push(&mut self, node: Box<Node<Signal>>) {
        debug_assert!(matches!(node.value, Signal::Message(_)));
        let node = Box::into_raw(node);
        // SAFETY: the list owns its nodes; see the head of the module.
        unsafe {
            message(node).next = std::ptr::null_mut();
            self.adopted += usize::from(message(node).is_adopted());
            self.words += message(node).words();
            if self.last.is_null() {
                self.first = node;
            } else {
                message(self.last).next = node;
            }
        }
        self.last = node;
        self.len += 1;
    }
    /// Adds a node before all ordinary messages, behind those of priority that are there already. A receive that
    /// runs looks at it next (and then once more at what it has passed over).
    pub fn push_priority(&mut self, node: Box<Node<Signal>>) {
        let node = Box::into_raw(node);
        let pred = self.last_priority;
        // SAFETY: the list owns its nodes; see the head of the module.
        unsafe {
            self.adopted += usize::from(message(node).is_adopted());
            self.words += message(node).words();
            let next = if pred.is_null() {
                std::mem::replace(&mut self.first, node)
            } else {
                std::mem::replace(&mut message(pred).next, node)
            };
            message(node).next = next;
            if next.is_null() {
                self.last = node;
            }
        }
        self.len += 1;
        self.last_priority = node;
        if !self.before.is_null() {
            self.before = pred;
        }
    }
    /// Whether some message lies in the receiver's heap.
    pub fn has_adopted(&self) -> bool {
        self.adopted > 0
    }
    /// Adds all messages of another mailbox, which has no receive position and no markers of its own.
    pub fn append(&mut self, other: &mut Mailbox) {
        if other.first.is_null() {
            return;
        }
        if !other.last_priority.is_null() {
            // Those of priority go before what was here.
            let (first, last) = (other.first, other.last_priority);
            let pred = self.last_priority;
            // SAFETY: nodes of the two lists: the first part of the other one is put in behind `pred`.
            unsafe {
                other.first = message(last).next;
                let next = if pred.is_null() {
                    std::mem::replace(&mut self.first, first)
                } else {
                    std::mem::replace(&mut message(pred).next, first)
                };
                message(last).next = next;
                if next.is_null() {
                    self.last = last;
                }
            }
            self.last_priority = last;
            if !self.before.is_null() {
                self.before = pred;
            }
        }
        if other.first.is_null() {
            self.len += other.len;
            self.adopted += other.adopted;
            self.words += other.words;
            *other = Mailbox::default();
            return;
        }
        if self.last.is_null() {
            self.first = other.first;
        } else {
            // SAFETY: nodes of the two lists.
            unsafe { message(self.last).next = other.first };
        }
        self.last = other.last;
        self.len += other.len;
        self.adopted += other.adopted;
        self.words += other.words;
        other.first = std::ptr::null_mut();
        *other = Mailbox::default();
    }
    #[inline]
    fn position(&self) -> *mut Node<Signal> {
        if self.before.is_null() {
            self.first
        } else {
            // SAFETY: `before` is a node of the list.
            unsafe { message(self.before).next }
        }
    }
    /// The address of the node at the receive position.
    pub(crate) fn current_node(&self) -> usize {
        self.position() as usize
    }
    /// The message at the receive position.
    #[inline]
    pub fn current(&self) -> Option<Word> {
        let node = self.position();
        if node.is_null() {
            None
        } else {
            // SAFETY: a node of the list.
            Some(unsafe { message(node) }.term)
        }
    }
    /// The message at the receive position, which from now on lies in the heap.
    #[inline]
    pub fn adopt_current(&mut self, heap: &mut Heap) -> Option<Word> {
        let node = self.position();
        if node.is_null() {
            return None;
        }
        // SAFETY: a node of the list.
        let m = unsafe { message(node) };
        if let Some(f) = m.fragment.take() {
            self.words -= f.total_used();
            m.term = match relocate(heap, &f, m.term) {
                Some(moved) => moved,
                None => {
                    heap.adopt(f);
                    m.term
                }
            };
            self.adopted += 1;
        }
        Some(m.term)
    }
    /// As [`Mailbox::adopt_current`] for a process with `off_heap` message data: the message stays outside until it is
    /// taken out ([`Mailbox::take_current`]), whatever looks at it meanwhile.
    #[inline]
    pub fn look_at_current(&mut self, heap: &mut Heap) -> Option<Word> {
        let node = self.position();
        if node.is_null() {
            return None;
        }
        // SAFETY: a node of the list.
        let m = unsafe { message(node) };
        if m.fragment.is_none() {
            return self.adopt_current(heap);
        }
        Some(m.term)
    }
    /// Takes the message at the receive position out; a fragment of its own goes to the heap.
    #[inline]
    pub fn take_current(&mut self, heap: &mut Heap) {
        if let Some(mut node) = self.remove_current()
            && let Signal::Message(m) = &mut node.value
            && let Some(f) = m.fragment.take()
        {
            heap.adopt(f);
        }
    }
    /// Whether a message is at the receive position.
    #[inline]
    pub fn has_current(&self) -> bool {
        !self.position().is_null()
    }
    /// Moves the receive position over one message.
    #[inline]
    pub fn advance(&mut self) {
        let node = self.position();
        if !node.is_null() {
            self.before = node;
        }
    }
    /// Takes the message at the receive position out and puts the position back to the start.
    pub fn remove_current(&mut self) -> Option<Box<Node<Signal>>> {
        let node = self.position();
        if node.is_null() {
            return None;
        }
        // SAFETY: a node of the list, unlinked below before it is given away.
        unsafe {
            let next = message(node).next;
            if self.before.is_null() {
                self.first = next;
            } else {
                message(self.before).next = next;
            }
            if self.last == node {
                self.last = self.before;
            }
            if self.last_priority == node {
                self.last_priority = self.before;
            }
            if let Some(markers) = &mut self.markers {
                for m in &mut markers.places {
                    if m.after == node {
                        m.after = self.before;
                    }
                }
            }
            message(node).next = std::ptr::null_mut();
            self.adopted -= usize::from(message(node).is_adopted());
            self.words -= message(node).words();
            self.len -= 1;
            self.before = std::ptr::null_mut();
            Some(Box::from_raw(node))
        }
    }
    /// Puts the receive position back to the start.
    #[inline]
    pub fn reset(&mut self) {
        self.before = std::ptr::null_mut();
    }
    /// Takes out every message for which `gone` says so; the receive position goes back to the start.
    pub fn remove_where(&mut self, mut gone: impl FnMut(Word) -> bool) {
        self.reset();
        while let Some(m) = self.current() {
            if gone(m) {
                let before = self.before;
                drop(self.remove_current());
                self.before = before;
            } else {
                self.advance();
            }
        }
        self.reset();
    }
    /// The messages in order.
    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        let mut node = self.first;
        std::iter::from_fn(move || {
            if node.is_null() {
                return None;
            }
            // SAFETY: nodes of the list, shared for the iterator's life.
            let m: &Message = unsafe { message(node) };
            node = m.next;
            Some(m)
        })
    }
    /// Shows the words of adopted messages: they are roots of the receiver's heap.
    pub fn visit_adopted(&mut self, visit: &mut dyn FnMut(&mut [Word])) {
        let mut left = self.adopted;
        let mut node = self.first;
        while left > 0 && !node.is_null() {
            // SAFETY: a node of the list.
            let m = unsafe { message(node) };
            if m.is_adopted() {
                visit(std::slice::from_mut(&mut m.term));
                left -= 1;
            }
            node = m.next;
        }
    }

    /// A new marker for the end of the list; its number.
    pub fn reserve(&mut self) -> u64 {
        let after = self.last;
        let markers = self.markers.get_or_insert_default();
        if markers.places.len() >= MARKERS {
            markers.places.remove(0);
        }
        markers.next_id += 1;
        let id = markers.next_id;
        markers.places.push(Marker {
            id,
            key: None,
            after,
        });
        id
    }
    /// Names a marker by the reference that was made after it.
    pub fn bind(&mut self, id: u64, key: RefKey) {
        if let Some(markers) = &mut self.markers
            && let Some(m) = markers.places.iter_mut().find(|m| m.id == id)
        {
            m.key = Some(key);
        }
    }
    /// Forgets the marker of a reference.
    pub fn clear(&mut self, key: RefKey) {
        if let Some(markers) = &mut self.markers {
            markers.places.retain(|m| m.key != Some(key));
        }
    }
    /// Forgets a marker that was not bound.
    pub fn clear_id(&mut self, id: u64) {
        if let Some(markers) = &mut self.markers {
            markers.places.retain(|m| m.id != id);
        }
    }
    /// Puts the receive position behind the marker of a reference, when there is one.
    pub fn use_marker(&mut self, key: RefKey) {
        if let Some(markers) = &self.markers
            && let Some(m) = markers.places.iter().find(|m| m.key == Some(key))
        {
            self.before = m.after;
        }
    }
}

/// Words up to which a message is moved into the block instead of adopted with its fragment: the fragment goes back to the
/// allocator while it is warm, and the collector has fewer blocks to look at.
const MOVED: usize = 64;

/// Moves a small message into the free part of the block; `None` when that cannot be.
#[inline]
fn relocate(heap: &mut Heap, fragment: &Fragment, term: Word) -> Option<Word> {
    let (start, top) = fragment.range();
    let n = (top as usize - start as usize) / 8;
    if n > MOVED
        || fragment.next.is_some()
        || !fragment.off_heap.first.is_null()
        || n + STACK_SLACK + MOVED > heap.free()
    {
        return None;
    }
    let to = heap.top;
    let delta = (to as u64).wrapping_sub(start as u64);
    let bytes = n as u64 * 8;
    // A pointer into the fragment becomes one into the block; everything else stays.
    let moved = |bits: u64| {
        // SAFETY: only looked at.
        let w = unsafe { Word::from_bits(bits) };
        let inside = (w.ptr() as u64).wrapping_sub(start as u64) < bytes;
        if (w.is_cons() || w.is_boxed()) && inside {
            bits.wrapping_add(delta)
        } else {
            bits
        }
    };
    // SAFETY: the fragment's words are complete objects and cons cells one after the other; there is room for them
    // in the block. Nothing else refers to the fragment.
    unsafe {
        let mut i = 0;
        while i < n {
            let bits = *start.add(i);
            if bits & 3 == PRIMARY_HEADER {
                let raw = Header(bits).raw_words();
                std::ptr::copy_nonoverlapping(start.add(i), to.add(i), raw + 1);
                i += raw + 1;
            } else {
                *to.add(i) = moved(bits);
                i += 1;
            }
        }
        heap.top = to.add(n);
        Some(Word::from_bits(moved(term.bits())))
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        let mut node = self.first;
        while !node.is_null() {
            // SAFETY: the list owns its nodes.
            unsafe {
                let next = message(node).next;
                drop(Box::from_raw(node));
                node = next;
            }
        }
    }
}

// SAFETY: the list owns its nodes, and they are `Send`.
unsafe impl Send for Mailbox {}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n: i64) -> Box<Node<Signal>> {
        Node::new(Signal::Message(Message::new(Word::fixnum(n), None)))
    }
    fn all(m: &Mailbox) -> Vec<i64> {
        m.iter().map(|m| m.term.small_value()).collect()
    }
    fn at(m: &mut Mailbox) -> Option<i64> {
        m.current().map(Word::small_value)
    }

    #[test]
    fn selective_receive() {
        let mut m = Mailbox::default();
        for i in 0..5 {
            m.push(node(i));
        }
        m.advance();
        m.advance();
        assert_eq!(at(&mut m), Some(2));
        m.remove_current().unwrap();
        assert_eq!(at(&mut m), Some(0));
        assert_eq!(all(&m), [0, 1, 3, 4]);
        for _ in 0..3 {
            m.advance();
        }
        assert_eq!(at(&mut m), Some(4));
        m.remove_current().unwrap();
        m.push(node(9));
        assert_eq!(all(&m), [0, 1, 3, 9]);
        for _ in 0..9 {
            m.advance();
        }
        assert_eq!(at(&mut m), None);
        m.push(node(10));
        assert_eq!(at(&mut m), Some(10));
        m.remove_where(|w| w.small_value() % 2 == 1);
        assert_eq!(all(&m), [0, 10]);
        assert_eq!(m.len(), 2);
    }

    #[test]
    fn priority_goes_first() {
        let mut m = Mailbox::default();
        m.push(node(1));
        m.push(node(2));
        m.advance();
        m.advance();
        assert_eq!(at(&mut m), None);
        m.push_priority(node(10));
        assert_eq!(at(&mut m), Some(10), "a receive that runs looks at it");
        m.push_priority(node(11));
        m.push(node(3));
        assert_eq!(all(&m), [10, 11, 1, 2, 3]);
        m.advance();
        m.remove_current().unwrap();
        m.push_priority(node(12));
        assert_eq!(all(&m), [10, 12, 1, 2, 3]);
        for left in [4, 3] {
            m.reset();
            m.remove_current().unwrap();
            assert_eq!(m.len(), left);
        }
        m.push_priority(node(13));
        assert_eq!(all(&m), [13, 1, 2, 3]);
        // What came while the rest was away.
        let mut later = Mailbox::default();
        later.push(node(4));
        later.push_priority(node(14));
        m.append(&mut later);
        assert_eq!(all(&m), [13, 14, 1, 2, 3, 4]);
        assert_eq!((m.len(), later.len()), (6, 0));
        let mut empty = Mailbox::default();
        empty.push_priority(node(1));
        empty.append(&mut m);
        empty.push(node(5));
        assert_eq!(all(&empty), [1, 13, 14, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn markers_skip_what_was_there() {
        let mut m = Mailbox::default();
        let key = RefKey::new(7);
        m.push(node(1));
        m.push(node(2));
        let id = m.reserve();
        m.bind(id, key);
        m.push(node(3));
        m.use_marker(key);
        assert_eq!(at(&mut m), Some(3));
        // The node that the marker hangs on goes away.
        m.reset();
        m.advance();
        m.remove_current().unwrap();
        m.use_marker(key);
        assert_eq!(at(&mut m), Some(3));
        m.reset();
        m.remove_current().unwrap();
        m.use_marker(key);
        assert_eq!(at(&mut m), Some(3));
        m.clear(key);
        m.push(node(4));
        m.use_marker(RefKey::new(8));
        assert_eq!(at(&mut m), Some(3));
        // Oldest markers give way.
        let ids: Vec<u64> = (0..20).map(|_| m.reserve()).collect();
        m.bind(ids[0], key);
        m.advance();
        m.use_marker(key);
        assert_eq!(
            at(&mut m),
            Some(4),
            "a lost marker leaves the position alone"
        );
    }
}
