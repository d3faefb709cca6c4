#!/bin/bash
# Runs tests of the wall in an emulated machine with Debian's kernel, which has control
# groups of version 2 and an older Landlock: as root, and as an ordinary user to whom a
# group was delegated.
#
#   bash testnet/guest/run.sh [PATTERN]      PATTERN: which tests, as for go test -run
#
# It needs qemu-system-x86_64, busybox, cpio and apt-get,
# and downloads a kernel of about 60 MB once, to ~/.cache/zorilla-guest (GUEST_CACHE).
set -euo pipefail
cd "$(dirname "$0")/../.."
pattern=${1:-.}
cache=${GUEST_CACHE:-$HOME/.cache/zorilla-guest}
for tool in qemu-system-x86_64 cpio apt-get dpkg busybox; do
	command -v $tool >/dev/null || { echo "$tool is missing: apt-get install qemu-system-x86 cpio busybox-static" >&2; exit 1; }
done
mkdir -p "$cache"
if ! ls "$cache"/boot/vmlinuz-* >/dev/null 2>&1; then
	package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-/ {print $2; exit}')
	(cd "$cache" && apt-get -q download "$package" && dpkg -x "$package"_*.deb . && rm "$package"_*.deb)
fi
kernel=$(ls "$cache"/boot/vmlinuz-* | tail -1)

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,usr/bin,etc,proc,sys,dev,tmp,tests,home/ann,lib,lib64,usr/lib,var/lib,run}
for p in jobs/cgroup jobs/netpolicy jobs/sandbox jobs/quota jobs/process; do
	mkdir -p "$root/tests/$p"
	CGO_ENABLED=0 go test -c -o "$root/tests/$p/test" "./$p"
	[ ! -d "$p/testdata" ] || cp -r "$p/testdata" "$root/tests/$p/"
done
# The programs of this machine that tests use, and their libraries where they expect them.
for program in sh bash sleep cat grep head tail wc env setsid setpriv ls mkdir mount true false echo timeout id touch ps seq dd stat chmod ln rm \
	mkfifo readlink mkfs.ext4 umount mv cp tr date sort dirname basename chown tee cut sed uname hostname find unshare awk nproc getent su yes df du truncate install nice pwd getfattr setfattr chattr ip; do
	path=$(type -P $program 2>/dev/null) || continue
	cp -L "$path" "$root/usr/bin/$program"
	for lib in $(ldd "$path" 2>/dev/null | grep -o '/[^ ]*'); do
		mkdir -p "$root$(dirname "$lib")"
		cp -Ln "$lib" "$root$lib" 2>/dev/null || true
	done
done
rm -rf "$root/bin" && ln -s usr/bin "$root/bin"
cp "$(command -v busybox)" "$root/busybox"
mkdir "$root/modules" # for file systems with quotas of projects, in files, and for linked machines
for module in drivers/block/loop fs/quota/quota_tree fs/quota/quota_v2 drivers/net/veth; do
	cp "$cache"/lib/modules/"${kernel##*/vmlinuz-}/kernel/$module".ko "$root/modules/"
done
printf 'root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n' >"$root/etc/passwd"
printf 'root:x:0:\nann:x:1000:\nnogroup:x:65534:\n' >"$root/etc/group"
cat >"$root/init" <<'INIT'
#!/busybox sh
# The first root is no place to pivot from: everything moves to one that is.
/busybox mount -t tmpfs -o mode=755,size=2g tmpfs /run
/busybox mkdir /run/new
/busybox mount -t tmpfs -o mode=755,size=3g tmpfs /run/new
for d in /bin /usr /etc /tests /home /lib /lib64 /modules /busybox /stage2; do [ -e $d ] && /busybox cp -a $d /run/new/; done
/busybox mkdir -p /run/new/proc /run/new/sys /run/new/dev /run/new/tmp /run/new/var/lib /run/new/var/tmp /run/new/run /run/new/root
exec /busybox switch_root /run/new /stage2
INIT
cat >"$root/stage2" <<'INIT'
#!/busybox sh
export PATH=/usr/bin:/bin HOME=/root TMPDIR=/tmp
mount() { /busybox mount "$@"; }
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
/busybox mkdir -p /dev/shm /dev/pts; mount -t tmpfs shm /dev/shm; mount -t devpts -o ptmxmode=666 pts /dev/pts
for fd in 0:stdin 1:stdout 2:stderr; do /busybox ln -s /proc/self/fd/${fd%:*} /dev/${fd#*:}; done; /busybox ln -s /proc/self/fd /dev/fd
mount -t cgroup2 cgroup2 /sys/fs/cgroup; mount -t tmpfs -o mode=1777 tmp /tmp
for module in loop quota_tree quota_v2 veth; do /busybox insmod /modules/$module.ko; done
/busybox ip link set lo up; /busybox hostname guest
/busybox chown -R 1000:1000 /home/ann; /busybox chmod 1777 /var/tmp
pattern=$(/busybox sed -n 's/.*tests=\([^ ]*\).*/\1/p' /proc/cmdline)
echo "=== kernel $(/busybox uname -r), controllers: $(/busybox cat /sys/fs/cgroup/cgroup.controllers)"
for t in /tests/jobs/*; do cd $t; echo "=== root: $t"; ZORILLA_QUOTAS=1 ./test -test.run "$pattern" -test.timeout 900s && echo "--- passed" || echo "--- failed"; done
echo "+memory +pids +cpu +io" >/sys/fs/cgroup/cgroup.subtree_control
for t in /tests/jobs/*; do
	cd $t; echo "=== user, group delegated: $t"
	# As systemd does with Delegate=yes.
	g=/sys/fs/cgroup/user-${t##*/}; /busybox mkdir -p $g
	for f in $g $g/cgroup.procs $g/cgroup.subtree_control $g/cgroup.threads; do /busybox chown 1000:1000 $f; done
	/busybox mkdir -p /home/ann/tmp; /busybox chown 1000:1000 /home/ann/tmp
	( echo 0 >$g/cgroup.procs
	  exec /usr/bin/setpriv --reuid=1000 --regid=1000 --clear-groups env HOME=/home/ann TMPDIR=/home/ann/tmp ./test -test.run "$pattern" -test.timeout 900s ) && echo "--- passed" || echo "--- failed"
done
echo "=== end"
/busybox poweroff -f
INIT
chmod 755 "$root/init" "$root/stage2"
find "$root" -type d -exec chmod 755 {} +
image=$(mktemp)
trap 'rm -rf "$root" "$image"' EXIT
(cd "$root" && find . | cpio -o -H newc --quiet --owner=0:0 | gzip -1) >"$image"
# Emulated unless GUEST_KVM is set: virtual machines in virtual machines often fail.
kvm=(-accel tcg,thread=multi -cpu max); [ -n "${GUEST_KVM:-}" ] && kvm=(-enable-kvm -cpu host)
timeout 1800 qemu-system-x86_64 "${kvm[@]}" -m 6G -smp 2 -nographic -no-reboot -net none \
	-kernel "$kernel" -initrd "$image" -append "console=ttyS0 loglevel=1 panic=-1 tests=$pattern" | stdbuf -oL tr -d '\r' | tee "$cache/log"
! grep -q -- '^--- failed' "$cache/log" && grep -q '^=== end' "$cache/log"
