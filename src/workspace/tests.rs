//! Tests of snapshots, workspaces and changes on real file systems, with real overlays and git.

mod apply;
mod changes;
mod support;
mod take;
