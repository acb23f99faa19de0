# A Slurm cluster of one node in the folder $cluster, on this machine and without systemd. Sourced by run.sh.

# Installs Slurm and munge where they are missing.
install_slurm() {
    if command -v slurmctld >/dev/null && command -v munged >/dev/null; then return; fi
    echo "installing slurm-wlm and munge"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge >"$cluster/apt.log" 2>&1
}

# No accounting, no cgroups (a container has none to give), more processors than there may be, so that three elements run
# side by side, and credentials that expire soon: a requeued element waits for that.
write_conf() {
    local host
    host=$(hostname -s)
    mkdir -p "$cluster"/{state,spool,run}
    cat >"$cluster/slurm.conf" <<EOF
ClusterName=bayescope
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$cluster/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/spool
SlurmctldPidFile=$cluster/run/slurmctld.pid
SlurmdPidFile=$cluster/run/slurmd.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,bf_interval=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=20
NodeName=$host NodeAddr=127.0.0.1 CPUs=3 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
    export SLURM_CONF="$cluster/slurm.conf"
}

start_cluster() {
    write_conf
    dd if=/dev/urandom of="$cluster/munge.key" bs=128 count=1 status=none
    chmod 600 "$cluster/munge.key"
    munged --force --foreground --key-file="$cluster/munge.key" --socket="$cluster/munge.socket" --num-threads=2 \
        --pid-file="$cluster/run/munged.pid" --seed-file="$cluster/munge.seed" >"$cluster/munged.log" 2>&1 &
    daemons+=($!)
    await 20 "munged" test -S "$cluster/munge.socket"
    slurmctld -D -c >"$cluster/slurmctld.out" 2>&1 &
    daemons+=($!)
    slurmd -D -c >"$cluster/slurmd.out" 2>&1 &
    daemons+=($!)
    await 60 "an idle node" node_is_idle
}

node_is_idle() { [ "$(sinfo -h -o %T 2>/dev/null)" = idle ]; }

# The job daemons of this cluster, which outlive slurmd: those that write its log.
stepds() {
    local pid
    for pid in $(pgrep -x slurmstepd); do
        if [ -n "$(find "/proc/$pid/fd" -lname "$cluster/*" 2>/dev/null)" ]; then echo "$pid"; fi
    done
}

# Jobs end before the daemons that would end them.
stop_cluster() {
    if [ -n "${SLURM_CONF:-}" ] && [ ${#daemons[@]} -gt 0 ]; then
        timeout 10 scancel --user=root --signal=KILL --full 2>/dev/null
        timeout 10 scancel --user=root 2>/dev/null
        for _ in $(seq 20); do [ -n "$(timeout 5 squeue -h 2>/dev/null)" ] || break; sleep 0.5; done
        kill "${daemons[@]}" 2>/dev/null
        wait "${daemons[@]}" 2>/dev/null
        # shellcheck disable=SC2046
        [ -z "$(stepds)" ] || kill -KILL $(stepds)
    fi
    daemons=()
}
