package executor

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/internal/needs"
	"zorilla/jobs/launch"
	"zorilla/jobs/process"
)

// What is found out about a program before it starts is what its worker could find out.
func TestProgramsAreLookedAtAsTheirWorkersDo(t *testing.T) {
	needs.Programs(t, "gcc")
	top := t.TempDir()
	for p := top; p != os.TempDir() && len(p) > 1; p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(top, name) }
	root := at("state/work/job-0-1")
	work := filepath.Join(root, "work")
	const lib, library = "libmpi.so.40", "/libmpi.so.40"
	for _, dir := range []string{work + "/lib", at("shown"), at("secret"), at("closed")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	compile := func(to string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "gcc", append([]string{"-nostdlib", "-x", "c", "-", "-x", "none", "-o", to}, args...)...)
		cmd.Stdin = strings.NewReader("void _start(void) {}")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("gcc %q: %v\n%s", args, err, out)
		}
	}
	compile(at(lib), "-shared", "-Wl,-soname,"+lib)
	compile(at("prog"), "-Wl,--no-as-needed", at(lib))
	move := func(name string, to ...string) (err error) {
		b, err := os.ReadFile(at(name))
		for _, p := range to {
			err = errors.Join(err, os.WriteFile(p, b, 0o755))
		}
		return err
	}
	err := errors.Join(
		move(lib, work+"/lib"+library, at("shown"+library), at("secret"+library), at("closed"+library)),
		move("prog", work+"/prog", at("shown/prog"), at("shown/private"), at("secret/prog"), at("state/prog")),
		os.Symlink(at("secret/prog"), at("shown/out")), os.Symlink(at("secret/prog"), work+"/out"),
		os.Symlink("prog", work+"/in"), os.Symlink(at("shown/prog"), at("secret/in")),
		os.Chmod(at("shown/private"), 0o711), os.Chmod(at("closed"+library), 0o640), os.Chmod(at("state"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	p := process.Spec{Root: root, UID: -1, GID: -1, Sight: launch.Sight{Expose: []string{at("shown"), at("closed"), at("state")}, Hide: []string{at("state")}}}
	if os.Geteuid() == 0 {
		p.UID, p.GID = 65534, 65534
	}
	const refused = "open mpi (%) cannot be served"
	for _, test := range []struct{ name, command, libraries, want string }{
		{"its own", "./prog", "lib", strings.Replace(refused, "%", "lib"+library, 1)},
		{"its own, by a link", "./in", "lib", strings.Replace(refused, "%", "lib"+library, 1)},
		{"shown", at("shown/prog"), at("shown"), strings.Replace(refused, "%", at("shown"+library), 1)},
		{"shown, in its path", "prog", at("shown"), strings.Replace(refused, "%", at("shown"+library), 1)},
		{"a library that is not shown", "./prog", at("secret"), ""},
		{"a library by a path around", "./prog", at("shown") + "/../secret", ""},
		{"not shown", at("secret/prog"), "lib", ""},
		{"not shown, leads to what is", at("secret/in"), "lib", ""},
		{"shown, leads to what is not", at("shown/out"), "lib", ""},
		{"its own, leads to what is not", "./out", "lib", ""},
		{"of the node", at("state/prog"), "lib", ""},
		{"a directory", at("shown"), "lib", ""},
		{"of the system", "/proc/self/root" + at("shown/prog"), "lib", ""},
	} {
		var g program
		p.Args = []string{test.command}
		g.look(&p, map[string]string{"PATH": at("secret") + ":" + at("shown"), "LD_LIBRARY_PATH": test.libraries})
		if got := g.err; (got != nil) != (test.want != "") || got != nil && !strings.HasPrefix(got.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, got, test.want)
		}
	}
	if os.Geteuid() != 0 { // nothing of its own is closed to who owns it
		return
	}
	v := viewOf(&p)
	for _, name := range []string{"shown/private", "closed" + library} {
		if f, err := v.open(at(name)); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: opened as %v, %v", name, f, err)
		}
	}
	if !v.runs(at("shown/private")) {
		t.Error("a program that can only be executed is not found")
	}
}
