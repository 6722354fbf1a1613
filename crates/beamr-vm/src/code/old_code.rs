//! Whether a process still uses an image (`check_process_code`).
//!
//! As in OTP only code counts: where the process runs and where it will return to. Funs of the image find no code any more, and its
//! literals are copied out of heaps ([`crate::literals`]).

use beamr_abi::Body;
use beamr_term::word::PRIMARY_HEADER;

use super::image::Image;

/// Whether `body` runs in the image or will return into it.
///
/// # Safety
/// The caller owns the body, which is at a safe point.
pub unsafe fn runs_in(body: &Body, image: &Image) -> bool {
    if image.contains(body.ip as usize) {
        return true;
    }
    let stack = std::slice::from_raw_parts(body.heap.stop, body.heap.stack_size());
    // A return address may be the end of the image; the call before it is inside.
    stack
        .iter()
        .any(|w| *w & 3 == PRIMARY_HEADER && image.contains((*w as usize).wrapping_sub(1)))
}
