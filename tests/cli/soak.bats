#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The Slurm script of the soak, with an srun that starts the ranks by mpirun.
load helpers

script=$BATS_TEST_DIRNAME/../../scripts/mpirun/soak.sbatch

# stub_srun: two ranks of what stands behind srun's options.
stub_srun() {
  mkdir -p bin build/bin
  ln -s "$(realpath "$BIN/car_stress")" build/bin/car_stress
  cat >bin/srun <<SRUN
#!/bin/sh
echo "\$@" >srun.args
while [ "\${1#--}" != "\$1" ]; do shift; done
exec $MPIRUN -np 2 "\$@"
SRUN
  chmod +x bin/srun
  export PATH=$PWD/bin:$PATH SLURM_JOB_ID=17 SLURM_SUBMIT_DIR=$PWD LIBRUN_BUILD=build
}

@test "soak: help without Slurm, and a word when sbatch is missing" {
  run -0 "$script" --help
  says "usage: sbatch"
  run -2 env -u SLURM_JOB_ID "$script"
  says "to be run by sbatch"
  run -0 "$BATS_TEST_DIRNAME/../../scripts/mpirun/soak.sh" --help
  says "usage: scripts/mpirun/soak.sh"
  run -2 "$BATS_TEST_DIRNAME/../../scripts/mpirun/soak.sh" -np many
  says many
}

@test "soak: a job runs, writes its files and passes its options on" {
  stub_srun
  run -0 "$script" --cycles 3 --max-bytes 64K
  says "job 17"
  says "3 cycles"
  valid_json soak-17.json
  grep -q 'failures="0"' soak-17.junit.xml
  grep -q -- '--mpi=pmix --cpus-per-task=1 --cpu-bind=cores --kill-on-bad-exit=1' srun.args
  LIBRUN_SRUN="--mpi=pmi2 --exact" run -0 "$script" --cycles 1 --max-bytes 64K
  grep -q -- '^--mpi=pmi2 --exact --cpus-per-task' srun.args
}

@test "soak: the exit code is that of the run, and a build that is missing is named" {
  stub_srun
  run -1 "$script" --cycles 5 --max-bytes 64K --fault 'resume_after_open@1:fail'
  grep -q 'failures="1"' soak-17.junit.xml
  LIBRUN_BUILD=build/none run -3 "$script"
  says build/none
}
