package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/internal/needs"
)

// A user without a name has one where it has namespaces, since many programs need it.
func TestNameOfAUser(t *testing.T) {
	needNamespaces(t)
	needs.Root(t)
	before, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[int]string{2100000007: "zorilla zorilla\nzorilla:x:2100000007:2100000007::/tmp:/bin/sh\n", nobody: "nobody nogroup\n"} {
		spec := script(t, `echo $(id -un) $(id -gn); grep zorilla /etc/passwd; wc -l < /etc/passwd; touch /etc/passwd 2> /dev/null && echo changed; ls -A /etc/.names /.names 2>/dev/null`)
		spec.UID, spec.GID = uid, uid
		e, out, stderr := run(t, Config{}, spec)
		if e.Code != 2 || !strings.HasPrefix(out, want) || strings.Contains(out, "changed") {
			t.Errorf("%d: %+v\n%s%s", uid, e, out, stderr)
		}
	}
	if after, err := os.ReadFile("/etc/passwd"); err != nil || string(after) != string(before) {
		t.Errorf("the machine's own has changed: %q, %v", after, err)
	}
}

// What of /proc is the machine's cannot be changed, by root neither, and without
// Landlock neither.
func TestMachineInProc(t *testing.T) {
	needNamespaces(t)
	spec := script(t, `for f in /proc/sys/kernel/domainname /proc/sys /proc/sysrq-trigger /proc/irq /proc/bus /proc/fs; do test ! -e $f || test ! -w $f || echo $f; done
for f in /proc/kcore /proc/keys /proc/timer_list; do cat $f 2>/dev/null | head -c 1; done
grep -q . /proc/sys/kernel/hostname && grep -q ' /proc/sys proc ro,' /proc/self/mounts && echo read-only`)
	spec.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(spec.Root, tmpDir)}
	if e, out, stderr := run(t, Config{}, spec); e.Code != 0 || out != "read-only\n" {
		t.Errorf("%+v\n%s%s", e, out, stderr)
	}
}
