//! `prim_file`: files through the door of the VM.
//!
//! A file is a magic reference. Its operations exclude each other: who comes while another runs gets `einval`, as does who comes
//! after it was closed. A file whose references are gone (its owner has died) is closed with the last of them. Names on the outside
//! are UTF-8; paths come from the Erlang side encoded and ended by a NUL.

use std::sync::{Mutex, MutexGuard};

use beamr_abi::{Capability, Ctx, Escape, NativeClass, NativeEntry, NativeFn, TrapTarget};
use beamr_term::arith::Int;
use beamr_term::bits::BitsView;
use beamr_term::off_heap::BinaryRef;
use beamr_term::{Build, Word, atoms};
use beamr_vm::door::files::{
    Advice, FileInfo, FileKind, Files, OpenFile, OpenModes, Posix, Whence,
};
use beamr_vm::process::vm_of;

use crate::resources;
use crate::support::{ListBuilder, cost, name};

/// What a file reference stands for; `None` when closed.
struct FileHandle(Mutex<Option<Box<dyn OpenFile>>>);

const INVALID: Posix = Posix("einval");
/// More than this is not read into one binary made at once: it grows.
const AT_ONCE: usize = 16 << 20;

// ---- results

fn failure(ctx: &mut Ctx, p: Posix) -> Result<Word, Escape> {
    let code = ctx.atom(p.0)?;
    Ok(ctx.tuple(&[atoms::ERROR.word(), code]))
}

/// `ok | {error, Code}`.
fn plain(ctx: &mut Ctx, r: Result<(), Posix>) -> Result<Word, Escape> {
    match r {
        Ok(()) => Ok(atoms::OK.word()),
        Err(p) => failure(ctx, p),
    }
}

/// `{ok, Value}`.
fn with_value(ctx: &mut Ctx, value: Word) -> Result<Word, Escape> {
    Ok(ctx.tuple(&[atoms::OK.word(), value]))
}

// ---- arguments

fn files<'a>(ctx: &Ctx) -> &'a dyn Files {
    vm_of(ctx).door.files()
}

/// A path: a binary that ends in its only NUL.
fn path<'a>(w: Word) -> Result<std::borrow::Cow<'a, [u8]>, Posix> {
    let view = BitsView::of(w)
        .filter(|v| w.is_bitstring() && v.is_binary())
        .ok_or(INVALID)?;
    let bytes = view.to_bytes();
    match bytes.iter().position(|b| *b == 0) {
        Some(n) if n + 1 == bytes.len() => Ok(match bytes {
            std::borrow::Cow::Borrowed(b) => b[..n].into(),
            std::borrow::Cow::Owned(b) => b[..n].to_vec().into(),
        }),
        _ => Err(INVALID),
    }
}

/// An integer argument as 64 bits: `badarg` for what is no number, `Err` for one that does not fit.
fn wide(ctx: &mut Ctx, w: Word) -> Result<Result<i64, Posix>, Escape> {
    let mut buffer = 0;
    match Int::of(w, &mut buffer) {
        Some(i) => Ok(i.to_i64().ok_or(INVALID)),
        None if w.is_float() => Ok(Err(INVALID)),
        None => Err(ctx.badarg()),
    }
}

/// Two of them that must not be negative.
fn range(ctx: &mut Ctx, a: Word, b: Word) -> Result<Result<(u64, u64), Posix>, Escape> {
    let (a, b) = (wide(ctx, a)?, wide(ctx, b)?);
    Ok(match (a.map(u64::try_from), b.map(u64::try_from)) {
        (Ok(Ok(a)), Ok(Ok(b))) => Ok((a, b)),
        _ => Err(INVALID),
    })
}

/// An integer that must fit.
fn fitting<T: TryFrom<i64>>(ctx: &mut Ctx, w: Word) -> Result<T, Escape> {
    let mut buffer = 0;
    let v = Int::of(w, &mut buffer).and_then(Int::to_i64);
    v.and_then(|v| T::try_from(v).ok())
        .ok_or_else(|| ctx.badarg())
}

