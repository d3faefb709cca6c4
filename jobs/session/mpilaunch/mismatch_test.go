package mpilaunch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/internal/needs"
	"zorilla/jobs/mpi"
)

// A launcher that starts a program of the other MPI is named, with that program, also in what a
// shell runs; a launcher's own programs, and what is no program of an MPI, are let alone.
func TestMismatch(t *testing.T) {
	needs.Programs(t, "gcc", "mpicc.openmpi", "mpicc.mpich", "mpirun.openmpi", "mpiexec.mpich", "mpiexec.hydra")
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("main.c", "#include <mpi.h>\nint main(int n, char **a) { MPI_Init(&n, &a); return MPI_Finalize(); }\n")
	for compiler, program := range map[string]string{"mpicc.openmpi": "open", "mpicc.mpich": "mpich", "gcc -x c /dev/null -shared": "none"} {
		words := append(strings.Fields(compiler), "-o", program)
		if program != "none" {
			words = append(words, "main.c")
		}
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", words, err, out)
		}
	}
	write("good.sh", "#!/bin/sh\n# not mpirun.openmpi ./mpich\nmpirun.openmpi ./open && mpiexec.mpich ./mpich\n")
	write("bad.sh", "#!/bin/sh\nset -e\n[ -e x ] || (mpirun.openmpi -n 2 './mpich')\n")
	write("data", "mpirun.openmpi\x00./mpich\n")
	if err := os.Symlink("/usr/bin/mpirun.openmpi", "mpiexec"); err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", own+":"+os.Getenv("PATH")) // where mpiexec is Open MPI's, as on Debian with both
	for command, want := range map[string]string{
		"mpirun.openmpi -n 2 ./open":                      "",
		"mpiexec.mpich ./mpich":                           "",
		"mpirun.openmpi -n 2 ./none ./mpich":              "mpirun.openmpi ./mpich",
		"mpirun.openmpi -n 2 sh -c true":                  "",
		"./open ./mpich":                                  "",
		"sh good.sh":                                      "",
		"sh data":                                         "",
		"mpiexec -n 2 ./mpich":                            "mpiexec ./mpich",
		"mpirun.openmpi --oversubscribe -n 2 ./mpich 4":   "mpirun.openmpi ./mpich",
		"mpirun.openmpi mpich":                            "mpirun.openmpi mpich",
		"mpiexec.mpich -n 2 ./open":                       "mpiexec.mpich ./open",
		"/usr/bin/mpiexec.hydra -n 2 " + own + "/open x":  "mpiexec.hydra " + own + "/open",
		"mpiexec.mpich -n 1 ./mpich : -n 1 ./open":        "",
		"sh bad.sh":                                       "mpirun.openmpi ./mpich",
		"bash -c|cd . && mpiexec.mpich -n 2 ./open; true": "mpiexec.mpich ./open",
		"sh -c|mpiexec.mpich ./mpich\nmpiexec ./mpich >x": "mpiexec ./mpich",
	} {
		words := strings.Fields(command)
		if before, text, found := strings.Cut(command, "|"); found {
			words = append(strings.Fields(before), text)
		}
		launcher, program, _ := strings.Cut(want, " ")
		got := mismatch(words)
		if want == "" && got != "" || want != "" && (!strings.HasPrefix(got, launcher+" is the launcher of ") || !strings.Contains(got, ", and "+program+" is linked with ")) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if mpi.LauncherKind("mpich") != mpi.None { // a program with the name of one
		t.Error("mpich is no launcher")
	}
}
