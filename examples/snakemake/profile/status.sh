#!/bin/sh
# Tells Snakemake how a job is: running, success or failed. Why it failed goes to the standard error.
#
#	status.sh ID
said=$(zorilla status --json "$1" 2>&1) || {
	case $said in
	*"not found"*) echo "$said" >&2; echo failed ;; # nobody knows it any more
	*) echo running ;;                              # the node is away: what becomes of it is seen when it is back
	esac
	exit 0
}

# field prints a text of the job itself, not of its parts. It is asked often: no other program is started.
newline='
'
field() {
	value=${said#*"$newline  \"$1\": \""}
	[ "$value" = "$said" ] || printf '%s\n' "${value%%\"*}"
}

state=$(field state)
case $state in
COMPLETED) echo success ;;
FAILED | CANCELLED | TIMEOUT | NODE_FAIL)
	{
		echo "zorilla: job $1: $state: $(field reason)"
		zorilla logs "$1" | tail -n 20
	} >&2 2>&1
	echo failed
	;;
PENDING)
	# Everybody was asked, and nobody shows the directory: that does not change by waiting.
	missing=$(field reason | sed -n 's/.*: \([0-9]*\) asked: \1 its owner does not expose \(.*\); .*/\2/p')
	if [ -n "$missing" ]; then
		echo "zorilla: no node shows workers $missing: share it, and say at each node: zorilla owner set expose+=$missing:rw" >&2
		zorilla cancel "$1" >&2
		echo failed
	else
		echo running
	fi
	;;
*) echo running ;;
esac