/// The parts of an `erlang:iovec()`.
fn parts<'a>(ctx: &mut Ctx, list: Word) -> Result<Vec<std::borrow::Cow<'a, [u8]>>, Escape> {
    let mut all = Vec::new();
    let mut l = list;
    while let Some((h, t)) = l.as_cons() {
        match BitsView::of(h).filter(|v| h.is_bitstring() && v.is_binary()) {
            Some(v) => all.push(v.to_bytes()),
            None => return Err(ctx.badarg()),
        }
        l = t;
    }
    if !l.is_nil() {
        return Err(ctx.badarg());
    }
    Ok(all)
}

/// The file behind a reference, while nobody else uses it.
fn with_file<R>(
    ctx: &mut Ctx,
    w: Word,
    f: impl FnOnce(&mut Ctx, &mut dyn OpenFile) -> Result<R, Escape>,
) -> Result<Result<R, Posix>, Escape> {
    let Some(handle) = resources::get::<FileHandle>(w) else {
        return Err(ctx.badarg());
    };
    let Ok(mut guard) = handle.0.try_lock() else {
        return Ok(Err(INVALID));
    };
    match guard.as_mut() {
        Some(file) => f(ctx, file.as_mut()).map(Ok),
        None => Ok(Err(INVALID)),
    }
}

/// A file operation whose result is `ok | {error, Code}`.
fn act(
    ctx: &mut Ctx,
    w: Word,
    f: impl FnOnce(&mut dyn OpenFile) -> Result<(), Posix>,
) -> Result<Word, Escape> {
    let r = with_file(ctx, w, |_, file| Ok(f(file)))?;
    plain(ctx, r.and_then(|r| r))
}

// ---- reading

/// What was read.
enum Bytes {
    Nothing,
    Small(Vec<u8>),
    Block(BinaryRef, usize),
}

/// Reads at most `size` bytes with `read`, which is told how many are there already.
fn read_bytes(
    size: u64,
    mut read: impl FnMut(&mut [u8], u64) -> Result<usize, Posix>,
) -> Result<Bytes, Posix> {
    let size = usize::try_from(size)
        .ok()
        .filter(|n| *n < 1 << 46)
        .ok_or(Posix("enomem"))?;
    if (65..=AT_ONCE).contains(&size) {
        let block = BinaryRef::with_capacity(size, 0);
        // SAFETY: the block is not shared yet, has `size` zeroed bytes, and lives until the slice is gone.
        let room = unsafe { std::slice::from_raw_parts_mut(block.data(), size) };
        let n = read(room, 0)?;
        if n == 0 {
            return Ok(Bytes::Nothing);
        }
        if n < size / 2 {
            return Ok(Bytes::Small(room[..n].to_vec()));
        }
        block.claim(0, n as u64 * 8);
        return Ok(Bytes::Block(block, n));
    }
    let mut all = Vec::new();
    while all.len() < size {
        let (from, step) = (all.len(), (size - all.len()).min(AT_ONCE));
        if all.try_reserve(step).is_err() {
            return Err(Posix("enomem"));
        }
        all.resize(from + step, 0);
        let n = read(&mut all[from..], from as u64)?;
        all.truncate(from + n);
        if n < step {
            break;
        }
    }
    Ok(if all.is_empty() {
        Bytes::Nothing
    } else {
        Bytes::Small(all)
    })
}

/// The binary, or `None` for nothing.
fn built(ctx: &mut Ctx, bytes: Bytes) -> Option<Word> {
    match bytes {
        Bytes::Nothing => None,
        Bytes::Small(b) => {
            ctx.bump(cost(b.len() / 8));
            Some(ctx.binary(&b))
        }
        Bytes::Block(block, n) => {
            ctx.bump(cost(n / 8));
            Some(ctx.refc_binary(block, n as u64 * 8))
        }
    }
}

/// `{ok, Binary} | eof | {error, Code}`.
fn read_result(ctx: &mut Ctx, r: Result<Bytes, Posix>) -> Result<Word, Escape> {
    match r {
        Ok(b) => match built(ctx, b) {
            Some(w) => with_value(ctx, w),
            None => Ok(atoms::EOF.word()),
        },
        Err(p) => failure(ctx, p),
    }
}

