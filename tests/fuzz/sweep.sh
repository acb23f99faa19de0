#!/bin/sh
# Gives every reader INPUTS inputs, or what fits into SECONDS, each reader in a process of its own, JOBS at a time.
# usage: tests/fuzz/sweep.sh [INPUTS [SECONDS [JOBS]]]; one line a reader, and a non-zero exit where one failed.
set -e
export BAYESCOPE_FUZZ=${1:-1000000} BAYESCOPE_FUZZ_SECONDS=${2:-100000}
binary=$(cargo test --release --features bundle,lend --test fuzz --no-run --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
# An allocation that nobody has memory for ends the process, not the machine.
ulimit -v 24000000
"$binary" --list | sed -n 's/: test$//p' |
    xargs -P "${3:-2}" -I{} sh -c '"$0" "$1" --exact --nocapture 2>&1 | grep "inputs in\|panicked\|faults\|kept as\|HANGS"' "$binary" {}
