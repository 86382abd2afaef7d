#!/usr/bin/env bash
# How much of what shortcuts gain is the learning rate of the embeddings? The `cpu` preset with initial embeddings of two sizes. Every arm
# is tuned alike on seeds 100 and 101: first the rate of the embeddings (and the weight of `0:l`) at the learning rate 8e-3, then the
# learning rate at what was best. Cells are compared on the fresh seeds 10 to 21, at two run lengths. Two processes of one thread each.
# Started again, it repeats what was under way and keeps what was finished. Some four hours on two cores.
#
#   experiments/llm/recipes/embedding-rate.sh runs/embedding-rate
set -euo pipefail
out=${1:?give a directory for the runs}
mkdir -p "$out"
cargo build --release --workspace --bin experiments-llm --example tuned_rates
export program=${CARGO_TARGET_DIR:-target}/release/experiments-llm
rates=${CARGO_TARGET_DIR:-target}/release/examples/tuned_rates
common="--sequential --set training.evaluate_every=300"

# Initial standard deviation of the embeddings, and weights of `0:l` to try: those of small embeddings are larger.
problems() {
    echo "0.02 2*0:l,4*0:l"
    echo "1.0 0.5*0:l,2*0:l"
}

tune_embeddings() {
    problems | while read -r std weights; do
        for factor in 1 3 10 30; do
            echo "tune-$std-$factor --seed 100 --seeds 2 --lr 8e-3 --embedding-lr $factor --set model.variant.embedding_std=$std" \
                "--arms cascade,ancre,0:l,$weights"
            echo "tune-$std-$factor-gated --seed 100 --seeds 2 --lr 8e-3 --embedding-lr $factor --set model.variant.embedding_std=$std" \
                "--arms gated-first-state"
        done
    done
}

# The flags of each arm's best cell, with what `$1` makes of them.
best_cells() {
    problems | while read -r std _; do
        "$rates" --best "$out"/tune-"$std"-* | while read -r flags; do
            arm=${flags#--arms=} && arm=${arm%% *} && arm=${arm//[^A-Za-z0-9.]/_}
            "$1" "$std" "$arm" "$flags --set model.variant.embedding_std=$std"
        done
    done
}

other_rates() {
    for lr in 4e-3 1.2e-2; do
        echo "tune-$1-lr$lr-$2 --seed 100 --seeds 2 ${3/--lr 0.008/--lr $lr}"
    done
}

fresh() {
    for steps in 600 1200; do
        echo "test-$1-$steps-$2 --seed 10 --seeds 12 --steps $steps $3"
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

tune_embeddings | make_all
best_cells other_rates | make_all
best_cells fresh | make_all
for std in 0.02 1.0; do
    echo "embeddings of $std"
    "$rates" "$out"/tune-"$std"-*
    for steps in 600 1200; do
        echo "embeddings of $std, $steps steps, fresh seeds"
        "$rates" --paired "$out"/test-"$std"-"$steps"-*
    done
done