/// `read_nif(File, Size)`.
fn read_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = with_file(ctx, args[0], |ctx, file| {
        let size = wide(ctx, args[1])?.and_then(|n| u64::try_from(n).map_err(|_| INVALID));
        Ok(size.and_then(|n| read_bytes(n, |b, _| file.read(b))))
    })?;
    read_result(ctx, r.and_then(|r| r))
}

/// `pread_nif(File, Offset, Size)`.
fn pread_nif_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = with_file(ctx, args[0], |ctx, file| {
        let wanted = range(ctx, args[1], args[2])?;
        Ok(wanted
            .and_then(|(at, n)| read_bytes(n, |b, done| file.read_at(at.wrapping_add(done), b))))
    })?;
    read_result(ctx, r.and_then(|r| r))
}

/// `ipread_s32bu_p32bu_nif(File, Offset, MaxSize)`: a block of data behind a pointer in the file (its size and place, 32 bits each).
fn ipread_s32bu_p32bu_nif_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = with_file(ctx, args[0], |ctx, file| {
        let (at, max) = (wide(ctx, args[1])?, wide(ctx, args[2])?);
        let wanted = at.and_then(|at| Ok((at, max?)));
        Ok(wanted.and_then(|(at, max)| {
            if at < 0 || max >= 1 << 31 {
                return Err(INVALID);
            }
            let mut pointer = [0; 8];
            if file.read_at(at as u64, &mut pointer)? < 8 {
                return Ok(None);
            }
            let [a, b, c, d, rest @ ..] = pointer;
            let (size, place) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes(rest));
            if i64::from(size) > max {
                return Ok(None);
            }
            let data = read_bytes(u64::from(size), |b, done| {
                file.read_at(u64::from(place) + done, b)
            })?;
            Ok(Some((size, place, data)))
        }))
    })?;
    match r.and_then(|r| r) {
        Ok(None) => Ok(atoms::EOF.word()),
        Ok(Some((size, place, data))) => {
            let data = built(ctx, data).unwrap_or(atoms::EOF.word());
            let (size, place) = (
                Word::fixnum(i64::from(size)),
                Word::fixnum(i64::from(place)),
            );
            let block = ctx.tuple(&[size, place, data]);
            with_value(ctx, block)
        }
        Err(p) => failure(ctx, p),
    }
}

/// `read_file_nif(Path)`: the whole file; up to the size it has at the start, if it has one.
fn read_file_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let modes = OpenModes {
        read: true,
        ..OpenModes::default()
    };
    let whole = |ctx: &Ctx| {
        let mut file = files(ctx).open(&path(args[0])?, modes)?;
        let size = file.info().map_or(0, |i| i.size);
        if size > 0 {
            return read_bytes(size, |b, _| file.read(b));
        }
        let mut all = Vec::new();
        let mut step = [0; 16 << 10];
        loop {
            let n = file.read(&mut step)?;
            all.extend_from_slice(&step[..n]);
            if n < step.len() {
                return Ok(Bytes::Small(all));
            }
        }
    };
    match whole(ctx) {
        Ok(bytes) => {
            let w = match built(ctx, bytes) {
                Some(w) => w,
                None => ctx.binary(&[]),
            };
            with_value(ctx, w)
        }
        Err(p) => failure(ctx, p),
    }
}

// ---- opening, closing, writing

/// `open_nif(Path, Modes)`.
fn open_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    if !args[1].is_list() {
        return Err(ctx.badarg());
    }
    let mut modes = OpenModes::default();
    let mut l = args[1];
    while let Some((h, t)) = l.as_cons() {
        match name(ctx, h) {
            Some("read") => modes.read = true,
            Some("write") => modes.write = true,
            Some("append") => modes.append = true,
            Some("exclusive") => modes.exclusive = true,
            Some("sync") => modes.sync = true,
            Some("directory") => modes.directory = true,
            Some("skip_type_check") => modes.any_type = true,
            // Others are the Erlang side's.
            _ => {}
        }
        l = t;
    }
    if modes.append || modes.exclusive {
        modes.write = true;
    }
    if !modes.write {
        modes.read = true;
    }
    let opened = path(args[0]).and_then(|p| files(ctx).open(&p, modes));
    new_handle(ctx, opened)
}

