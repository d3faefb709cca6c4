package crew

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// door takes checkpoints, as nodes do.
type door struct {
	dir  string
	mu   sync.Mutex
	cond *sync.Cond
	kept map[int][]saved // by rank
}

// saved is a checkpoint: a copy of a directory, and what it was called.
type saved struct{ copy, name string }

// Checkpoints has ranks that are started from now on find a node that takes checkpoints.
func (c *Crew) Checkpoints() {
	c.door = &door{dir: c.t.TempDir(), kept: map[int][]saved{}}
	c.door.cond = sync.NewCond(&c.door.mu)
}

// Checkpoint waits until a rank's node has taken a checkpoint that the rank has begun since:
// after one that may have been on its way.
func (c *Crew) Checkpoint(rank int) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	for have := len(c.door.kept[rank]); len(c.door.kept[rank]) < have+2; {
		c.door.cond.Wait()
	}
}

// Forget loses the checkpoints of a rank.
func (c *Crew) Forget(rank int) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	delete(c.door.kept, rank)
}

// open begins to take the checkpoints of a rank in a work directory, and puts the newest one
// into it. It returns what the rank wants in its environment.
func (d *door) open(t *testing.T, rank int, dir string) (env []string) {
	t.Helper()
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/socket", at.Fd())) // its name may be too long
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // that file has another name by then
	handler := http.NewServeMux()
	handler.HandleFunc("POST /v1/checkpoint", func(w http.ResponseWriter, r *http.Request) {
		number, err := d.take(rank, filepath.Join(dir, filepath.Base(r.FormValue("dir"))))
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		case r.FormValue("wait") == "0":
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprintf(w, `{"number":%d}`, number)
		default:
			fmt.Fprintf(w, `{"number":%d,"bytes":1,"files":1,"keepers":["one"]}`, number)
		}
	})
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	env = []string{"ZORILLA_SOCKET=" + filepath.Join(dir, "socket")}
	d.mu.Lock()
	defer d.mu.Unlock()
	if all := d.kept[rank]; len(all) > 0 {
		newest := all[len(all)-1]
		if err := os.CopyFS(filepath.Join(dir, newest.name), os.DirFS(newest.copy)); err != nil {
			t.Fatal(err)
		}
		env = append(env, fmt.Sprint("ZORILLA_RESTART=", len(all)))
	}
	return env
}

func (d *door) take(rank int, dir string) (number int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	number = len(d.kept[rank]) + 1
	s := saved{filepath.Join(d.dir, fmt.Sprintf("%d-%d", rank, number)), filepath.Base(dir)}
	if err := os.RemoveAll(s.copy); err != nil { // of before it was forgotten
		return 0, err
	}
	if err := os.CopyFS(s.copy, os.DirFS(dir)); err != nil {
		return 0, err
	}
	d.kept[rank] = append(d.kept[rank], s)
	d.cond.Broadcast()
	return number, nil
}
