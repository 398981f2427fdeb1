#!/bin/bash
# Makes the runs of docs/results.md, or goes on with them: each part is a run of its own below RUNS, and one that was
# stopped (Ctrl-C, or killed) is resumed by calling this again. Needs `autoexperiment` in PATH and the suite above this file.
#
#   run.sh RUNS MODELS PART...     RUNS: folder of the runs; MODELS: folder for weights and servers (local-llm.sh)
#
# Parts, of which all but `mutants` need a model: attempts-0.5b attempts-1.5b masked papers full-paper thoughts
# dynamic-0.5b dynamic-1.5b mutants. All ask at the same samples, those of seed 0, so that `compare` pairs them.
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

# A run that is resumed asks at the address that it began with.
declare -A ports=([0.5b]=18105 [1.5b]=18115)

ask() { # NAME SIZE ARGUMENTS...: the same for a model. What all runs share is here, so that `compare` pairs them.
  local name=$1 model=qwen2.5-coder-$2 url
  shift 2
  url=$(LOCAL_LLM_PORT=${ports[${model##*-}]} "$root/tests/support/local-llm.sh" up "$models" "$model")
  run "$name" --model "$model" --base-url "$url" --price 0,0 --request-timeout 30m --temperature 0.8 --max-tokens 600 \
    --steps 20 -j "${JOBS:-4}" "$@"
}

# Short prompts, and none that asks for files: reading is what takes a processor's time.
fixed=fixed:code=ast,passages=2,snippets=1
for part; do
  case $part in
  attempts-0.5b) ask fixed-0.5b 0.5b -n 1 --limit 2 -k 5 --agent $fixed ;;
  attempts-1.5b) ask fixed-1.5b 1.5b -n 1 --limit 2 -k 3 --agent $fixed ;;
  masked) ask masked-0.5b 0.5b -n 2,3 --limit 2 --agent $fixed ;;
  papers) ask papers-0.5b 0.5b -n 1,2 --limit 2 --agent $fixed,paper=none --agent $fixed,paper=oracle ;;
  full-paper) ask full-paper-0.5b 0.5b -n 1,2 --limit 2 --agent $fixed,paper=full ;;
  thoughts) ask thoughts-0.5b 0.5b -n 1 --limit 2 --agent $fixed,reasoning=512 --agent $fixed,repair=2 ;;
  dynamic-0.5b) ask dynamic-0.5b 0.5b -n 1 --limit 2 --agent react:protocol=text ;;
  dynamic-1.5b) ask dynamic-1.5b 1.5b -n 1 --limit 2 --agent react:protocol=text ;;
  mutants) run mutants -n 1,2 --limit 2 --no-baseline --agent mutant:0.3 -j 1 ;;
  *) echo "run.sh: there is no part \`$part\`" >&2 && exit 2 ;;
  esac
done
