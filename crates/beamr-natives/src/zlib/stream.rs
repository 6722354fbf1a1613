//! A zlib stream: the one place that calls the C library.
//!
//! The state that the library keeps points back to its `z_stream`, which therefore stays in its box.

use std::ffi::c_int;

use libz_sys as z;

/// What a stream is set up for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// Nothing.
    None,
    /// Compression.
    Deflate,
    /// Decompression.
    Inflate,
    /// For ever closed.
    Closed,
}

/// What one call consumed and gave.
pub struct Step {
    /// Bytes taken from the input.
    pub consumed: usize,
    /// Bytes written to the output.
    pub produced: usize,
    /// The library's return code.
    pub code: c_int,
}

/// See the module.
pub struct Stream {
    z: Box<z::z_stream>,
    codec: Codec,
}

// SAFETY: the library keeps no thread's state; all of a stream is reached through its owner.
unsafe impl Send for Stream {}

unsafe extern "C" {
    /// Of the library that `libz-sys` builds, which does not declare it. The room must have 32 KB.
    fn inflateGetDictionary(
        stream: *mut z::z_stream,
        dictionary: *mut u8,
        length: *mut std::ffi::c_uint,
    ) -> c_int;
}

extern "C" fn allocate(_: *mut std::ffi::c_void, items: u32, size: u32) -> *mut std::ffi::c_void {
    // SAFETY: plain allocation; the library checks for null.
    unsafe { libc::calloc(items as usize, size as usize) }
}

extern "C" fn free(_: *mut std::ffi::c_void, address: *mut std::ffi::c_void) {
    // SAFETY: the address came from `allocate`.
    unsafe { libc::free(address) }
}

const STREAM_SIZE: c_int = std::mem::size_of::<z::z_stream>() as c_int;

impl Stream {
    /// A stream that is set up for nothing.
    pub fn new() -> Stream {
        Stream {
            z: Box::new(z::z_stream {
                next_in: std::ptr::null_mut(),
                avail_in: 0,
                total_in: 0,
                next_out: std::ptr::null_mut(),
                avail_out: 0,
                total_out: 0,
                msg: std::ptr::null_mut(),
                state: std::ptr::null_mut(),
                zalloc: allocate,
                zfree: free,
                opaque: std::ptr::null_mut(),
                data_type: z::Z_BINARY,
                adler: 0,
                reserved: 0,
            }),
            codec: Codec::None,
        }
    }
    /// What it is set up for.
    pub fn codec(&self) -> Codec {
        self.codec
    }
    /// Sets a stream that is set up for nothing up for compression.
    pub fn deflate_init(
        &mut self,
        level: c_int,
        method: c_int,
        window_bits: c_int,
        mem_level: c_int,
        strategy: c_int,
    ) -> c_int {
        debug_assert_eq!(self.codec, Codec::None);
        // SAFETY: a boxed stream with its allocators set; the library checks the numbers.
        let code = unsafe {
            z::deflateInit2_(
                &mut *self.z,
                level,
                method,
                window_bits,
                mem_level,
                strategy,
                z::zlibVersion(),
                STREAM_SIZE,
            )
        };
        if code == z::Z_OK {
            self.codec = Codec::Deflate;
        }
        code
    }
    /// The same for decompression.
    pub fn inflate_init(&mut self, window_bits: c_int) -> c_int {
        debug_assert_eq!(self.codec, Codec::None);
        // SAFETY: as in `deflate_init`.
        let code =
            unsafe { z::inflateInit2_(&mut *self.z, window_bits, z::zlibVersion(), STREAM_SIZE) };
        if code == z::Z_OK {
            self.codec = Codec::Inflate;
        }
        code
    }
    /// Gives the state back; a code below zero when a compression was not finished.
    pub fn end(&mut self, then: Codec) -> c_int {
        // SAFETY: the state was made by the init function of the same codec.
        let code = unsafe {
            match self.codec {
                Codec::Deflate => z::deflateEnd(&mut *self.z),
                Codec::Inflate => z::inflateEnd(&mut *self.z),
                Codec::None | Codec::Closed => z::Z_OK,
            }
        };
        self.codec = then;
        code
    }
    /// Back to the state after the set-up.
    pub fn reset(&mut self) -> c_int {
        // SAFETY: as in `end`.
        unsafe {
            match self.codec {
                Codec::Deflate => z::deflateReset(&mut *self.z),
                Codec::Inflate => z::inflateReset(&mut *self.z),
                Codec::None | Codec::Closed => z::Z_STREAM_ERROR,
            }
        }
    }
    /// Runs the codec on some input and room for output.
    pub fn run(&mut self, input: &[u8], output: &mut [u8], flush: c_int) -> Step {
        let (n, room) = (clamp(input.len()), clamp(output.len()));
        self.z.next_in = input.as_ptr().cast_mut();
        self.z.avail_in = n;
        self.z.next_out = output.as_mut_ptr();
        self.z.avail_out = room;
        // SAFETY: the pointers and lengths are those of live slices, of which the input is only read.
        let code = unsafe {
            match self.codec {
                Codec::Deflate => z::deflate(&mut *self.z, flush),
                Codec::Inflate => z::inflate(&mut *self.z, flush),
                Codec::None | Codec::Closed => z::Z_STREAM_ERROR,
            }
        };
        self.z.next_in = std::ptr::null_mut();
        self.z.next_out = std::ptr::null_mut();
        Step {
            consumed: (n - self.z.avail_in) as usize,
            produced: (room - self.z.avail_out) as usize,
            code,
        }
    }
    /// Sets the dictionary.
    pub fn set_dictionary(&mut self, bytes: &[u8]) -> c_int {
        let n = clamp(bytes.len());
        // SAFETY: a live slice that is copied.
        unsafe {
            match self.codec {
                Codec::Deflate => z::deflateSetDictionary(&mut *self.z, bytes.as_ptr(), n),
                Codec::Inflate => z::inflateSetDictionary(&mut *self.z, bytes.as_ptr(), n),
                Codec::None | Codec::Closed => z::Z_STREAM_ERROR,
            }
        }
    }
    /// The window of a decompression.
    pub fn inflate_dictionary(&mut self) -> Result<Vec<u8>, c_int> {
        if self.codec != Codec::Inflate {
            return Err(z::Z_STREAM_ERROR);
        }
        // A window has at most 32 KB.
        let mut out = vec![0; 1 << 15];
        let mut n = 0;
        // SAFETY: the room is what the library may write at most.
        let code = unsafe { inflateGetDictionary(&mut *self.z, out.as_mut_ptr(), &mut n) };
        if code < 0 {
            return Err(code);
        }
        out.truncate(n as usize);
        Ok(out)
    }
    /// Another level and strategy. All input so far must have been flushed: pending output is an error.
    pub fn deflate_params(&mut self, level: c_int, strategy: c_int) -> c_int {
        if self.codec != Codec::Deflate {
            return z::Z_STREAM_ERROR;
        }
        let mut byte = 0u8;
        self.z.next_in = std::ptr::null_mut();
        self.z.avail_in = 0;
        self.z.next_out = &mut byte;
        self.z.avail_out = 1;
        // SAFETY: one byte of room.
        let code = unsafe { z::deflateParams(&mut *self.z, level, strategy) };
        self.z.next_out = std::ptr::null_mut();
        if self.z.avail_out == 0 {
            return z::Z_STREAM_ERROR;
        }
        code
    }
    /// The checksum of the stream, or of the dictionary that is wanted or was set.
    pub fn adler(&self) -> u32 {
        self.z.adler as u32
    }
}

fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.end(Codec::Closed);
    }
}
