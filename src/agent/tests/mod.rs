//! Tests of the agents in a real sandbox (plain processes in a temporary folder), with a model that gives prepared
//! replies.

mod baselines;
mod cost;
mod fixed;
mod history;
mod limits;
mod malformed;
mod random;
mod react;
mod reflexion;
mod several_calls;
pub mod support;
mod tool_calling;
