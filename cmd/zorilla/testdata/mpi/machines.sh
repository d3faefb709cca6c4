# Three machines, network namespaces on one bridge, with a node each: what scripts with MPI
# programs have in common. It runs in a network namespace of its own, and ends all at its end.
set -e
trap 'kill -9 $pids 2>/dev/null' EXIT
python3 -ES $TESTDATA/mpi/control.py control.txt &
pids=$!
ip link set lo up
ip link add bridge type bridge
ip link set bridge up
on() { local k=$1; shift; exec nsenter -t ${host[$k]} -n -u "$@"; } # in a subshell
for k in 1 2 3; do
	unshare -n -u sleep 1000 >/dev/null 2>&1 & host[$k]=$!
	pids="$pids $!"
	until [ "$(readlink /proc/$!/ns/uts)" != "$(readlink /proc/$$/ns/uts)" ]; do :; done
	(on $k hostname node$k) # by which Open MPI tells machines apart
	ip link add to$k type veth peer name eth0 netns ${host[$k]}
	ip link set to$k master bridge up
	(on $k ip link set lo up)
	(on $k ip addr add 10.7.0.$k/24 dev eth0)
	(on $k ip link set eth0 up)
done
node() {
	on $1 zorilla node --state net/$1 --name node$1 --secret 'a phrase for three machines' --listen 10.7.0.$1:5444 --join 10.7.0.1:5444 --web none --slots 8 --node-limit 5s >>net/$1.log 2>&1 &
	node[$1]=$!
	pids="$pids $!"
}
# until_ REGEXP COMMAND: until it prints that.
until_() { local i; for i in $(seq 300); do "${@:2}" 2>&1 | grep -Eq "$1" && return; sleep 0.2; done; echo "not within a minute: $1: $("${@:2}" 2>&1 | tail -20)"; zorilla explain last; zorilla nodes -v; cat net/*.log; exit 1; }
# three: until all nodes take workers.
three() { until_ '^3$' zorilla run -q --strategy spread --give-up 1s -n 3 sh -c 'echo $ZORILLA_NNODES'; }
# gone NAME: until no rank is left, wherever.
gone() {
	local since=$(date +%s%3N)
	until ! pgrep -x $1 >/dev/null; do
		[ $(($(date +%s%3N) - since)) -lt 30000 ] || { echo "ranks go on: $(ps -eo pid,ppid,args | grep "[.]/$1")"; zorilla status last; cat net/*.log; exit 1; }
		sleep 0.02
	done
	echo "$1: all ranks are gone after $(($(date +%s%3N) - since)) ms"
}
now() { date +%s%3N; }
# soon NAME SINCE: until no rank is left, wherever; verdict is whether that took two seconds
# since a time, or $LATE, took how long. What a program lost to others that had the processors
# does not count. The watcher has a higher priority than they.
soon() {
	read -r took lost < <(nice -n -15 python3 -ES $TESTDATA/mpi/ended.py $1 $2 60000 control.txt) || { echo "ranks go on: $(ps -eo pid,ppid,args | grep "[.]/$1")"; zorilla status last; cat net/*.log; exit 1; }
	verdict="late: $took ms, of which $lost are not its own"
	[ $((took - lost)) -gt ${LATE:-2000} ] || verdict='gone in time'
	echo "$1: all ranks are gone after $took ms; a program that wants a processor now and then lost $lost"
}
# row WORD...: runs fail WORD..., which sets code and calls soon.
row() {
	fail "$@"
	echo "$@: $code, $verdict"
}
# clean: until nothing is left of any job, in work directories and in shared memory.
clean() { until_ '^left:$' sh -c 'echo left: $(find net/*/work -mindepth 1 -maxdepth 1) $(ls /dev/shm | grep -E "vader_segment.node[123]|ucx_shm|mpich")'; }
mkdir -p -m 711 net
export ZORILLA_STATE=$PWD/net/1
node 1; node 2; node 3
three
