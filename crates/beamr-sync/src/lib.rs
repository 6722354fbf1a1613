//! Queues, tables, parking and timers: every atomic of the VM, model-checked.
