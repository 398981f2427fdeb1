#!/bin/bash
# A small static embedding model as a folder for `--embedding`: WordLlama's token vectors (MIT licence, 256 dimensions,
# 16 MB), which its PyPI package carries, their hash checked. Needs python3 with pip and a download of 20 MB.
#
#   local-embedding.sh FOLDER     makes FOLDER with tokenizer.json, model.safetensors and config.json
set -euo pipefail

folder=${1:?usage: local-embedding.sh FOLDER}
sha256=64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5

if [ -s "$folder/config.json" ]; then exit; fi
mkdir -p "$folder"
parts=$(mktemp -d)
trap 'rm -r "$parts"' EXIT
python3 -m pip --quiet --disable-pip-version-check download --no-deps --only-binary=:all: --no-cache-dir --dest "$parts" \
  wordllama==0.4.0.post1
python3 - "$parts" "$folder" "$sha256" <<'PYTHON'
import glob, hashlib, sys, zipfile
parts, folder, expected = sys.argv[1:]
(wheel,) = glob.glob(f"{parts}/wordllama-*.whl")
with zipfile.ZipFile(wheel) as archive:
    weights = archive.read("wordllama/weights/l2_supercat_256.safetensors")
    tokenizer = archive.read("wordllama/tokenizers/l2_supercat_tokenizer_config.json")
if hashlib.sha256(weights).hexdigest() != expected:
    sys.exit("local-embedding: the weights are not the expected ones")
for name, content in [("tokenizer.json", tokenizer), ("model.safetensors", weights), ("config.json", b'{"normalize": true}\n')]:
    with open(f"{folder}/{name}", "wb") as file:
        file.write(content)
PYTHON
