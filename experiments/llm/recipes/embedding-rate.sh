#!/usr/bin/env bash
# How much of what shortcuts gain is the learning rate of the embeddings? The `cpu` preset with initial embeddings of two sizes. Every arm
# is tuned on seeds 100 and 101, at 600 steps: first the rate of the embeddings at the learning rate 8e-3, over factors with the best one
# inside, and the weight where the arm has one; then the learning rate at what was best. The temperature of ANCRe stays .01. The best cells
# are compared on the fresh seeds 10 to 21, at two run lengths. Two processes of one thread each, or as many as PROCESSES says. Started
# again, it repeats what was under way and keeps what was finished. Some four hours on two cores.
#
#   experiments/llm/recipes/embedding-rate.sh runs/embedding-rate
#   experiments/llm/recipes/embedding-rate.sh runs/embedding-rate 0.02      # one size only
set -euo pipefail
out=${1:?give a directory for the runs}
mkdir -p "$out"
cargo build --release --workspace --bin experiments-llm --example tuned_rates
export program=${CARGO_TARGET_DIR:-target}/release/experiments-llm
rates=${CARGO_TARGET_DIR:-target}/release/examples/tuned_rates
common="--sequential --set training.evaluate_every=300"

# For a standard deviation of the embeddings, factors of their rate and the arms to try them on.
cells() {
    case $1 in
    0.02)
        weighted="2*0:l,3*0:l,4*0:l,gated-first-state,gated-first-state:2"
        echo "0.3 0:l,$weighted"
        echo "1 cascade,ancre,0:l,$weighted"
        echo "3 cascade,ancre,0:l,$weighted"
        echo "10 cascade,ancre,0:l"
        echo "30 cascade"
        echo "100 cascade"
        ;;
    1.0)
        weighted="0.5*0:l,2*0:l,gated-first-state:0.5,gated-first-state"
        echo "0.3 ancre,0:l,$weighted"
        echo "1 cascade,ancre,0:l,$weighted"
        echo "3 cascade,ancre,0:l,$weighted"
        echo "10 cascade"
        ;;
    *) echo "no cells are listed for embeddings of $1" >&2 && return 1 ;;
    esac
}

# Runs, each a line of a directory and its flags.
tune_embeddings() {
    cells "$1" | while read -r factor arms; do
        echo "tune-$1-$factor --seed 100 --seeds 2 --lr 8e-3 --embedding-lr $factor --set model.variant.embedding_std=$1 --arms $arms"
    done
}

# What `$2` makes of the flags of each arm's best cell, which the file `$3` holds.
of_best_cells() {
    while read -r flags; do
        arm=${flags#--arms=} && arm=${arm%% *} && arm=${arm//[^A-Za-z0-9.]/_}
        "$2" "$1" "$arm" "$flags --set model.variant.embedding_std=$1"
    done <"$3"
}

# Written once, so that a choice stands when the script is started again.
choose() {
    file=$1 && shift
    [ -e "$file" ] && return
    "$rates" --best "$@" >"$file.tmp"
    mv "$file.tmp" "$file"
}

other_rates() {
    for lr in 4e-3 1.2e-2; do
        echo "rate-$1-$lr-$2 --seed 100 --seeds 2 $(sed -E "s/--lr [^ ]+/--lr $lr/" <<<"$3")"
    done
}

fresh() {
    for steps in 600 1200; do
        echo "test-$1-$steps-$2 --seed 10 --seeds 12 --steps $steps $3"
    done
}

# Makes those of the runs that have no report yet.
make_all() {
    export out common
    xargs -P "${PROCESSES:-2}" -d '\n' -I{} --process-slot-var=SLOT bash -c '
        set -f; set -- {}
        [ -e "$out/$1/report.json" ] && exit
        rm -rf "$out/$1"
        taskset -c "$SLOT" "$program" $common --out "$out/$@" >/dev/null 2>&1 || { echo "failed: $*" >&2; exit 255; }'
}

experiment() {
    tune_embeddings "$1" | make_all
    choose "$out/embeddings-$1" "$out"/tune-"$1"-*
    of_best_cells "$1" other_rates "$out/embeddings-$1" | make_all
    choose "$out/best-$1" "$out"/{tune,rate}-"$1"-*
    of_best_cells "$1" fresh "$out/best-$1" | make_all
    echo "embeddings of $1, tuning"
    "$rates" "$out"/{tune,rate}-"$1"-*
    for steps in 600 1200; do
        echo "embeddings of $1, $steps steps, fresh seeds"
        "$rates" --paired "$out"/test-"$1"-"$steps"-*
    done
}

for std in ${2:-0.02 1.0}; do
    experiment "$std"
done
