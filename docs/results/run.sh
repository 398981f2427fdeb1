#!/bin/bash
# Makes the runs of docs/results.md, or goes on with them: each part is a run of its own below RUNS, and one that was
# stopped (Ctrl-C, or killed) is resumed by calling this again. Needs `autoexperiment` in PATH and the suite above this file.
#
#   run.sh RUNS MODELS PART...     RUNS: folder of the runs; MODELS: folder for weights and servers (local-llm.sh)
#
# Parts, each of the model of 0.5B or 1.5B that its name ends with:
#   short-0.5b short-1.5b          the shortest functions, several attempts each
#   drawn-0.5b drawn-1.5b          samples drawn by the seed
#   easiest-0.5b easiest-1.5b      the shortest function of all, many attempts
#   masked-0.5b                    two and three of the shortest functions at once
#   paper-none-0.5b paper-oracle-0.5b paper-full-0.5b, and the same of masked ones: paper-none-masked-0.5b ...
#   reasoning-0.5b repair-0.5b     thoughts of 512 tokens; two rounds of repair
#   dynamic-0.5b dynamic-1.5b      react, calls by text
# With `primer-` before them, parts are of the easy functions of docs/results/primer: all 27 of them, one masked at a time,
# two attempts each where it is not said; `masked` 27 drawn pairs and 27 triples, with `paper` the pairs
# alone, `dynamic` 12 drawn functions. One more:
#   primer-ast-0.5b                with a snippet of other code in the prompt
set -euo pipefail
usage="usage: run.sh RUNS MODELS PART..."
runs=${1:?$usage}
models=${2:?$usage}
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
# Several requests share a batch. On a machine that others use, too, LOCAL_LLM_THREADS=1 is faster than all cores.
export LOCAL_LLM_SLOTS=${LOCAL_LLM_SLOTS:-4} LOCAL_LLM_CONTEXT=${LOCAL_LLM_CONTEXT:-32768}

samples() { printf -- '--sample %s ' "$@"; }
# The primer's.
primer_all="-n 1 -k 2"
primer_some="-n 2,3 --limit 27"
primer_pairs="-n 2 --limit 27"
primer_few="-n 1 --limit 12"
# All 14 functions of the suite that have at most 13 lines (`autoexperiment list PAPER`).
short=$(samples ucb_3 ucb_4 ucb_8 ucb_10 ucb_15 kmeanspp_0 kmeanspp_22 kmeanspp_25 mmd_2 mmd_12 mmd_13 consistency_5 \
  consistency_14 calibration_5)
# Two and three of them that share a paper, in their order.
masked=$(samples ucb_3,4 ucb_8,10 ucb_4,15 kmeanspp_0,22 kmeanspp_22,25 mmd_2,12 mmd_12,13 consistency_5,14 \
  ucb_3,4,8 ucb_8,10,15 kmeanspp_0,22,25 mmd_2,12,13)

run() { # NAME SUITE ARGUMENTS...
  local name=$1 suite=$2
  shift 2
  if [ -e "$runs/$name" ]; then
    autoexperiment resume "$name" --runs "$runs"
  else
    autoexperiment run --suite "$suite" --runs "$runs" --name "$name" --seed 1 --no-baseline "$@"
  fi
}

# A run that is resumed asks at the address that it began with.
declare -A ports=([0.5b]=18105 [1.5b]=18115)

for part; do
  size=${part##*-}
  what=${part%-*}
  suite=$root all=$short some=$masked pairs=$masked few=$short
  # Short prompts, and none that asks for files: reading is what takes a processor's time.
  fixed=fixed:code=ast,passages=2,snippets=1
  if [[ $what == primer-* ]]; then
    suite=$root/docs/results/primer what=${what#primer-}
    all=$primer_all some=$primer_some pairs=$primer_pairs few=$primer_few
    fixed=fixed:code=none,passages=1
  fi
  # Words are split on purpose: none holds a blank.
  # shellcheck disable=SC2206
  case $what in
  short) chosen=(${all% -k 2} --agent $fixed -k "$([ "$part" = short-1.5b ] && echo 2 || echo 5)") ;;
  ast) chosen=($all --agent "${fixed/none/ast},snippets=1") ;;
  easiest) chosen=(--sample ucb_3 -k 20 --agent $fixed) ;;
  drawn) chosen=(-n 1,2 --limit 1 --agent $fixed) ;;
  masked) chosen=($some --agent $fixed) ;;
  paper-*-masked) what=${what#paper-} && chosen=($pairs --agent "$fixed,paper=${what%-masked}") ;;
  paper-*) chosen=($all --agent "$fixed,paper=${what#paper-}") ;;
  reasoning) chosen=($all --agent $fixed,reasoning=512) ;;
  repair) chosen=($all --agent $fixed,repair=2) ;;
  dynamic) chosen=($few --agent react:protocol=text) ;;
  *) echo "run.sh: there is no part \`$part\`" >&2 && exit 2 ;;
  esac
  [ -n "${ports[$size]:-}" ] || { echo "run.sh: \`$part\` does not end with 0.5b or 1.5b" >&2 && exit 2; }
  model=qwen2.5-coder-$size
  url=$(LOCAL_LLM_PORT=${ports[$size]} "$root/tests/support/local-llm.sh" up "$models" "$model")
  run "$part" "$suite" --model "$model" --base-url "$url" --price 0,0 --request-timeout 30m --temperature 0.8 --max-tokens 600 \
    --steps 20 -j "${JOBS:-4}" "${chosen[@]}"
done
