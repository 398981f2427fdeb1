//! Environments of conda packages, solved, locked and installed by this program.

#[cfg_attr(not(test), expect(dead_code, reason = "the backend that asks is not there yet"))]
mod channels;
#[expect(dead_code, reason = "the backend that asks is not there yet")]
mod settings;
