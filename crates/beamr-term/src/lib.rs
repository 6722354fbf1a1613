//! Erlang terms: words, layouts, atoms, order, hash, printing, arithmetic, external format.
