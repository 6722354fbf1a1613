//! Processes, heaps, garbage collection, signals, schedulers, code, ets, lowering.
