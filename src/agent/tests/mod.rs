//! The agents in a real sandbox (plain processes in a temporary folder), with a model whose replies are given.

mod baselines;
mod cost;
mod fixed;
mod history;
mod limits;
mod malformed;
mod manner;
mod random;
mod react;
mod reflexion;
pub mod support;