fn new_handle(ctx: &mut Ctx, r: Result<Box<dyn OpenFile>, Posix>) -> Result<Word, Escape> {
    match r {
        Ok(file) => {
            let w = resources::new(ctx, FileHandle(Mutex::new(Some(file))));
            with_value(ctx, w)
        }
        Err(p) => failure(ctx, p),
    }
}

/// `file_desc_to_ref_nif(Descriptor)`.
fn file_desc_to_ref_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let fd: i32 = fitting(ctx, args[0])?;
    let opened = files(ctx).adopt(fd);
    new_handle(ctx, opened)
}

/// Takes the file out of its handle.
fn take(mut guard: MutexGuard<'_, Option<Box<dyn OpenFile>>>) -> Option<Box<dyn OpenFile>> {
    guard.take()
}

/// `close_nif(File)`.
fn close_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let Some(handle) = resources::get::<FileHandle>(args[0]) else {
        return Err(ctx.badarg());
    };
    let file = handle.0.try_lock().ok().and_then(take);
    plain(ctx, file.ok_or(INVALID).and_then(OpenFile::close))
}

/// `delayed_close_nif(File)`: closes what may be closed already.
fn delayed_close_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    close_nif_1(ctx, args)?;
    Ok(atoms::OK.word())
}

/// `write_nif(File, IoVec)`.
fn write_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = with_file(ctx, args[0], |ctx, file| {
        let parts = parts(ctx, args[1])?;
        let parts: Vec<&[u8]> = parts.iter().map(|p| &**p).collect();
        Ok(file.write(&parts))
    })?;
    plain(ctx, r.and_then(|r| r))
}

/// `pwrite_nif(File, Offset, IoVec)`.
fn pwrite_nif_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = with_file(ctx, args[0], |ctx, file| {
        let at = wide(ctx, args[1])?;
        let parts = parts(ctx, args[2])?;
        let parts: Vec<&[u8]> = parts.iter().map(|p| &**p).collect();
        Ok(at
            .and_then(|at| u64::try_from(at).map_err(|_| INVALID))
            .and_then(|at| file.write_at(at, &parts)))
    })?;
    plain(ctx, r.and_then(|r| r))
}

/// `seek_nif(File, bof | cur | eof, Offset)`.
fn seek_nif_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = with_file(ctx, args[0], |ctx, file| {
        let offset: i64 = fitting(ctx, args[2])?;
        let whence = match name(ctx, args[1]) {
            Some("bof") => Whence::Start,
            Some("cur") => Whence::Current,
            Some("eof") => Whence::End,
            _ => return Err(ctx.badarg()),
        };
        Ok(file.seek(whence, offset))
    })?;
    match r.and_then(|r| r) {
        Ok(at) => {
            let at = ctx.unsigned(at);
            with_value(ctx, at)
        }
        Err(p) => failure(ctx, p),
    }
}

/// `sync_nif(File, DataOnly)`.
fn sync_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let data_only: i32 = fitting(ctx, args[1])?;
    act(ctx, args[0], |f| f.sync(data_only != 0))
}

/// `truncate_nif(File)`.
fn truncate_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    act(ctx, args[0], |f| f.truncate())
}

/// `allocate_nif(File, Offset, Length)`.
fn allocate_nif_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let part = range(ctx, args[1], args[2])?;
    act(ctx, args[0], |f| part.and_then(|(at, n)| f.allocate(at, n)))
}

/// `advise_nif(File, Offset, Length, Advice)`.
fn advise_nif_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let part = range(ctx, args[1], args[2])?;
    let advice = match name(ctx, args[3]) {
        Some("normal") => Ok(Advice::Normal),
        Some("random") => Ok(Advice::Random),
        Some("sequential") => Ok(Advice::Sequential),
        Some("will_need") => Ok(Advice::WillNeed),
        Some("dont_need") => Ok(Advice::DontNeed),
        Some("no_reuse") => Ok(Advice::NoReuse),
        _ => Err(INVALID),
    };
    act(ctx, args[0], |f| {
        part.and_then(|(at, n)| f.advise(at, n, advice?))
    })
}

