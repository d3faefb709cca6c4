package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/process"
)

// workNode is a node that knows who it is and may open its work directory.
func workNode(t *testing.T, cfg Config) *Node {
	t.Helper()
	cfg.Secret = "" // of its state, without a phrase to stretch
	n := testNode(t, cfg)
	lock, err := n.state.open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lock.Close)
	if _, err := n.identify(); err != nil {
		t.Fatal(err)
	}
	return n
}

// openWorkOf opens the work directory as Node.Run does.
func openWorkOf(n *Node) (unlock func(), err error) {
	n.work, unlock, err = openWork(n.state, n.cfg.Work, n.creds.ID(), n.cfg.Owner.RunAs)
	return unlock, err
}

func mustOpenWork(t *testing.T, n *Node) {
	t.Helper()
	unlock, err := openWorkOf(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unlock)
}

func refusesWork(t *testing.T, n *Node, want ...string) {
	t.Helper()
	unlock, err := openWorkOf(n)
	if err == nil {
		unlock()
		t.Fatalf("%s was accepted", n.work)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want one line with %q", err, text)
		}
	}
}

func TestWorkDirectoryIsNoLinkAndHoldsNothingOfOthers(t *testing.T) {
	scratch := t.TempDir()
	kept := filepath.Join(scratch, "data.csv")
	if err := os.WriteFile(kept, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	n := workNode(t, Config{})
	work := filepath.Join(n.cfg.State, "work")
	if err := os.Symlink(scratch, work); err != nil {
		t.Fatal(err)
	}
	refusesWork(t, n, work, "symbolic link", "--work")
	if err := errors.Join(os.Remove(work), os.MkdirAll(filepath.Join(work, "thesis"), 0o755)); err != nil {
		t.Fatal(err)
	}
	refusesWork(t, n, work, "thesis", "--work")
	if err := os.Remove(filepath.Join(work, "thesis")); err != nil {
		t.Fatal(err)
	}
	mustOpenWork(t, n)
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

// Several nodes may share a directory of their owner with each other, and with
// whatever else is in it.
func TestWorkDirectoryOfItsOwn(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "scratch")
	if err := os.MkdirAll(filepath.Join(shared, "thesis"), 0o755); err != nil {
		t.Fatal(err)
	}
	a, b := workNode(t, Config{Work: shared}), workNode(t, Config{Work: shared})
	mustOpenWork(t, a)
	mustOpenWork(t, b)
	if a.work == b.work || filepath.Dir(string(a.work)) != shared || filepath.Dir(string(b.work)) != shared {
		t.Errorf("the nodes work in %s and %s", a.work, b.work)
	}
	if free, err := a.work.free(); err != nil || free <= 0 {
		t.Errorf("free: %d, %v", free, err)
	}
	twin := workNode(t, Config{State: copyState(t, a.cfg.State), Work: shared})
	refusesWork(t, twin, string(a.work), "using it already", "--work")
	refusesWork(t, workNode(t, Config{Work: "scratch"}), "absolute path")
	if _, err := os.Stat(filepath.Join(shared, "thesis")); err != nil {
		t.Error(err)
	}
}

func copyState(t *testing.T, state string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := errors.Join(os.CopyFS(to, os.DirFS(state)), os.Chmod(filepath.Join(to, "identity.key"), 0o600), os.Chmod(filepath.Join(to, "secret"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return to
}

// Who could write there could make it first.
func TestWorkDirectoryOfAnotherUserIsRefused(t *testing.T) {
	n := workNode(t, Config{Work: t.TempDir()})
	dir := filepath.Join(n.cfg.Work, "zorilla-"+string(n.creds.ID()))
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	refusesWork(t, n, dir, "can be changed by others")
}

// A node does not leave its workers behind where it would not look for them.
func TestWorkersAreNotLeftWhereTheyWere(t *testing.T) {
	n := workNode(t, Config{})
	root := filepath.Join(n.cfg.State, "work", "aaaaa@"+string(n.creds.ID())+"-0-1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(root), 0o755), process.MakeRoot(root, string(n.creds.ID()))); err != nil {
		t.Fatal(err)
	}
	n.cfg.Work = t.TempDir()
	refusesWork(t, n, "without --work", "drain")
	if err := process.CleanRoot(root, nil); err != nil {
		t.Fatal(err)
	}
	unlock, err := openWorkOf(n)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	root = filepath.Join(string(n.work), "aaaaa@"+string(n.creds.ID())+"-0-1")
	if err := process.MakeRoot(root, string(n.creds.ID())); err != nil {
		t.Fatal(err)
	}
	there := n.cfg.Work
	n.cfg.Work = ""
	refusesWork(t, n, "with --work "+there)
	if err := process.CleanRoot(root, nil); err != nil {
		t.Fatal(err)
	}
	mustOpenWork(t, n)
}

func TestWorkersOfAnotherUserMustReachTheirDirectories(t *testing.T) {
	private := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	n := workNode(t, Config{State: filepath.Join(private, "state"), Owner: Owner{RunAs: &jobs.User{UID: 65534, GID: 65534}}})
	refusesWork(t, n, private)
}

func TestKeepFree(t *testing.T) {
	w := workDir(t.TempDir())
	if got := w.keepFree(7); got != 7 {
		t.Errorf("the owner keeps 7, the node %d", got)
	}
	if got := w.keepFree(-1); got != 0 {
		t.Errorf("the owner keeps nothing, the node %d", got)
	}
	if got := w.keepFree(0); got <= 0 || got > 1<<30 {
		t.Errorf("%d are kept if the owner says nothing", got)
	}
}
