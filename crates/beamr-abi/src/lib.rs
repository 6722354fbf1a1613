//! What a native function sees: process context, allocation, errors, traps, native tables.
