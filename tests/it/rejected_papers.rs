//! Runs refuse papers that `check` rejects.

use crate::support::Lab;

#[test]
fn a_run_refuses_a_paper_with_todo_parts_unless_the_option_unchecked_is_given() {
    let lab = Lab::new();
    lab.edit("papers/tiny/paper.toml", "description = \"", "description = \"TODO: ");
    let refused = lab.fails(3, &["run", "--sample", "tiny_0", "--agent", "gold", "--name", "r"]);
    assert!(refused.contains("is still to be written") && refused.contains("--unchecked"), "{refused}");
    lab.ok(&["run", "--sample", "tiny_0", "--agent", "gold", "--name", "r", "--unchecked"]);
    assert!(lab.fails(3, &["resume", "r"]).contains("is still to be written"));
    lab.ok(&["resume", "r", "--unchecked"]);
}

#[test]
fn a_run_refuses_an_env_that_lists_the_papers_own_package() {
    let lab = Lab::new();
    lab.edit("envs/tiny/environment.yml", "dependencies:", "dependencies:\n  - conda-forge::tiny=1.0");
    let refused = lab.fails(3, &["run", "--sample", "tiny_0", "--agent", "gold"]);
    assert!(refused.contains("has a package `tiny`, which is the paper's own"), "{refused}");
    assert!(lab.run(&["check", "tiny"]).stdout.contains("has a package `tiny`"));
}
