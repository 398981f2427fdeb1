#!/bin/bash
# Makes the runs of docs/results.md, or goes on with them: each part is a run of its own below RUNS, and one that was
# stopped (Ctrl-C, or killed) is resumed by calling this again. Needs `autoexperiment` in PATH and the suite above this file.
#
#   run.sh RUNS MODELS PART...     RUNS: folder of the runs; MODELS: folder for weights and servers (local-llm.sh)
#
# Parts: attempts-0.5b attempts-1.5b papers reasoning masked dynamic-0.5b dynamic-1.5b mutants. Without a model: mutants.
set -euo pipefail
usage="usage: run.sh RUNS MODELS PART..."
runs=${1:?$usage}
models=${2:?$usage}
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
# Several requests share a batch; one thread, because threads wait for each other where others use the cores, too.
export LOCAL_LLM_SLOTS=${LOCAL_LLM_SLOTS:-6} LOCAL_LLM_CONTEXT=${LOCAL_LLM_CONTEXT:-32768} LOCAL_LLM_THREADS=${LOCAL_LLM_THREADS:-1}

run() { # NAME ARGUMENTS...
  local name=$1
  shift
  if [ -e "$runs/$name" ]; then
    autoexperiment resume "$name" --runs "$runs"
  else
    autoexperiment run --suite "$root" --runs "$runs" --name "$name" --seed 0 "$@"
  fi
}

ask() { # NAME SIZE ARGUMENTS...: the same for a model. What all runs share is here, so that `compare` pairs them.
  local name=$1 model=qwen2.5-coder-$2 url
  shift 2
  url=$("$root/tests/support/local-llm.sh" up "$models" "$model")
  run "$name" --model "$model" --base-url "$url" --price 0,0 --request-timeout 30m --temperature 0.8 --max-tokens 600 \
    --steps 20 --code ast --passages 2 --snippets 1 -j "${JOBS:-4}" "$@"
}

for part; do
  case $part in
  attempts-0.5b) ask fixed-0.5b 0.5b -n 1 --limit 2 -k 5 --agent fixed ;;
  attempts-1.5b) ask fixed-1.5b 1.5b -n 1 --limit 2 -k 3 --agent fixed ;;
  papers) ask papers-0.5b 0.5b --no-baseline -n 1 --limit 2 --agent fixed:paper=none --agent fixed:paper=oracle ;;
  masked) ask n23-0.5b 0.5b --no-baseline -n 2,3 --limit 1 --agent fixed ;;
  mutants) run mutants -n 1,2,3 --limit 5 --agent mutant:0.2 --agent mutant:0.5 --agent mutant:0.8 ;;
  *) echo "run.sh: there is no part \`$part\`" >&2 && exit 2 ;;
  esac
done