/// `get_handle_nif(File)`: the bytes of the descriptor.
fn get_handle_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match with_file(ctx, args[0], |_, f| Ok(f.handle()))? {
        Ok(b) => Ok(ctx.binary(&b)),
        Err(p) => failure(ctx, p),
    }
}

// ---- the file system

/// `#file_info{}`.
fn info_result(ctx: &mut Ctx, r: Result<FileInfo, Posix>) -> Result<Word, Escape> {
    /// The earliest time that OTP tells: 1902-01-01.
    const FIRST: i64 = -2_145_916_800;
    let i = match r {
        Ok(i) => i,
        Err(p) => return failure(ctx, p),
    };
    let kind = match i.kind {
        FileKind::Device => "device",
        FileKind::Directory => "directory",
        FileKind::Regular => "regular",
        FileKind::Symlink => "symlink",
        FileKind::Other => "other",
    };
    let access = match (i.readable, i.writable) {
        (true, false) => "read",
        (false, true) => "write",
        (true, true) => "read_write",
        (false, false) => "none",
    };
    let mut fields = vec![ctx.atom("file_info")?, ctx.unsigned(i.size)];
    fields.extend([ctx.atom(kind)?, ctx.atom(access)?]);
    for t in [i.accessed, i.modified, i.changed] {
        fields.push(ctx.integer(t.max(FIRST)));
    }
    fields.extend(
        [
            i.mode,
            i.links,
            i.device,
            i.special_device,
            i.inode,
            i.user,
            i.group,
        ]
        .map(|n| Word::fixnum(i64::from(n))),
    );
    Ok(ctx.tuple(&fields))
}

/// `read_info_nif(Path, FollowLinks)`.
fn read_info_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let follow: i32 = fitting(ctx, args[1])?;
    let r = path(args[0]).and_then(|p| files(ctx).info(&p, follow != 0));
    info_result(ctx, r)
}

/// `read_handle_info_nif(File)`.
fn read_handle_info_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = with_file(ctx, args[0], |_, f| Ok(f.info()))?;
    info_result(ctx, r.and_then(|r| r))
}

/// `list_dir_nif(Path)`: names as binaries, last first.
fn list_dir_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    match path(args[0]).and_then(|p| files(ctx).list(&p)) {
        Ok(names) => {
            ctx.bump(names.len() as i64);
            let mut list = ListBuilder::new();
            for n in names.iter().rev() {
                let n = ctx.binary(n);
                list.push(ctx, n);
            }
            with_value(ctx, list.finish(Word::NIL))
        }
        Err(p) => failure(ctx, p),
    }
}

/// `{ok, Bytes}`.
fn bytes_result(ctx: &mut Ctx, r: Result<Vec<u8>, Posix>) -> Result<Word, Escape> {
    match r {
        Ok(b) => {
            let w = ctx.binary(&b);
            with_value(ctx, w)
        }
        Err(p) => failure(ctx, p),
    }
}

/// `read_link_nif(Path)`.
fn read_link_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = path(args[0]).and_then(|p| files(ctx).read_link(&p));
    bytes_result(ctx, r)
}
/// `get_cwd_nif()`.
fn get_cwd_nif_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let dir = vm_of(ctx).door.current_dir();
    bytes_result(ctx, Ok(dir))
}
/// `get_device_cwd_nif(Device)`: there are none.
fn get_device_cwd_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let _: i32 = fitting(ctx, args[0])?;
    failure(ctx, Posix("enotsup"))
}
/// `altname_nif(Path)`: there are none.
fn altname_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let r = path(args[0]).and(Err(Posix("enotsup")));
    plain(ctx, r)
}

