#!/bin/bash
# Runs `bayescope slurm` on a real Slurm: a cluster of one node (Debian's slurm-wlm and munge, installed where missing) that is
# set up in a temporary folder and taken down at the end. Not part of `cargo test`: needs root and takes 5 to 10 minutes of two cores.
#
#     cargo build --release && sudo tests/slurm/run.sh [PROGRAM]
#
# A run of 12 cells is carried out here once, without Slurm, and then as an array of 6 tasks, three at a time:
#   USR1   one element is told to stop in the middle of a cell, writes a checkpoint and queues itself again;
#   KILL   another one is stopped like that, and after it went on its program is killed with -9 and the element requeued by hand;
#   CANCEL one element is cancelled in the middle, has to stay cancelled, and the same script is submitted again.
# Every time summary.json has to be the local run's, byte for byte. Prints PASS or FAIL; keeps its folder where it failed.

set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
program=$(realpath "${1:-${CARGO_TARGET_DIR:-$root/target}/release/bayescope}")
work=$(mktemp -d "${TMPDIR:-/tmp}/bayescope-slurm.XXXXXX")
cluster="$work/cluster"
daemons=()
# Names that a script has to quote.
shared="$work/it's shared, 100%"
node_disk="$work/node disk"
mkdir -p "$cluster" "$shared" "$node_disk"
# shellcheck source=tests/slurm/cluster.sh
. "$here/cluster.sh"

fail() {
    echo "FAIL: $*"
    echo "left to look at: $work"
    trap - EXIT
    stop_cluster
    exit 1
}

finish() {
    stop_cluster
    rm -rf -- "$work"
}
trap finish EXIT
trap 'fail interrupted' INT TERM

# await SECONDS WHAT COMMAND…: until the command succeeds.
await() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        [ $SECONDS -lt $end ] || fail "waited too long for $what"
        sleep 0.2
    done
}

write_spec() {
    cat >"$shared/spec.toml" <<'EOF'
name = "slurm test"
[world]
oracle = "mnist"
tau = 1.3
[grid]
architectures = ["linear", "mlp-500"]
train_sizes = [100, 200, 400]
seeds = [0, 1]
[test]
images = 200
watched = 50
[training]
epochs = 80
batch = 16
learning_rate = 1e-3
weight_decay = 0.01
shards = 2
EOF
}

# submit RUN: plans it where it is not planned, writes the script, hands it to Slurm. Sets $job.
submit() {
    "$program" plan "$shared/spec.toml" --out "$1" --device cpu >/dev/null || fail "no plan"
    "$program" slurm "$1" --tasks 6 --cpus 1 --time 01:00:00 --device cpu --bayescope "$program" >"$1/job.sh" || fail "no script"
    job=$(cd / && TMPDIR="$node_disk" sbatch --parsable "$1/job.sh") || fail "sbatch refused the script"
    run=$1
    started=$SECONDS
}

# The cell that the plan lists at a number, from 0.
cell_of() { sed -n "$(($1 + 1))p" "$run/plan.jsonl" | grep -o '"id":"[0-9a-f]*"' | cut -d'"' -f4; }
status_of() { grep -o "\"$2\": *[^,]*" "$run/cells/$(cell_of "$1")/status.json" 2>/dev/null | sed 's/.*: *//; s/"//g'; }

# in_the_middle CELL STEPS: whether it runs and has done so many steps.
in_the_middle() { [ "$(status_of "$1" state)" = running ] && [ "$(status_of "$1" step)" -ge "$2" ]; }
element_is() { [ "$(scontrol show job "${job}_$1" 2>/dev/null | grep -o 'JobState=[A-Z]*' | head -1)" = "JobState=$2" ]; }
log_says() { grep -qs -- "$2" "$run/slurm/${job}_$1.log"; }
queue_is_empty() { [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; }
all_finished() {
    await 600 "the array" queue_is_empty
    for log in "$run/slurm/${job}"_*.log; do
        tail -n 1 "$log" | grep -q 'ended with status 0' || fail "$log ends otherwise"
    done
}

# The run's summary is the local one's, and nothing is left on the node.
same() {
    cmp "$shared/local/summary.json" "$run/summary.json" || fail "$1: another summary"
    cmp "$shared/local/summary.csv" "$run/summary.csv" || fail "$1: another table"
    for pool in "$shared"/local/pool/*.npz; do cmp "$pool" "$run/pool/${pool##*/}" || fail "$1: other images"; done
    [ -z "$(find "$run" -name '*.part')" ] || [ "$1" = KILL ] || fail "$1: temporary files are left"
    [ -z "$(ls -A "$node_disk")" ] || fail "$1: copies are left on the node"
    echo "$1: same summary.json as the local run, $((SECONDS - started)) s"
}

usr1() {
    submit "$shared/usr1"
    # Cell 10 of task 4 is an MLP on 400 images, one of the two longest.
    await 300 "cell 10" in_the_middle 10 200
    local at
    at=$(status_of 10 step)
    scancel --signal=USR1 --batch "${job}_4" || fail "no signal"
    await 30 "a requeue" log_says 4 "back in the queue"
    all_finished
    log_says 4 "going on at step" && log_says 4 "start 2" || fail "task 4 began anew"
    echo "USR1: stopped after step $at, $(grep -o 'going on at step [0-9]*' "$run/slurm/${job}_4.log")"
    same USR1
}

kill9() {
    submit "$shared/kill"
    await 300 "cell 11" in_the_middle 11 200
    scancel --signal=USR1 --batch "${job}_5" || fail "no signal"
    await 60 "a second start" log_says 5 "going on at step"
    local resumed
    resumed=$(grep -o 'going on at step [0-9]*' "$run/slurm/${job}_5.log" | grep -o '[0-9]*$')
    await 60 "more steps" in_the_middle 11 $((resumed + 100))
    kill -9 "$(status_of 11 pid)" || fail "no such process"
    await 30 "its end" log_says 5 "ended with status 137"
    await 30 "a failed element" element_is 5 FAILED
    scontrol requeue "${job}_5" || fail "not requeued"
    all_finished
    log_says 5 "start 3" || fail "task 5 was not started a third time"
    same KILL
}

cancel() {
    submit "$shared/cancel"
    await 300 "cell 10" in_the_middle 10 200
    scancel "${job}_4" || fail "not cancelled"
    await 60 "its end" log_says 4 "ended with status 75"
    await 600 "the array" queue_is_empty
    element_is 4 CANCELLED || fail "a cancelled element came back"
    cmp -s "$shared/local/summary.json" "$run/summary.json" && fail "nothing was missing"
    submit "$shared/cancel"
    all_finished
    log_says 4 "going on at step" || fail "task 4 began anew"
    log_says 0 "12 of 12 cells\|11 of 12 cells" || fail "task 0 had something left to do"
    same CANCEL
}

install_slurm || fail "Slurm could not be installed"
write_spec
started=$SECONDS
"$program" run "$shared/spec.toml" --out "$shared/local" --device cpu >/dev/null 2>"$work/local.log" || fail "the local run"
echo "local run: 12 cells, $((SECONDS - started)) s"
start_cluster
echo "cluster: $(slurmd -V), $(sinfo -h -o '%D node, %c processors')"
usr1
kill9
cancel
echo "PASS"
