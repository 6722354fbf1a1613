//! `erlang`: nodes. Without distribution there is this node and those that terms have named.

use beamr_abi::{Capability, Ctx, Escape, NativeEntry, NativeFn, ReleaseSpan};
use beamr_term::{Build, Word, atoms, maps};

use super::system::map_of;
use crate::support::{ListBuilder, list_items, name};

/// What `nodes/1,2` are asked for.
#[derive(Default)]
struct Kinds {
    this: bool,
    known: bool,
}

fn kinds(ctx: &mut Ctx, w: Word) -> Result<Kinds, Escape> {
    let list = if w.is_list() {
        list_items(ctx, w)?
    } else {
        vec![w]
    };
    let mut k = Kinds::default();
    for item in list {
        match name(ctx, item) {
            Some("this") => k.this = true,
            Some("known") => (k.this, k.known) = (true, true),
            Some("visible" | "hidden" | "connected") => {}
            _ => return Err(ctx.badarg()),
        }
    }
    Ok(k)
}

fn of_kinds(ctx: &Ctx, k: &Kinds) -> Vec<(Word, &'static str)> {
    let tables = ctx.tables();
    let this = tables.local_node().0;
    let mut all = Vec::new();
    if k.this {
        all.push((this.word(), "this"));
    }
    if k.known {
        let mut names: Vec<_> = tables
            .known_nodes()
            .into_iter()
            .map(|e| e.name)
            .filter(|n| *n != this)
            .collect();
        names.sort_by(|a, b| tables.atoms.compare(*a, *b));
        names.dedup();
        all.extend(names.into_iter().map(|n| (n.word(), "known")));
    }
    all
}

/// `nodes()`.
fn nodes_0(_: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    Ok(Word::NIL)
}

/// `nodes(Kinds)`.
fn nodes_1(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let k = kinds(ctx, args[0])?;
    let all = of_kinds(ctx, &k);
    Ok(ctx.list(all.into_iter().map(|n| n.0)))
}

/// `nodes(Kinds, Options)`: pairs of node and map.
fn nodes_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let k = kinds(ctx, args[0])?;
    if !args[1].is_map() {
        return Err(ctx.badarg());
    }
    let (mut connection, mut kind) = (false, false);
    for (key, value) in maps::iter(args[1]).collect::<Vec<_>>() {
        match (name(ctx, key), value.as_boolean()) {
            (Some("connection_id"), Some(b)) => connection = b,
            (Some("node_type"), Some(b)) => kind = b,
            _ => return Err(ctx.badarg()),
        }
    }
    let mut list = ListBuilder::new();
    for (node, what) in of_kinds(ctx, &k) {
        let mut pairs = Vec::new();
        if connection {
            pairs.push(("connection_id", atoms::UNDEFINED.word()));
        }
        if kind {
            pairs.push(("node_type", ctx.atom(what)?));
        }
        let info = map_of(ctx, &pairs)?;
        let pair = ctx.tuple(&[node, info]);
        list.push(ctx, pair);
    }
    Ok(list.finish(Word::NIL))
}

/// `monitor_node(Node, On)`.
fn monitor_node_2(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    monitor_node_3(ctx, &[args[0], args[1], Word::NIL])
}

/// `monitor_node(Node, On, Options)`: `notalive` for other nodes, as a node without name has it.
fn monitor_node_3(ctx: &mut Ctx, args: &[Word]) -> Result<Word, Escape> {
    let bad_option = |ctx: &mut Ctx| {
        let cause = ctx.atom("badopt")?;
        Err(ctx.badarg_because(cause))
    };
    let Some(options) = beamr_term::text::list_to_vec(args[2]) else {
        return bad_option(ctx);
    };
    for o in options {
        if name(ctx, o) != Some("allow_passive_connect") {
            return bad_option(ctx);
        }
    }
    if !args[0].is_atom() {
        return Err(ctx.badarg());
    }
    let this = ctx.tables().local_node().0;
    if args[0] != atoms::NONODE_NOHOST.word() && this == atoms::NONODE_NOHOST {
        return Err(ctx.error(atoms::NOTALIVE));
    }
    if !args[1].is_boolean() {
        return Err(ctx.badarg());
    }
    Ok(Word::TRUE)
}

/// `erts_internal:get_creation()`.
fn get_creation_0(ctx: &mut Ctx, _: &[Word]) -> Result<Word, Escape> {
    let creation = ctx.tables().local_node().1;
    Ok(Word::fixnum(i64::from(creation)))
}

const fn row(function: &'static str, arity: u8, func: NativeFn) -> NativeEntry {
    NativeEntry::new("erlang", function, arity, func).needs(Capability::ProcessLocal)
}

/// See the module.
pub const TABLE: &[NativeEntry] = &[
    row("nodes", 0, nodes_0),
    row("nodes", 1, nodes_1),
    row("nodes", 2, nodes_2).releases(ReleaseSpan::since(25)),
    row("monitor_node", 2, monitor_node_2),
    row("monitor_node", 3, monitor_node_3),
    NativeEntry::new("erts_internal", "get_creation", 0, get_creation_0)
        .needs(Capability::ProcessLocal),
];
