#!/bin/bash
# Makes the runs of registered.md, or goes on with them. What follows RUNS goes to each `autoexperiment run`.
# REGISTERED_LIMIT and REGISTERED_K make it smaller, to try it; the study itself has neither.
set -euo pipefail
usage="usage: registered.sh RUNS --model MODEL [OPTION...]"
runs=${1:?$usage}
shift
[ $# -gt 0 ] || { echo "$usage" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
limit=${REGISTERED_LIMIT:-27} k=${REGISTERED_K:-5}

run() { # NAME SUITE ARGUMENTS...
  local name=$1 suite=$2
  shift 2
  if [ -e "$runs/$name" ]; then
    autoexperiment resume "$name" --runs "$runs"
  else
    autoexperiment run --suite "$here/$suite" --runs "$runs" --name "$name" --seed 1 --no-baseline --limit "$limit" \
      -k "$k" --temperature 0.8 --max-tokens 1200 --steps 20 "$@"
  fi
}

for suite in primer conventions; do
  run "$suite-fall" $suite -n 1,2,3 --agent fixed:code=none,paper=full "$@"
  run "$suite-text" $suite -n 1,2,3 --agent fixed:code=none,paper=none "$@"
  run "$suite-dynamic" $suite -n 1 --agent react:protocol=text,paper=full "$@"
done
