//! Stand-in for the external format decoder until it is there.
use beamr_term::{Build, Fragment, Tables, Word, maps};

struct R<'a>(&'a [u8]);
impl R<'_> {
    fn n(&mut self, n: usize) -> u64 {
        let mut v = 0;
        for _ in 0..n {
            v = v << 8 | self.0[0] as u64;
            self.0 = &self.0[1..];
        }
        v
    }
}
pub fn decode(bytes: &[u8], t: &Tables, b: &mut Fragment) -> Result<Word, String> {
    let mut r = R(bytes);
    r.n(1);
    term(&mut r, t, b)
}
fn term(r: &mut R, t: &Tables, b: &mut Fragment) -> Result<Word, String> {
    Ok(match r.n(1) {
        97 => Word::fixnum(r.n(1) as i64),
        98 => Word::fixnum(r.n(4) as u32 as i32 as i64),
        70 => b.float(f64::from_bits(r.n(8))),
        tag @ (104 | 105) => {
            let n = r.n(if tag == 104 { 1 } else { 4 });
            let v: Result<Vec<_>, _> = (0..n).map(|_| term(r, t, b)).collect();
            b.tuple(&v?)
        }
        106 => Word::NIL,
        107 => {
            let n = r.n(2) as usize;
            let w = b.list(
                r.0[..n]
                    .iter()
                    .map(|c| Word::fixnum(*c as i64))
                    .collect::<Vec<_>>(),
            );
            r.n(n);
            w
        }
        108 => {
            let n = r.n(4);
            let v: Result<Vec<_>, _> = (0..n).map(|_| term(r, t, b)).collect();
            let tail = term(r, t, b)?;
            b.list_with_tail(v?, tail)
        }
        tag @ (100 | 118 | 115 | 119) => {
            let n = r.n(if tag == 100 || tag == 118 { 2 } else { 1 }) as usize;
            let w = t
                .atoms
                .intern(std::str::from_utf8(&r.0[..n]).unwrap())
                .unwrap()
                .word();
            r.n(n);
            w
        }
        109 => {
            let n = r.n(4) as usize;
            let w = b.binary(&r.0[..n]);
            r.n(n);
            w
        }
        77 => {
            let n = r.n(4) as usize;
            let last = r.n(1);
            let (w, p) = b.heap_bits(n as u64 * 8 - 8 + last);
            for i in 0..n {
                // SAFETY: the bitstring has room for the bytes.
                unsafe { *p.add(i) = r.0[i] };
            }
            r.n(n);
            w
        }
        tag @ (110 | 111) => {
            let n = r.n(if tag == 110 { 1 } else { 4 }) as usize;
            let neg = r.n(1) != 0;
            let mut l = vec![0u64; n.div_ceil(8)];
            for i in 0..n {
                l[i / 8] |= (r.0[i] as u64) << (8 * (i % 8));
            }
            r.n(n);
            b.big(neg, &l)
        }
        113 => {
            let m = term(r, t, b)?;
            let f = term(r, t, b)?;
            let a = term(r, t, b)?;
            let (Some(mm), Some(ff)) = (m.as_atom(), f.as_atom()) else {
                return Err("export".into());
            };
            let id = t
                .exports
                .id(mm, ff, a.small_value() as u32)
                .map_err(|e| e.to_string())?;
            b.export_fun(id, m, f, a.small_value() as u32)
        }
        116 => {
            let n = r.n(4);
            let mut pairs = Vec::new();
            for _ in 0..n {
                pairs.push((term(r, t, b)?, term(r, t, b)?));
            }
            maps::from_pairs(b, &pairs, t)
        }
        tag => return Err(format!("tag {tag}")),
    })
}