/// An operation on one path.
fn on_path(
    ctx: &mut Ctx,
    args: &[Word],
    f: impl FnOnce(&dyn Files, &[u8]) -> Result<(), Posix>,
) -> Result<Word, Escape> {
    let r = path(args[0]).and_then(|p| f(files(ctx), &p));
    plain(ctx, r)
}
/// An operation on two.
fn on_paths(
    ctx: &mut Ctx,
    args: &[Word],
    f: impl FnOnce(&dyn Files, &[u8], &[u8]) -> Result<(), Posix>,
) -> Result<Word, Escape> {
    let r = path(args[0]).and_then(|a| f(files(ctx), &a, &path(args[1])?));
    plain(ctx, r)
}
/// `set_cwd_nif(Path)`.
fn set_cwd_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    on_path(ctx, args, |f, p| f.set_current_dir(p))
}
/// `make_dir_nif(Path)`.
fn make_dir_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    on_path(ctx, args, |f, p| f.make_dir(p))
}
/// `del_file_nif(Path)`.
fn del_file_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    on_path(ctx, args, |f, p| f.del_file(p))
}
/// `del_dir_nif(Path)`.
fn del_dir_nif_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    on_path(ctx, args, |f, p| f.del_dir(p))
}
/// `rename_nif(From, To)`.
fn rename_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    on_paths(ctx, args, |f, a, b| f.rename(a, b))
}
/// `make_hard_link_nif(Existing, New)`.
fn make_hard_link_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    on_paths(ctx, args, |f, a, b| f.hard_link(a, b))
}
/// `make_soft_link_nif(Existing, New)`.
fn make_soft_link_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    on_paths(ctx, args, |f, a, b| f.soft_link(a, b))
}
/// `set_permissions_nif(Path, Mode)`.
fn set_permissions_nif_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mode: u32 = fitting(ctx, args[1])?;
    on_path(ctx, args, |f, p| f.set_permissions(p, mode))
}
/// `set_owner_nif(Path, User, Group)`; -1 leaves one as it is.
fn set_owner_nif_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (user, group): (i32, i32) = (fitting(ctx, args[1])?, fitting(ctx, args[2])?);
    let id = |n: i32| (n != -1).then_some(n as u32);
    on_path(ctx, args, |f, p| f.set_owner(p, id(user), id(group)))
}
/// `set_time_nif(Path, Accessed, Modified, Created)`; nothing keeps the last one.
fn set_time_nif_4(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let (accessed, modified) = (fitting(ctx, args[1])?, fitting(ctx, args[2])?);
    let _: i64 = fitting(ctx, args[3])?;
    on_path(ctx, args, |f, p| f.set_times(p, accessed, modified))
}

// ---- names

/// `internal_name2native(Name)`: nested lists of characters as UTF-8, binaries as they are; with a NUL behind.
fn internal_name2native_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let mut bytes = Vec::new();
    if args[0].is_bitstring() {
        match BitsView::of(args[0]).filter(BitsView::is_binary) {
            Some(v) => bytes.extend_from_slice(&v.to_bytes()),
            None => return Err(ctx.badarg()),
        }
        if bytes.contains(&0) {
            return Err(ctx.badarg());
        }
    } else {
        let mut at = args[0];
        let mut rest = Vec::new();
        loop {
            let Some((h, t)) = at.as_cons() else {
                match rest.pop() {
                    _ if !at.is_nil() => return Err(ctx.badarg()),
                    Some(t) => at = t,
                    None => break,
                }
                continue;
            };
            at = t;
            if h.is_list() {
                rest.push(t);
                at = h;
                continue;
            }
            let c = h
                .as_small()
                .and_then(|n| u32::try_from(n).ok())
                .and_then(char::from_u32)
                .filter(|c| *c != '\0');
            match c {
                Some(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                None => return Err(ctx.badarg()),
            }
        }
    }
    bytes.push(0);
    Ok(ctx.binary(&bytes))
}

/// The bytes of a binary argument.
fn binary_argument<'a>(ctx: &mut Ctx, w: Word) -> Result<std::borrow::Cow<'a, [u8]>, Escape> {
    match BitsView::of(w).filter(|v| w.is_bitstring() && v.is_binary()) {
        Some(v) => Ok(v.to_bytes()),
        None => Err(ctx.badarg()),
    }
}

