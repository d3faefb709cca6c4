package mpi_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/needs"
	"zorilla/jobs/mpi"
	"zorilla/jobs/pmi"
)

// programs builds those of examples/mpi, once, and returns their directory.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "zorilla-mpi-")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("make", "-s", "-C", "../../examples/mpi", "OUT="+dir).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("make: %w\n%s", err, out)
	}
	return dir, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := programs(); dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// build returns the path of a program of examples/mpi for an MPI of Debian.
func build(t *testing.T, name string) string {
	t.Helper()
	needs.Programs(t, "make", "gcc", "mpicc.mpich", "mpicc.openmpi")
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// gang is a program whose ranks the test manages, as nodes would.
type gang struct {
	nodes   []int // of each rank
	args    []string
	memory  bool
	unmeant func(env map[string]string) // changes the environment, if it is set
	leave   bool                        // the node goes away at the first barrier
}

// run returns what the ranks wrote, and how they ended.
func (g *gang) run(t *testing.T) (string, error) {
	t.Helper()
	found, err := mpi.Detect(mpi.OpenFile, g.args[0])
	if err == nil {
		err = found.Served()
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	libraries, err := mpi.Install(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	size := len(g.nodes)
	hosts := slices.Max(g.nodes) + 1
	servers, commands := make([]*pmi.Server, size), make([]*exec.Cmd, size)
	var out bytes.Buffer // exec writes one after the other to the same writer
	write := &locked{w: &out}
	for rank, node := range g.nodes {
		var local []int
		for r, n := range g.nodes {
			if n == node {
				local = append(local, r)
			}
		}
		pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
		servers[rank] = pmi.NewServer(pmi.Place{Rank: rank, Size: size, Nodes: g.nodes, Name: "test"}, ours)
		env := mpi.Rank{
			Kind: found.Kind, Rank: rank, Size: size, LocalRank: slices.Index(local, rank), LocalSize: len(local), Hosts: hosts,
			Job: dir, FD: 3, Libraries: libraries, Address: netip.MustParsePrefix("127.0.0.1/8"), Interface: "lo", Busy: true, Memory: g.memory,
		}.Environment()
		// A rank that aborts leaves its segment behind, which at a node goes with the namespace.
		env["OMPI_MCA_btl_vader_backing_directory"] = dir
		if g.unmeant != nil {
			g.unmeant(env)
		}
		cmd := exec.CommandContext(ctx, g.args[0], g.args[1:]...)
		cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = write, write, []*os.File{theirs}
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir}
		for key, value := range env {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		commands[rank] = cmd
		go func() {
			if err := servers[rank].Run(); err != nil && !g.leave {
				fmt.Fprintf(write, "node: rank %d: %v\n", rank, err)
			}
			ours.Close()
		}()
		if g.leave {
			go func() {
				<-servers[rank].Arrived()
				syscall.Shutdown(int(pair[0]), syscall.SHUT_RDWR)
			}()
		}
	}
	if !g.leave {
		go fence(servers)
	}
	ends := make(chan error, size)
	for _, cmd := range commands {
		go func() { ends <- cmd.Wait() }()
	}
	var first error
	for range commands {
		err := <-ends
		if ctx.Err() == context.DeadlineExceeded {
			t.Errorf("%q hangs", g.args)
		}
		if err != nil && first == nil {
			first = err
			cancel() // as a node ends the others of a gang
		}
	}
	return write.String(), first
}

// fence lets the ranks pass their barriers until one of them has ended.
func fence(servers []*pmi.Server) {
	for round := 1; ; round++ {
		pass := pmi.Pass{Number: round}
		for _, s := range servers {
			select {
			case <-s.Arrived():
			case <-s.Ended():
				return
			}
			b, _ := s.Waits()
			pass.Puts = append(pass.Puts, b.Puts...)
		}
		for _, s := range servers {
			s.Pass(pass)
		}
	}
}

type locked struct {
	mu sync.Mutex
	w  *bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.String()
}

var both = []string{"mpich", "openmpi"}

// Programs of Debian's MPICH and Open MPI are ranks of a gang, on one node with shared
// memory, and over TCP.
func TestPrograms(t *testing.T) {
	for _, library := range both {
		for _, test := range []struct {
			nodes   []int
			memory  bool
			program string
			want    string
		}{
			{[]int{0}, true, "hello", "rank 0 of 1 on "},
			{[]int{0, 0}, true, "ring 3", "ring of 2 ranks: verified"},
			{[]int{0, 0, 0, 0}, true, "ring 3", "ring of 4 ranks: verified"},
			{[]int{0, 0, 0, 0}, true, "is 14 2", "4 ranks: "},
			{[]int{0, 1}, false, "ring 3", "ring of 2 ranks: verified"},
			{[]int{0, 0, 1, 2}, false, "ep 16", "4 ranks: "},
			{[]int{0, 1, 2, 1}, false, "is 14 2", "4 ranks: "},
		} {
			t.Run(fmt.Sprint(library, " ", test.program, " ", test.nodes), func(t *testing.T) {
				g := gang{nodes: test.nodes, memory: test.memory, args: strings.Fields(test.program)}
				name := g.args[0]
				g.args[0] = build(t, name+"."+library)
				out, err := g.run(t)
				if err != nil || !strings.Contains(out, test.want) || name != "hello" && !strings.Contains(out, "verified") {
					t.Errorf("%v, want %q\n%s", err, test.want, out)
				}
				if strings.Contains(out, "WARNING") || strings.Contains(out, "rror") {
					t.Errorf("it warns:\n%s", out)
				}
			})
		}
	}
}

// Ranks of MPICH that talk over TCP end: without the library made for it every second or
// third of these runs hangs.
func TestRanksOverTCPEnd(t *testing.T) {
	program := build(t, "is.mpich")
	for range 6 {
		g := gang{nodes: []int{0, 1, 2}, args: []string{program, "10", "1"}}
		if out, err := g.run(t); err != nil || !strings.Contains(out, "verified") {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

// Programs that have nothing to do with MPI do not notice what is there for it.
func TestOtherPrograms(t *testing.T) {
	g := gang{nodes: []int{0, 1, 2}, args: []string{"/bin/bash", "-c", "echo $PMI_RANK; exec ls >/dev/null"}}
	out, err := g.run(t)
	lines := strings.Fields(out)
	slices.Sort(lines)
	if err != nil || strings.Join(lines, " ") != "0 1 2" {
		t.Errorf("%v: %q", err, out)
	}
}

// A program that a script starts is served as well, whichever library it has.
func TestScripts(t *testing.T) {
	for _, library := range both {
		g := gang{nodes: []int{0, 0, 1}, args: []string{"/bin/sh", "-c", build(t, "hello."+library)}}
		if out, err := g.run(t); err != nil || strings.Count(out, " of 3 on ") != 3 {
			t.Errorf("%s: %v\n%s", library, err, out)
		}
	}
}

// MPI may come with what a program loads for itself, as in Python.
func TestLoadedLater(t *testing.T) {
	dir := t.TempDir()
	for _, library := range both {
		plugin, loader := filepath.Join(dir, library+".so"), filepath.Join(dir, "loader")
		compile(t, "mpicc."+library, "-Dmain=run", "-shared", "-fPIC", "-o", plugin, "../../examples/mpi/hello.c")
		source := filepath.Join(dir, "loader.c")
		text := `#include <dlfcn.h>
			int main(int c, char **v) { void *h = dlopen(v[1], RTLD_NOW); return h ? ((int (*)(int, char **))dlsym(h, "run"))(c, v) : 3; }`
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		compile(t, "gcc", "-o", loader, source)
		for range 3 {
			g := gang{nodes: []int{0, 1, 2}, args: []string{loader, plugin}}
			if out, err := g.run(t); err != nil || strings.Count(out, " of 3 on ") != 3 {
				t.Fatalf("%s: %v\n%s", library, err, out)
			}
		}
	}
}

// The code of a program that gives up is its own.
func TestAbort(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "abort.c")
	text := `#include <mpi.h>
		int main(int c, char **v) { MPI_Init(&c, &v); MPI_Abort(MPI_COMM_WORLD, 42); return 0; }`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, library := range both {
		program := filepath.Join(dir, library)
		compile(t, "mpicc."+library, "-o", program, source)
		g := gang{nodes: []int{0}, memory: true, args: []string{program}}
		if out, err := g.run(t); err == nil || err.Error() != "exit status 42" || strings.Contains(out, "N/A") {
			t.Errorf("%s: %v\n%s", library, err, out)
		}
	}
}

func compile(t *testing.T, compiler string, args ...string) {
	t.Helper()
	needs.Programs(t, compiler)
	if out, err := exec.CommandContext(t.Context(), compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", compiler, args, err, out)
	}
}

// What goes wrong with the connection to the node is said, and ends the program.
func TestConnectionsThatFail(t *testing.T) {
	hello := build(t, "hello.openmpi")
	for name, test := range map[string]struct {
		gang
		want  string
		fails bool
	}{
		"closed":       {gang{leave: true}, "zorilla: mpi: rank 0: lost the connection to the node: it was closed\n", true},
		"not there":    {gang{unmeant: func(env map[string]string) { env["PMI_FD"] = "77" }}, "descriptor 77 of PMI_FD is not the node's socket", true},
		"another":      {gang{unmeant: func(env map[string]string) { env["PMI_FD"] = "0" }}, "descriptor 0 of PMI_FD is not the node's socket", true},
		"no rank":      {gang{unmeant: func(env map[string]string) { env["PMI_RANK"] = "1x" }}, "are not those of a rank", true},
		"out of range": {gang{unmeant: func(env map[string]string) { env["PMI_RANK"] = "1" }}, "are not those of a rank", true},
		"alone": {gang{unmeant: func(env map[string]string) {
			for _, key := range []string{"PMI_FD", "PMI_RANK", "PMI_SIZE"} {
				delete(env, key)
			}
		}}, "rank 0 of 1", false},
	} {
		test.nodes, test.args, test.memory = []int{0}, []string{hello}, true
		out, err := test.run(t)
		if (err != nil) != test.fails || !strings.Contains(out, test.want) {
			t.Errorf("%s: %v, want %q:\n%s", name, err, test.want, out)
		}
	}
}
