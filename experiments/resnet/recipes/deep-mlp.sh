#!/usr/bin/env bash
# How many steps and seconds does a deep MLP need to a training loss of .02, each arm at its best learning rate and temperature?
# Digits, 64 layers of width 64, 300 steps of 64 images, losses on 400 training images. Cells are chosen on seeds 0 to 2 and compared on
# the fresh seeds 10 to 14. Two processes of one thread each. Started again, it repeats what was under way and keeps what was finished.
#
#   experiments/resnet/recipes/deep-mlp.sh runs/deep-mlp
set -euo pipefail
out=${1:?give a directory for the runs}
mkdir -p "$out"
cargo build --workspace --bin experiments-resnet --example deep_mlp
export program=${CARGO_TARGET_DIR:-target}/debug/experiments-resnet
table=${CARGO_TARGET_DIR:-target}/debug/examples/deep_mlp
common="--steps 300 --sequential --set training.warmup=30 --set training.evaluate_every=10 --set evaluation.images=400"

tune() {
    for lr in 3e-4 1e-3 3e-3 1e-2; do
        echo "tune-lr$lr --seeds 3 --lr $lr --arms cascade,constant,0:l,replacing-constant"
        for tau in .01 .1 1; do
            echo "tune-lr$lr-tau$tau --seeds 3 --lr $lr --tau $tau --arms ancre,replacing,replacing-newest"
        done
    done
}

# Lines of a directory and its flags; one that has its report is done.
make_all() {
    export out common
    xargs -P 2 -d '\n' -I{} --process-slot-var=SLOT bash -c '
        set -f; set -- {}
        [ -e "$out/$1/report.json" ] && exit
        rm -rf "$out/$1"
        taskset -c "$SLOT" "$program" classify $common --out "$out/$@" >/dev/null 2>&1 || { echo "failed: $*" >&2; exit 255; }'
}

tune | make_all
"$table" "$out"/tune-*
"$table" --best "$out"/tune-* | awk '{ name = $0; gsub(/[^A-Za-z0-9.]+/, "_", name); print "test" name " --seeds 5 --seed 10 " $0 }' | make_all
"$table" --paired "$out"/test*
