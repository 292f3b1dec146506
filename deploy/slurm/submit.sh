#!/bin/sh
# Measure with an array, then cluster and release: deploy/slurm/submit.sh /shared/one/corpus.toml 16
# An element that failed is run again alone: sbatch --array=3 deploy/slurm/process.sbatch CONFIG 16
set -eu
config=$1
world=$2
here=$(cd "$(dirname "$0")" && pwd)

process=$(sbatch --parsable --array="0-$((world - 1))" "$here/process.sbatch" "$config" "$world")
dedup=$(sbatch --parsable --dependency="afterok:$process" "$here/release.sbatch" "$config" dedup)
export_job=$(sbatch --parsable --dependency="afterok:$dedup" "$here/release.sbatch" "$config" export)
echo "process $process, dedup $dedup, export $export_job"