/// `internal_native2name(Bytes)`: the characters, or `{error, warning}` for what is no UTF-8.
fn internal_native2name_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bytes = binary_argument(ctx, args[0])?;
    match std::str::from_utf8(&bytes) {
        Ok(s) => Ok(ctx.string(s)),
        Err(_) => {
            let w = ctx.atom("warning")?;
            Ok(ctx.tuple(&[atoms::ERROR.word(), w]))
        }
    }
}

/// `internal_normalize_utf8(Bytes)`: composed characters, by OTP's own tables.
fn internal_normalize_utf8_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bytes = binary_argument(ctx, args[0])?;
    if std::str::from_utf8(&bytes).is_err() {
        return Err(ctx.badarg());
    }
    let m = ctx.atom("unicode")?.as_atom();
    let f = ctx.atom("characters_to_nfc_list")?.as_atom();
    match (m, f) {
        (Some(m), Some(f)) => match ctx.tables().exports.id(m, f, 1) {
            Ok(id) => Err(ctx.trap(TrapTarget::Export(id), args)),
            Err(_) => Err(ctx.system_limit()),
        },
        _ => Err(ctx.badarg()),
    }
}

/// `is_translatable(Bytes)`.
fn is_translatable_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bytes = binary_argument(ctx, args[0])?;
    Ok(Word::boolean(std::str::from_utf8(&bytes).is_ok()))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("prim_file", function, arity, func)
        .needs(Capability::ExternalIo)
        .class(NativeClass::DirtyIo)
}

const fn pure(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("prim_file", function, arity, func)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("open_nif", 2, open_nif_2),
    row("file_desc_to_ref_nif", 1, file_desc_to_ref_nif_1),
    row("close_nif", 1, close_nif_1),
    row("delayed_close_nif", 1, delayed_close_nif_1),
    row("read_nif", 2, read_nif_2),
    row("write_nif", 2, write_nif_2),
    row("pread_nif", 3, pread_nif_3),
    row("pwrite_nif", 3, pwrite_nif_3),
    row("seek_nif", 3, seek_nif_3),
    row("sync_nif", 2, sync_nif_2),
    row("truncate_nif", 1, truncate_nif_1),
    row("allocate_nif", 3, allocate_nif_3),
    row("advise_nif", 4, advise_nif_4),
    row("read_handle_info_nif", 1, read_handle_info_nif_1),
    row("ipread_s32bu_p32bu_nif", 3, ipread_s32bu_p32bu_nif_3),
    row("get_handle_nif", 1, get_handle_nif_1).class(NativeClass::Plain),
    row("read_file_nif", 1, read_file_nif_1),
    row("read_info_nif", 2, read_info_nif_2),
    row("list_dir_nif", 1, list_dir_nif_1),
    row("read_link_nif", 1, read_link_nif_1),
    row("get_cwd_nif", 0, get_cwd_nif_0),
    row("get_device_cwd_nif", 1, get_device_cwd_nif_1),
    row("altname_nif", 1, altname_nif_1),
    row("set_cwd_nif", 1, set_cwd_nif_1),
    row("make_dir_nif", 1, make_dir_nif_1),
    row("del_file_nif", 1, del_file_nif_1),
    row("del_dir_nif", 1, del_dir_nif_1),
    row("rename_nif", 2, rename_nif_2),
    row("make_hard_link_nif", 2, make_hard_link_nif_2),
    row("make_soft_link_nif", 2, make_soft_link_nif_2),
    row("set_permissions_nif", 2, set_permissions_nif_2),
    row("set_owner_nif", 3, set_owner_nif_3),
    row("set_time_nif", 4, set_time_nif_4),
    pure("internal_name2native", 1, internal_name2native_1),
    pure("internal_native2name", 1, internal_native2name_1),
    pure("internal_normalize_utf8", 1, internal_normalize_utf8_1),
    pure("is_translatable", 1, is_translatable_1),
];
