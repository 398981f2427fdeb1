#!/usr/bin/env bash
# A Slurm of three nodes with two processors each on this machine, for tests: `slurm.sh up DIR`, then `export
# SLURM_CONF=DIR/slurm.conf`; `slurm.sh node DIR N` starts the daemon of a node again; `slurm.sh down DIR`.
# Jobs in the partition `urgent` preempt others.
# Needs root, and Debian's packages slurm-wlm and munge.
set -euo pipefail
verb=$1 dir=$2
export SLURM_CONF=$dir/slurm.conf

node() { slurmd -f "$SLURM_CONF" -N "node$1"; }

stop() {
  local pid
  pid=$(cat "$1" 2>/dev/null) || return 0
  kill "$pid" 2>/dev/null || return 0
  for _ in $(seq 50); do
    kill -0 "$pid" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -9 "$pid" || true
}

down() {
  scancel --state=RUNNING,PENDING -u "$(id -un)" 2>/dev/null || true
  for n in 1 2 3; do stop "$dir/node$n.pid"; done
  stop "$dir/slurmctld.pid"
  stop "$dir/munged.pid"
}

up() {
  mkdir -p "$dir"/munge "$dir"/state "$dir"/spool/node{1,2,3}
  chmod 700 "$dir/munge"
  chmod 755 "$dir"
  head -c 1024 /dev/urandom >"$dir/munge/key"
  chmod 400 "$dir/munge/key"
  cat >"$SLURM_CONF" <<CONF
ClusterName=tests
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
SlurmctldPort=16917
SlurmctldPidFile=$dir/slurmctld.pid
SlurmctldLogFile=$dir/slurmctld.log
StateSaveLocation=$dir/state
SlurmdPidFile=$dir/%n.pid
SlurmdLogFile=$dir/%n.log
SlurmdSpoolDir=$dir/spool/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdTimeout=15
SlurmctldTimeout=30
KillWait=5
OverTimeLimit=0
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
CONF
  for n in 1 2 3; do
    echo "NodeName=node$n NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((17100 + n)) CPUs=2 RealMemory=2000 State=UNKNOWN" >>"$SLURM_CONF"
  done
  echo "PartitionName=main Nodes=node[1-3] Default=YES MaxTime=INFINITE PriorityTier=1 State=UP" >>"$SLURM_CONF"
  echo "PartitionName=urgent Nodes=node[1-3] MaxTime=INFINITE PriorityTier=2 PreemptMode=OFF State=UP" >>"$SLURM_CONF"
  # Slurm's daemons load a plugin for control groups even though it is not used here.
  local groups=cgroup/v1
  [ ! -f /sys/fs/cgroup/cgroup.controllers ] || groups=cgroup/v2
  printf 'CgroupPlugin=%s\nConstrainCores=no\nConstrainRAMSpace=no\n' "$groups" >"$dir/cgroup.conf"
  munged --force --key-file="$dir/munge/key" --socket="$dir/munge.socket" --pid-file="$dir/munged.pid" \
    --log-file="$dir/munged.log" --seed-file="$dir/munge/seed"
  slurmctld -c -f "$SLURM_CONF"
  for n in 1 2 3; do node "$n"; done
  for _ in $(seq 100); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null | head -n 1)" != 3 ] || return 0
    sleep 0.2
  done
  echo "no Slurm starts here" >&2
  tail -n 5 "$dir"/*.log >&2
  exit 1
}

case $verb in
  up) up ;;
  down) down ;;
  node) node "$3" ;;
esac
