#!/usr/bin/env bash
# Does ANCRe help a small DiT? Every arm at several learning rates and temperatures, on digits, 12 blocks of width 64, 400 steps
# of 32 images, with a cosine to a twentieth. Cells are chosen on seeds 0 to 2 and compared on the fresh seeds 10 to 21. Two
# processes of one thread each. Started again, it repeats what was under way and keeps what was finished.
#
#   experiments/diffusion/recipes/small-scale.sh runs/small-scale
set -euo pipefail
out=${1:?give a directory for the runs}
mkdir -p "$out"
cargo build --workspace --bin experiments-diffusion --example tuned_arms
export program=${CARGO_TARGET_DIR:-target}/debug/experiments-diffusion
table=${CARGO_TARGET_DIR:-target}/debug/examples/tuned_arms
common="--samples 0 --steps 400 --batch 32 --sequential --set training.evaluate_every=100 --set evaluation.images=0"

tune() {
    for lr in 4e-3 8e-3 12e-3 16e-3; do
        echo "tune-lr$lr-a --seeds 3 --lr $lr --arms cascade,constant,0:l,zero-scalars"
        echo "tune-lr$lr-b --seeds 3 --lr $lr --arms=-0.5*0:1,0:1,scalars,1:11+2:10+3:9+4:8+5:7"
        for tau in .01 .1 1; do
            echo "tune-lr$lr-tau$tau --seeds 3 --lr $lr --tau $tau --arms ancre"
        done
    done
    # What the arms above differ in, one at a time: the growth of the stream without any long shortcut (1.4806^12 = 111, that
    # of the uniform mix), and the mixes without growth.
    for lr in 8e-3 12e-3 16e-3; do
        echo "tune-lr$lr-c --seeds 3 --lr $lr --arms=0.4806*cascade,replacing-constant"
        for tau in .1 1; do
            echo "tune-lr$lr-r-tau$tau --seeds 3 --lr $lr --tau $tau --arms replacing,replacing-newest"
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
        taskset -c "$SLOT" "$program" $common --out "$out/$@" >/dev/null 2>&1 || { echo "failed: $*" >&2; exit 255; }'
}

tune | make_all
"$table" "$out"/tune-*
"$table" --best "$out"/tune-* | awk '{ name = $0; gsub(/[^A-Za-z0-9.]+/, "_", name); print "test" name " --seeds 12 --seed 10 " $0 }' | make_all
"$table" --paired "$out"/test*
