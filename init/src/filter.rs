//! Compiles rules about system calls into one seccomp filter.
//!
//! The kernel runs the filter for every system call of every command, and once for every call's number when the filter
//! is installed. The filter must therefore be fast: it finds a call's number by bisection instead of comparing it with
//! all listed numbers in turn.

use std::collections::BTreeMap;
use std::io;

use nix::libc::{self, sock_filter};

/// Architecture of the calls, as in the kernel's `linux/audit.h`.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE: u32 = 0xc000_00f3;

/// Offsets in the kernel's `struct seccomp_data`. An argument's low half comes first on all of these architectures.
const NUMBER: u32 = 0;
const ARCHITECTURE_FIELD: u32 = 4;
const ARGUMENTS: u32 = 16;

/// How a call's argument compares with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    /// The argument and the value agree in the bits of this mask.
    Masked(u32),
    /// The whole argument of 64 bits differs. The other comparisons ignore an argument's high half, as the kernel does
    /// for the arguments in question.
    WholeUnequal,
}

/// A condition on one argument of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Condition {
    /// Index of the argument, from 0.
    pub(super) argument: u8,
    pub(super) comparison: Comparison,
    pub(super) value: u64,
}

/// Conditions that must all hold.
pub(super) type Rule = Vec<Condition>;

/// The rules of each call's number. A call is refused if one of its rules holds, or if it is listed without rules.
pub(super) type CallRules = BTreeMap<i64, Vec<Rule>>;

/// Rules together with the error of the calls that they refuse.
pub(super) struct Refusals {
    pub(super) rules: CallRules,
    pub(super) error: i32,
}

/// A compiled filter.
pub(super) type Program = Vec<sock_filter>;

/// Compiles a filter that refuses calls by several sets of rules, of which later ones take precedence. Calls with
/// numbers above `newest` fail with ENOSYS, as if the kernel did not have them. Calls of another architecture end the
/// process.
///
/// # Errors
/// Returns an error if the rules of one call are too long for the filter's jumps, or if the whole filter is too long
/// for the kernel.
pub(super) fn compile(refusals: &[Refusals], newest: u32) -> io::Result<Program> {
    let mut numbers: BTreeMap<u32, Vec<(&[Rule], i32)>> = BTreeMap::new();
    // The first rule that holds decides, so check the rules of later sets first.
    for Refusals { rules, error } in refusals.iter().rev() {
        for (number, rules) in rules {
            let number = u32::try_from(*number).map_err(io::Error::other)?;
            numbers.entry(number).or_default().push((rules, *error));
        }
    }
    let mut calls = Vec::new();
    for (number, sets) in numbers {
        calls.push((number, refuse(&sets)?));
    }
    let mut program = vec![
        load(ARCHITECTURE_FIELD),
        jump(libc::BPF_JEQ, ARCHITECTURE, 1, 0),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
        jump(libc::BPF_JGT, newest, 0, 1),
        fail(libc::ENOSYS),
    ];
    program.extend(bisect(&calls));
    if program.len() > libc::BPF_MAXINSNS as usize {
        return Err(io::Error::other(format!("a filter of {} instructions", program.len())));
    }
    Ok(program)
}

/// Installs a filter for this thread and its future children.
pub(super) fn install(program: &Program) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel reads the live program, which it doesn't change.
    match unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Finds the loaded call number by bisection among the ascending numbers of `calls`, and continues with the
/// instructions of that call. Every path ends with a decision.
fn bisect(calls: &[(u32, Program)]) -> Program {
    match calls {
        [] => vec![end(libc::SECCOMP_RET_ALLOW)],
        [(number, refuse)] => {
            let mut program = vec![jump(libc::BPF_JEQ, *number, 1, 0), end(libc::SECCOMP_RET_ALLOW)];
            program.extend_from_slice(refuse);
            program
        }
        _ => {
            let (below, above) = calls.split_at(calls.len() / 2);
            let (least, below) = (above[0].0, bisect(below));
            // A conditional jump skips at most 255 instructions, so use an unconditional one to skip half of the
            // numbers.
            let mut program = vec![jump(libc::BPF_JGE, least, 0, 1), skip(below.len())];
            program.extend(below);
            program.extend(bisect(above));
            program
        }
    }
}

/// Checks the rules of one call in order. Every path ends with a decision.
fn refuse(sets: &[(&[Rule], i32)]) -> io::Result<Program> {
    let mut program = Vec::new();
    for (rules, error) in sets {
        if rules.is_empty() {
            program.push(fail(*error));
            return Ok(program);
        }
        for rule in *rules {
            program.extend(check(rule, *error)?);
        }
    }
    program.push(end(libc::SECCOMP_RET_ALLOW));
    Ok(program)
}

/// Refuses the call if all conditions hold; otherwise, execution continues after these instructions.
fn check(rule: &Rule, error: i32) -> io::Result<Program> {
    let mut program = vec![fail(error)];
    for condition in rule.iter().rev() {
        let Condition { argument, comparison, value } = *condition;
        // Number of instructions to skip from here to the end of the rule.
        let out = u8::try_from(program.len()).map_err(io::Error::other)?;
        let low = ARGUMENTS + 8 * u32::from(argument);
        let half = value as u32;
        let before = match comparison {
            Comparison::Equal => vec![load(low), jump(libc::BPF_JEQ, half, 0, out)],
            Comparison::Unequal => vec![load(low), jump(libc::BPF_JEQ, half, out, 0)],
            Comparison::Masked(mask) => vec![
                load(low),
                instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask),
                jump(libc::BPF_JEQ, half & mask, 0, out),
            ],
            Comparison::WholeUnequal => vec![
                load(low + 4),
                jump(libc::BPF_JEQ, (value >> 32) as u32, 0, 2),
                load(low),
                jump(libc::BPF_JEQ, half, out, 0),
            ],
        };
        program.splice(0..0, before);
    }
    Ok(program)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset)
}

/// Skips `yes` instructions if the comparison of the loaded value with `value` holds, and `no` instructions if not.
fn jump(comparison: u32, value: u32, yes: u8, no: u8) -> sock_filter {
    instruction(libc::BPF_JMP | comparison | libc::BPF_K, yes, no, value)
}

fn skip(instructions: usize) -> sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JA, 0, 0, instructions as u32)
}

fn end(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, action)
}

fn fail(error: i32) -> sock_filter {
    end(libc::SECCOMP_RET_ERRNO | error as u32)
}
