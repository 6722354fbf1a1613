//! The portable engine: handlers that end in sibling calls.
