#!/bin/sh
# Makes docs/page.png, the picture of the page in README.md: of real nodes at the six sites of
# the lab, with real jobs, by headless Chromium.
#
#     go run ./testnet/hosts grid5000 -- sh docs/picture.sh
#
# It takes a minute. Root, or a user who may make namespaces; go, chromium and netpbm in the path.
set -e
test -n "$ZORILLA_LAB" || { echo 'run it in the lab: go run ./testnet/hosts grid5000 -- sh docs/picture.sh' >&2; exit 2; }
hosts='nancy-1 nancy-2 lyon-1 lyon-2 rennes-1 rennes-2 bordeaux-1 bordeaux-2 grenoble-1 grenoble-2 sophia-1 sophia-2'
here=nancy-1
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
at() { lab host "$here" "$@"; }

# until_ PATTERN COMMAND... waits until the command prints a line like that.
until_() {
	pattern=$1
	shift
	for try in $(seq 300); do
		if "$@" 2>/dev/null | grep -E -q "$pattern"; then
			return
		fi
		sleep 0.2
	done
	echo "picture.sh: nothing like '$pattern' in what $* prints" >&2
	exit 1
}
# clustered prints how many nodes the first one has found the sites of, which takes some seconds.
clustered() { at zorilla nodes --json | tr ',' '\n' | grep -c '"cluster": "[a-z]*"'; }
members() { at zorilla nodes --json | tr ',' '\n' | grep -c '"rtt":'; }

CGO_ENABLED=0 go build -o "$work/nqueens" ./examples/nqueens
for host in $hosts; do
	slots=4
	case $host in *-2) slots=8 ;; esac
	lab host "$host" zorilla node --join 10.0.1.1:5444 --site "${host%-*}" --slots $slots >"$work/$host.log" 2>&1 &
done
until_ '^11$' members

cd "$work"
at zorilla run -J hello -n 12 --strategy spread hostname >/dev/null
at zorilla run -J parse sh -c 'echo "no such record" >&2; exit 3' >/dev/null 2>&1 || true
at zorilla submit -J film -a 1-5000%10 --strategy spread sleep 2 >job.film
at zorilla submit -J train -n 8 -c 2 sleep 600 >job.train
at zorilla submit -n 6 ./nqueens 17 >job.queens
at zorilla submit -J lattice -n 60 --priority -5 -- sleep 600 >job.lattice
for job in film train queens; do
	until_ '^state +RUNNING' at zorilla status "$(cat job.$job)"
done
until_ '^reason +' at zorilla status "$(cat job.lattice)"
until_ '[1-9][0-9]* of 5000' at zorilla status "$(cat job.film)"
cd - >/dev/null
until_ '^12$' clustered

url=$(at zorilla web)
at timeout 60 chromium --headless --no-sandbox --hide-scrollbars --user-data-dir="$work/browser" --timeout=8000 \
	--window-size=1280,1480 --screenshot="$work/page.png" "$url" >"$work/chromium.log" 2>&1 || { cat "$work/chromium.log" >&2; exit 1; }
pngtopnm "$work/page.png" >"$work/page.pnm"
pnmquant 256 "$work/page.pnm" >"$work/few.pnm"
pnmtopng -compression 9 "$work/few.pnm" >"$work/small.png"
mv "$work/small.png" docs/page.png
for host in $hosts; do
	lab crash "$host"
done
