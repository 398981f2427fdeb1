#!/bin/sh
# Stands in front of Python in PATH, and writes down that one begins: one that leaves no trace was started with an
# option that keeps it from importing sitecustomize.
folder=${0%/*}
echo "$$" >> "$folder/../started"
exec "$(PATH="${PATH#"$folder":}" command -v "${0##*/}")" "$@"
