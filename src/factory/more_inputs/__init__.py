"""Makes tests that call functions of a package with more inputs than its own tests have.

The runner of the tests loads this package into the process that runs them, on trusted code only. `recorder` records the
calls of each function: its arguments, and the sequence of calls that a test makes. `calls` recombines and changes the
arguments of single calls, and `sequences` those of whole sequences; both keep what gives the same outcomes twice. An
outcome is what the original function returns or changes, or the exception that its own `raise` statement raises.
`test_files` turns chosen calls into the source of a test file, in which the outcomes are literals. `selection` sets some
calls apart as examples for agents. Tests make these calls, too, so that a solution that contradicts an example fails; only
what is arbitrary for the original function is not tested.
"""
