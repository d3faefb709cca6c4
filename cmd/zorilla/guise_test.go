package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"zorilla/internal/needs"
)

// guise is whose the nodes of a script are.
type guise int

const (
	own       guise = iota // of who runs the tests
	ordinary               // an ordinary user's, started by root
	spaceless              // the same, who may make no namespaces, as in most containers
	scarce                 // the same, who may have few processes, and each few files
)

// ordinaryUser owns nothing.
const ordinaryUser = 65534

// lodge makes what a node of that guise needs: its state, and a program that it may run.
func (g guise) lodge(dir, state, program string) (string, error) {
	if g == own {
		return program, nil
	}
	if err := os.Mkdir(state, 0o700); err == nil {
		if err := os.Chown(state, ordinaryUser, ordinaryUser); err != nil {
			return "", err
		}
	}
	its := filepath.Join(dir, "zorilla")
	if _, err := os.Lstat(its); err == nil {
		return its, nil
	}
	// By another process: what this one has open to write while it forks cannot be executed.
	return its, exec.Command("install", "-m", "755", program, its).Run()
}

// dress makes a command one of that guise.
func (g guise) dress(cmd *exec.Cmd) {
	if g == own {
		return
	}
	a := cmd.SysProcAttr
	a.Credential = &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}
	if g == ordinary {
		return
	}
	a.Cloneflags, a.AmbientCaps = unix.CLONE_NEWUSER, []uintptr{unix.CAP_SYS_RESOURCE}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: ordinaryUser, HostID: ordinaryUser, Size: 1}}
	a.GidMappings = a.UidMappings
	a.Credential.NoSetGroups = true
	forbid := `echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all `
	if g == scarce { // processes are counted in the namespace, so others of the user's do not matter
		forbid += "prlimit --nproc=300 --nofile=200 "
	}
	forbid += `"$@"`
	cmd.Args = append([]string{"sh", "-c", forbid, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// Scripts about what workers find, and what they may not, say the same of the nodes of an
// ordinary user, as most nodes are.
func TestRealNodesOfAnOrdinaryUser(t *testing.T) {
	scriptsAs(t, ordinary, "job-inside", "job-comfort", "job-envs", "job-mounts", "job-trees", "job-cuda", "job-sharework", "job-mpiio", "net-noexec")
}

// Where there are no namespaces less is there, and the rest as closed.
func TestRealNodesWithoutNamespaces(t *testing.T) {
	scriptsAs(t, spaceless, "job-trees", "job-cuda", "job-sharework", "net-noexec", "../basic/basic-inside", "../basic/basic-mpi")
}

// A node lives on where a worker has all processes that its user may have, and where
// clients have all descriptors that they can get.
func TestRealNodesAtTheirLimits(t *testing.T) {
	scriptsAs(t, scarce, "../basic/basic-limits")
}

// scriptsAs runs scripts of testdata/real against nodes of that guise.
func scriptsAs(t *testing.T, g guise, names ...string) {
	t.Helper()
	needs.Root(t)
	t.Parallel()
	p := realParams(g)
	for _, name := range names {
		p.Files = append(p.Files, filepath.Join("testdata/real", name+".txtar"))
	}
	testscript.Run(t, p)
}
