#!/usr/bin/env bash
# Makes every picture of docs/ anew, from the program of this checkout: first what the pictures show (the guide's dataset and classifier,
# the quick runs), then tests/screenshots.rs, which opens it in the window and takes the pictures.
#   docs/screenshots.sh [SCENE…]          all, or these: explorer-light judge experiments/shift …
# BAYESCOPE_MADE    where what is shown is kept (default ~/.cache/bayescope-screenshots): finished runs are not run again
# BAYESCOPE_MNIST   a folder with MNIST's four files, for `validation` (as on its page with the digits alone that the oracle was trained on) and
#                   `experiments/hardness`
# BAYESCOPE_PYTHON  a Python with NumPy (default python3), for `judge`
# Nearly all of its time from nothing is training (an hour and more on two cores). A run that was stopped is gone on with; no picture is taken of one that is not whole.
set -euo pipefail
cd "$(dirname "$0")/.."
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-$HOME/.cache/bayescope-target}")
BAYESCOPE_MADE=$(realpath -m "${BAYESCOPE_MADE:-$HOME/.cache/bayescope-screenshots}")
export CARGO_TARGET_DIR BAYESCOPE_MADE BAYESCOPE_PICTURES="$PWD/docs" BAYESCOPE_SCENES="$*"
mkdir -p "$BAYESCOPE_MADE/runs" "$BAYESCOPE_MADE/data"

wanted() { [ -z "$BAYESCOPE_SCENES" ] || [[ " $BAYESCOPE_SCENES " == *" $1 "* ]]; }

cargo test --release --features bundle,lend --locked --no-run --test screenshots
bayescope="$CARGO_TARGET_DIR/release/bayescope"

if wanted judge && [ ! -e "$BAYESCOPE_MADE/mine.npz" ]; then
    "$bayescope" export mnist --target 5% --train 10000 --test 2000 --out "$BAYESCOPE_MADE/hard"
    "${BAYESCOPE_PYTHON:-python3}" docs/classifier.py "$BAYESCOPE_MADE/hard" "$BAYESCOPE_MADE/mine.npz"
fi
run() { [ -e "$BAYESCOPE_MADE/runs/$1/.whole" ] || {
    "$bayescope" run "${2:-$1}" --out "$BAYESCOPE_MADE/runs/$1" && touch "$BAYESCOPE_MADE/runs/$1/.whole"
}; }
if wanted experiments || wanted worst-images; then run guide tests/screenshots/guide.toml; fi
for kind in temperature self-validation soft-labels shift active-learning graders; do
    if wanted "experiments/$kind"; then run "$kind-quick"; fi
done
if wanted validation || wanted experiments/hardness; then
    # `hardness-quick` names its corpora as `data/mnist` below the present folder.
    mnist=$(realpath "${BAYESCOPE_MNIST:?names no folder with the files of MNIST}")
    ln -sfn "$mnist" "$BAYESCOPE_MADE/data/mnist"
fi
if wanted experiments/hardness; then (cd "$BAYESCOPE_MADE" && run hardness-quick); fi
if wanted validation; then
    "$bayescope" oracle validate mnist@9b44f254 --data "$mnist" --images 1000 --report "$BAYESCOPE_MADE/validation" >/dev/null
fi
cargo test --release --features bundle,lend --locked --test screenshots -- --nocapture
