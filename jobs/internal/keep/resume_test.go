package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// resuming is a worker that begins with a checkpoint.
type resuming struct {
	*machine
	work   string
	member bool // the nodes that have it are
	moved  int
}

func newResuming(t *testing.T) *resuming {
	r := &resuming{machine: newMachine(t), work: t.TempDir()}
	for path, text := range map[string]string{"input": "in", "state/old": "old", "state/a": "the input's"} {
		r.write(path, text)
	}
	return r
}

func (r *resuming) write(path, text string) {
	r.t.Helper()
	path = filepath.Join(r.work, path)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *resuming) resume(ctx context.Context, c *jobs.Checkpoint) error {
	m := Resumer{Store: r.store, Fetch: r.fetch, Member: func(id vicinity.ID) (vicinity.Member, bool) { return vicinity.Member{ID: id}, r.member }}
	return m.Resume(ctx, worker, c, r.work, transfer.How{}, func() { r.moved++ })
}

// of is a checkpoint of a directory that another node has.
func (r *resuming) of(dir string, files ...string) *jobs.Checkpoint {
	r.t.Helper()
	c := &jobs.Checkpoint{Number: 4, Epoch: 4, Dir: dir, Files: len(files) / 2, Holders: []vicinity.ID{other}}
	c.Manifest, c.Bytes = tree(r.t, r.source, files...)
	return c
}

// files lists what is in the work directory.
func (r *resuming) files() (list []string) {
	r.t.Helper()
	err := fs.WalkDir(os.DirFS(r.work), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(r.work, path))
		list = append(list, path+"="+string(b))
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}

func TestAWorkerBeginsWithItsCheckpoint(t *testing.T) {
	for _, c := range []struct {
		dir   string
		files []string
		want  []string
	}{
		{"state", []string{"state/a", "A", "state/deep/b", "B"}, []string{"input=in", "state/a=A", "state/deep/b=B"}},
		{".", []string{"new", "N", "state/a", "A"}, []string{"input=in", "new=N", "state/a=A", "state/old=old"}},
		{"out/deep", []string{"out/deep/a", "A"}, []string{"input=in", "out/deep/a=A", "state/a=the input's", "state/old=old"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newResuming(t)
			if err := r.resume(t.Context(), r.of(c.dir, c.files...)); err != nil {
				t.Fatal(err)
			}
			if got := r.files(); !slices.Equal(got, c.want) {
				t.Errorf("%s: there is %q, want %q", c.dir, got, c.want)
			}
			if r.moved == 0 {
				t.Error("nobody hears that it gets on")
			}
		})
	}
}

// What nodes give is data: it may not replace anything else.
func TestACheckpointStaysInItsDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newResuming(t)
		before := r.files()
		for _, path := range []string{"input", "statement", "state2/a", "other/state/a"} {
			if err := r.resume(t.Context(), r.of("state", "state/a", "A", path, "bad")); !errors.Is(err, jobs.ErrNoCheckpoint) {
				t.Errorf("with %s: %v", path, err)
			}
			if got := r.files(); !slices.Equal(got, before) {
				t.Errorf("with %s: there is %q", path, got)
			}
		}
		outside := t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "theirs"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(r.work, "link")); err != nil {
			t.Fatal(err)
		}
		if err := r.resume(t.Context(), r.of("link/sub", "link/sub/a", "A")); err == nil {
			t.Error("it goes through a link to outside")
		}
		if list, err := os.ReadDir(outside); err != nil || len(list) != 1 {
			t.Errorf("outside is %v, %v", list, err)
		}
	})
}

func TestNodesThatKeptACheckpointAreAskedForAWhile(t *testing.T) {
	for _, c := range []struct {
		member bool
		works  time.Duration // from then on; 0 = never
		takes  time.Duration
		ok     bool
	}{
		{member: false, takes: goneWithin}, {member: true, takes: resumeWithin},
		{member: false, works: 2 * time.Second, takes: 2 * time.Second, ok: true},
		{member: true, works: 20 * time.Second, takes: 20 * time.Second, ok: true},
		{member: true, works: resumeWithin + time.Second, takes: resumeWithin},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newResuming(t)
			r.member = c.member
			start, before := time.Now(), r.files()
			r.before = func() error {
				if c.works > 0 && time.Since(start) >= c.works {
					return nil
				}
				return transfer.ErrNoHolder
			}
			err := r.resume(t.Context(), r.of("state", "state/a", "A"))
			if errors.Is(err, jobs.ErrNoCheckpoint) == c.ok || c.ok && err != nil || time.Since(start) != c.takes {
				t.Errorf("%+v: after %v: %v", c, time.Since(start), err)
			}
			if !c.ok && (!strings.Contains(err.Error(), "checkpoint 4") || !slices.Equal(r.files(), before)) {
				t.Errorf("%+v: %v, and there is %q", c, err, r.files())
			}
		})
	}
}

// A full disk, or the end of the job, is no fault of those that keep the checkpoint.
func TestWhatIsNoFaultOfACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newResuming(t)
		r.member = true
		full := fmt.Errorf("put a blob: %w", syscall.ENOSPC)
		r.before = func() error { return full }
		start := time.Now()
		if err := r.resume(t.Context(), r.of("state", "state/a", "A")); !errors.Is(err, full) || errors.Is(err, jobs.ErrNoCheckpoint) || time.Since(start) > 0 {
			t.Errorf("with a full disk, after %v: %v", time.Since(start), err)
		}
		r.before = func() error { return transfer.ErrNoHolder }
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := r.resume(ctx, r.of("state", "state/a", "A")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jobs.ErrNoCheckpoint) {
			t.Errorf("of a job that has ended: %v", err)
		}
	})
}

func TestNumberFile(t *testing.T) {
	root := t.TempDir()
	for _, c := range []struct{ number, before int }{{0, 0}, {3, 0}, {0, 3}, {2, 3}, {4, 3}, {0, 4}} {
		if before, err := Number(root, c.number); err != nil || before != c.before {
			t.Errorf("%d: %d, %v, want %d", c.number, before, err, c.before)
		}
	}
	if err := os.WriteFile(filepath.Join(root, numberFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if before, err := Number(root, 0); err != nil || before != 0 {
		t.Errorf("damaged: %d, %v", before, err)
	}
	if _, err := Number(filepath.Join(root, "none"), 1); err == nil {
		t.Error("a number is noted where there is no directory")
	}
}
