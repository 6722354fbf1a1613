//! The signal queue of one receiver: many senders push, one owner fetches everything at once.
//!
//! # Protocol
//!
//! The queue is one word: null (empty), the address of the newest node, or the mark CLOSED. Each
//! node points to the one pushed before it.
//!
//! * **Anybody** pushes: reads the word, refuses when it is CLOSED, else points its node at what it
//!   read and swings the word to the node by compare-and-swap, until that succeeds.
//! * **The owner** fetches: swaps null in and reverses what it got, so that the batch is first in,
//!   first out. There is no pop of one node, hence no ABA problem: a swing that succeeds although the
//!   word went away and came back to the same address links to a node that is the newest again.
//! * **The owner** closes once: swaps CLOSED in and gets the last batch. Every push that
//!   succeeded is in a batch; every push after the close gives its signal back. A signal is never
//!   lost and never delivered twice.
//!
//! Signals of one sender keep their order, since its second push comes after its first in the
//! modification order of the word, whatever others push between.
//!
//! **Waking the receiver.** A push tells whether the queue was empty. Only that sender must then
//! call [`ProcState::notify`](crate::state::ProcState::notify): whoever pushes on a non-empty queue
//! relies on the notification that is already made or on its way, and a fetch takes both signals or
//! none. The window between push and notify delays the wake-up, it cannot lose it.
//!
//! **Orderings.** A push is Release on success: it publishes the node. A push on top of other nodes
//! continues their release sequences (it is a read-modify-write), so that the owner's Acquire swap
//! sees the contents of all nodes. Reading CLOSED is Acquire: who is refused sees what the closing
//! owner did before. The failed compare-and-swap can be Relaxed but for that case.

use crate::prim::{AtomicPtr, Ordering, UnsafeCell};
use std::marker::PhantomData;
use std::ptr;

/// The place of one signal in a queue. Allocate it once and let it travel: senders push it, the
/// receiver may keep it in its own lists.
#[derive(Debug)]
pub struct Node<T> {
    next: UnsafeCell<*mut Node<T>>,
    /// The signal.
    pub value: T,
}

// SAFETY: `next` is touched only by who owns the node or the batch that holds it; a node in a queue
// belongs to the queue. So a node moves between threads as its value does.
unsafe impl<T: Send> Send for Node<T> {}
// SAFETY: a shared reference to a node gives access to the value alone.
unsafe impl<T: Sync> Sync for Node<T> {}

impl<T> Node<T> {
    /// Allocates a node.
    #[must_use]
    pub fn new(value: T) -> Box<Self> {
        Box::new(Self {
            next: UnsafeCell::new(ptr::null_mut()),
            value,
        })
    }

    /// Frees the node and returns the signal.
    #[must_use]
    #[allow(clippy::boxed_local)] // Nodes only exist in boxes.
    pub fn into_value(self: Box<Self>) -> T {
        self.value
    }
}

/// A queue of signals to one receiver.
#[derive(Debug)]
pub struct SignalQueue<T> {
    head: AtomicPtr<Node<T>>,
    owns: PhantomData<Box<Node<T>>>,
}

// SAFETY: signals move from the pushing to the fetching thread, nothing is shared by reference.
unsafe impl<T: Send> Send for SignalQueue<T> {}
// SAFETY: as above; all access goes through the one atomic word.
unsafe impl<T: Send> Sync for SignalQueue<T> {}

/// The mark of a closed queue: never the address of a node, which is aligned.
fn closed<T>() -> *mut Node<T> {
    ptr::without_provenance_mut(1)
}

impl<T> SignalQueue<T> {
    /// Makes an empty, open queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }

    /// Adds a signal. `Ok(true)` means that the queue was empty: the caller must notify the
    /// receiver. `Err` gives the signal back because the queue is closed.
    pub fn push(&self, value: T) -> Result<bool, T> {
        // The allocation is for nothing when the queue is closed, which is rare.
        self.push_node(Node::new(value)).map_err(Node::into_value)
    }

