#!/usr/bin/env bash
# What makes ANCRe's 64 layers of width 32 train slowly on the point in the big maze, and what mends it? The paper's form, arms whose
# stream keeps its size, a normalisation before the heads in all arms, and twice the width: three seeds of 2,000 updates each.
# Two processes of one thread each, some 15 minutes on idle cores. Started again, it goes on where it was.
#
#   experiments/resnet/recipes/depth-64.sh runs/depth-64
set -euo pipefail
out=${1:?give a directory for the runs}
mkdir -p "$out"
cargo build --workspace --bin experiments-resnet
export program=${CARGO_TARGET_DIR:-target}/debug/experiments-resnet out
export common="--depth 64 --seeds 3 --steps 2000 --set training.evaluate_every=200 --set evaluation.episodes=64"

comparisons() {
    echo "paper --arms cascade,ancre,replacing,zero-scalars"
    echo "normed --set model.norm_before_heads=true --arms cascade,ancre,replacing"
    echo "wide --width 64 --arms cascade,ancre"
}

comparisons | xargs -P 2 -d '\n' -I{} --process-slot-var=SLOT bash -c '
    set -f; set -- {}
    [ -e "$out/$1/report.json" ] && exit
    if [ -e "$out/$1" ]; then set -- "$1" --resume "$out/$1"; else set -- "$@" $common --out "$out/$1"; fi
    name=$1; shift
    taskset -c "$SLOT" "$program" "$@" >/dev/null 2>&1 || { echo "failed: $name" >&2; exit 255; }'
for name in paper normed wide; do cat "$out/$name/report.md"; done