    /// As [`SignalQueue::push`] with a node that the caller has.
    #[inline]
    pub fn push_node(&self, node: Box<Node<T>>) -> Result<bool, Box<Node<T>>> {
        let node = Box::into_raw(node);
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == closed() {
                // Synchronises with the close: what the dead receiver published is visible.
                crate::prim::fence(Ordering::Acquire);
                // SAFETY: it came from `Box::into_raw` above and was not published.
                return Err(unsafe { Box::from_raw(node) });
            }
            // SAFETY: the node is still ours alone.
            unsafe { (*node).next.with_mut(|next| *next = head) };
            match self
                .head
                .compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return Ok(head.is_null()),
                Err(now) => head = now,
            }
        }
    }

    /// Takes everything that was pushed, oldest first. For the owner only: it is safe for others,
    /// but then no order is kept between batches.
    #[inline]
    pub fn fetch(&self) -> Batch<T> {
        // An idle look costs no write. The owner alone makes the queue closed, so that it cannot
        // become closed between the two lines unless the rule above is broken.
        let seen = self.head.load(Ordering::Relaxed);
        if seen.is_null() || seen == closed() {
            return Batch::empty();
        }
        let newest = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        debug_assert!(newest != closed(), "fetch and close by two threads at once");
        if newest == closed() {
            return self.close();
        }
        Batch::reverse(newest)
    }

    /// Closes the queue for good and takes what is in it. For the owner only. A second close
    /// returns an empty batch.
    pub fn close(&self) -> Batch<T> {
        let newest = self.head.swap(closed(), Ordering::AcqRel);
        if newest == closed() {
            return Batch::empty();
        }
        Batch::reverse(newest)
    }

    /// Whether a fetch would return nothing. A hint for all but the owner, and also for the
    /// owner a hint that may be outdated towards non-empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let head = self.head.load(Ordering::Relaxed);
        head.is_null() || head == closed()
    }

    /// Whether the queue was closed.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.head.load(Ordering::Acquire) == closed()
    }
}

impl<T> Default for SignalQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for SignalQueue<T> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

/// What one fetch returned: signals in the order in which they were pushed. Dropping it drops
/// those that were not taken.
#[derive(Debug)]
pub struct Batch<T> {
    first: *mut Node<T>,
    owns: PhantomData<Box<Node<T>>>,
}

// SAFETY: a batch owns its nodes.
unsafe impl<T: Send> Send for Batch<T> {}

impl<T> Batch<T> {
    fn empty() -> Self {
        Self {
            first: ptr::null_mut(),
            owns: PhantomData,
        }
    }

    /// Takes over the list that starts at the newest node and turns it round.
    fn reverse(mut newest: *mut Node<T>) -> Self {
        let mut first = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the swap gave the whole list to this call; its nodes came from boxes.
            let older = unsafe { (*newest).next.with_mut(|next| ptr::replace(next, first)) };
            first = newest;
            newest = older;
        }
        Self {
            first,
            owns: PhantomData,
        }
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Takes the oldest signal with its node.
    pub fn next_node(&mut self) -> Option<Box<Node<T>>> {
        if self.first.is_null() {
            return None;
        }
        // SAFETY: the batch owns its nodes, each came from a box.
        let node = unsafe { Box::from_raw(self.first) };
        // SAFETY: as above.
        self.first = node.next.with(|next| unsafe { *next });
        Some(node)
    }

    /// Puts the node that was taken last back to the front.
    pub fn put_back(&mut self, node: Box<Node<T>>) {
        let node = Box::into_raw(node);
        // SAFETY: the node is the caller's and becomes the batch's.
        unsafe { (*node).next.with_mut(|next| *next = self.first) };
        self.first = node;
    }
}

impl<T> Iterator for Batch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.next_node().map(Node::into_value)
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        while self.next_node().is_some() {}
    }
}
