package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"zorilla/transfer"
)

// entries lists a manifest as "path size", with the notation of write.
func entries(m transfer.Manifest) []string {
	out := []string{}
	for _, e := range m.Entries {
		switch {
		case e.Dir:
			out = append(out, e.Path+"/")
		case e.Exec:
			out = append(out, e.Path+"*")
		default:
			out = append(out, e.Path)
		}
	}
	return out
}

func ingest(t *testing.T, args ...string) (transfer.Manifest, error) {
	t.Helper()
	inputs, err := transfer.ExpandInputs(args)
	if err != nil {
		return transfer.Manifest{}, err
	}
	return transfer.Ingest(t.Context(), transfer.NewMemStore(0), inputs)
}

func TestInputsGetTheirNames(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"work/data/1.txt": "1", "work/data/2.txt": "2", "work/data/sub/3": "3", "work/prog*": "p", "work/empty/": "",
		"work/link": "->data/1.txt", "work/dirlink": "->data", "work/a:b": "colon", "work/[x]": "brackets", "outside/o": "o",
	})
	t.Chdir(filepath.Join(dir, "work"))
	for _, c := range []struct {
		args string
		want string
	}{
		{"prog", "prog*"},
		{"./prog", "prog*"},
		{"prog:bin/run", "bin/run*"},
		{"prog:bin/", "bin/prog*"},
		{"data", "data/1.txt data/2.txt data/sub/3"},
		{"data/", "data/1.txt data/2.txt data/sub/3"},
		{"data/1.txt", "data/1.txt"},
		{"data:.", "1.txt 2.txt sub/3"},
		{"data:in", "in/1.txt in/2.txt in/sub/3"},
		{"data/*.txt", "data/1.txt data/2.txt"},
		{"data/*.txt:in", "in/1.txt in/2.txt"},
		{"data/?.txt:.", "1.txt 2.txt"},
		{"data data/1.txt ./data/*.txt prog", "data/1.txt data/2.txt data/sub/3 prog*"},
		{"empty", "empty/"},
		{"link", "link"},
		{"dirlink", "dirlink/1.txt dirlink/2.txt dirlink/sub/3"},
		{"a:b", "a:b"},
		{"a:b:c", "c"},
		{"[x]", "[x]"},
		{"../outside", "outside/o"},
		{"../outside/o", "o"},
		{filepath.Join(dir, "outside/o"), "o"},
		{"", ""},
	} {
		m, err := ingest(t, strings.Fields(c.args)...)
		if got := entries(m); err != nil || !reflect.DeepEqual(got, strings.Fields(c.want)) {
			t.Errorf("%s: got %q, %v, want %s", c.args, got, err, c.want)
		}
	}
}

func TestBadInputsAreNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"file": "f", "other": "o", "tree/ok": "x", "linked/d": "->../tree", "broken/l": "->../nowhere", "loop": "->loop",
		"fifos/x": "x", "bad/new\nline": "x",
	})
	t.Chdir(dir)
	if err := syscall.Mkfifo("fifos/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "sock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for args, want := range map[string]string{
		"missing":            "missing",
		"missing:x":          "missing",
		"no*match":           `"no*match": nothing matches`,
		"[":                  `"["`,
		"file:":              "no name after the colon",
		"file:../x":          "outside",
		"file:/etc/passwd":   "absolute",
		"file:.":             "a file needs a name",
		"file:x other:x":     "would both be x",
		"file:x other:x/y":   "below the file",
		"linked":             "linked/d: is a symbolic link to a directory",
		"broken":             "broken/l",
		"loop":               "input loop: too many",
		"fifos":              "fifos/pipe: is a named pipe",
		"fifos/pipe":         "is a named pipe",
		"sock":               "sock: is a socket",
		"/dev/null:x":        "/dev/null: is a device",
		"/proc/self/status":  "/proc/self/status: has content but no size",
		"/proc/self/mem":     "/proc/self/mem: input/output error",
		"bad":                "control character",
		"file tree/ok:file/": "below the file",
	} {
		_, err := ingest(t, strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q in it", args, err, want)
		}
	}
	if _, err := transfer.ExpandInputs([]string{""}); err == nil {
		t.Error("an empty argument was accepted")
	}
}

// meddler changes a file while it is read.
type meddler struct {
	once sync.Once
	do   func()
}

func (m *meddler) Put(transfer.Hash, []byte) error {
	m.once.Do(m.do)
	return nil
}

func TestChangedWhileRead(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data")
	for what, change := range map[string]func() error{
		"grows":   func() error { return os.Truncate(name, 9*transfer.ChunkSize) },
		"shrinks": func() error { return os.Truncate(name, 1) },
		"touched": func() error { return os.Chtimes(name, time.Time{}, time.Unix(1, 0)) },
	} {
		if err := os.WriteFile(name, make([]byte, 8*transfer.ChunkSize), 0o644); err != nil {
			t.Fatal(err)
		}
		put := &meddler{do: func() {
			if err := change(); err != nil {
				t.Error(err)
			}
		}}
		_, err := transfer.Ingest(t.Context(), put, []transfer.Input{{Path: name}})
		if !errors.Is(err, transfer.ErrChanged) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want ErrChanged", what, err)
		}
	}
}

func TestIngestReportsTheSinksError(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(name, make([]byte, 8*transfer.ChunkSize), 0o644); err != nil {
		t.Fatal(err)
	}
	put := transfer.PutterFunc(func(transfer.Hash, []byte) error { return syscall.ENOSPC })
	if _, err := transfer.Ingest(t.Context(), put, []transfer.Input{{Path: name}}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
}

// remote is a transfer.Remote with a store behind it.
type remote struct {
	*transfer.MemStore
	mu    sync.Mutex
	asked int
	sent  []transfer.Hash
	early func() // runs between the question and the sending
}

func (r *remote) Missing(_ context.Context, chunks []transfer.Hash) ([]transfer.Hash, error) {
	r.mu.Lock()
	r.asked += len(chunks)
	r.mu.Unlock()
	if r.early != nil {
		r.early()
	}
	var out []transfer.Hash
	for _, h := range chunks {
		if !r.Has(h) {
			out = append(out, h)
		}
	}
	return out, nil
}

func (r *remote) PutChunk(_ context.Context, h transfer.Hash, data []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, h)
	return r.Put(h, data)
}

func TestUploadSendsOnlyWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"big": strings.Repeat("x", transfer.ChunkSize) + strings.Repeat("y", 2*transfer.ChunkSize) + "tail",
		"p*":  "prog", "twin": "prog", "none": "",
	}
	write(t, dir, files)
	r := &remote{MemStore: transfer.NewMemStore(0)}
	inputs := []transfer.Input{{Path: dir, Name: "."}}
	up, err := transfer.Upload(t.Context(), r, inputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	// x, y, tail, both progs as one, and the manifest
	if up.Files != 4 || up.Total != 3*transfer.ChunkSize+12 || up.Sent != 2*transfer.ChunkSize+12 || len(r.sent) != 5 {
		t.Errorf("got %+v, %d blobs sent", up, len(r.sent))
	}
	m, err := transfer.LoadManifest(r, up.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := m.Write(t.Context(), r, to); err != nil {
		t.Fatal(err)
	}
	sameTree(t, read(t, to), files)

	write(t, dir, map[string]string{"new": "new"})
	again, err := transfer.Upload(t.Context(), r, inputs, nil)
	if err != nil || again.Sent != 11 {
		t.Errorf("one new file: got %+v, %v", again, err)
	}
}

// How far an upload is is told in order, though several files are read at a time: the last word of
// a step is that all is done.
func TestUploadTellsInOrder(t *testing.T) {
	dir, files := t.TempDir(), map[string]string{}
	for i := range 2000 {
		files[fmt.Sprint(i)] = fmt.Sprint(i, strings.Repeat("x", i%50))
	}
	write(t, dir, files)
	var inside atomic.Int32
	last := map[transfer.Step]int64{}
	up, err := transfer.Upload(t.Context(), &remote{MemStore: transfer.NewMemStore(0)}, []transfer.Input{{Path: dir, Name: "."}}, func(s transfer.Step, done, total int64) {
		if inside.Add(1) > 1 {
			t.Error("two are telling at a time")
		}
		defer inside.Add(-1)
		runtime.Gosched()
		if done < last[s] || done > total {
			t.Errorf("%s: %d of %d, after %d", s, done, total, last[s])
		}
		last[s] = done
	})
	if err != nil || last[transfer.Hashing] != up.Total {
		t.Errorf("%+v, %v: the last that was told is %v", up, err, last)
	}
}

func TestUploadNoticesChanges(t *testing.T) {
	dir := t.TempDir()
	for what, change := range map[string]func() error{
		"rewritten": func() error { return os.WriteFile(filepath.Join(dir, "a"), []byte("other"), 0o644) },
		"cut":       func() error { return os.Truncate(filepath.Join(dir, "a"), 1) },
	} {
		write(t, dir, map[string]string{"a": strings.Repeat("f", transfer.ChunkSize)})
		r := &remote{MemStore: transfer.NewMemStore(0)}
		r.early = func() {
			if err := change(); err != nil {
				t.Error(err)
			}
		}
		_, err := transfer.Upload(t.Context(), r, []transfer.Input{{Path: dir, Name: "."}}, nil)
		if !errors.Is(err, transfer.ErrChanged) || len(r.sent) > 0 {
			t.Errorf("%s: got %v after %d blobs", what, err, len(r.sent))
		}
	}
}

// Small files are sent while others are hashed, as they were then, whatever becomes of them; and
// not once more.
func TestUploadReadsSmallFilesOnce(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for i := range 600 { // 36 MB
		files[fmt.Sprintf("f%03d", i)] = strings.Repeat(fmt.Sprintf("%06d", i), 10_000)
	}
	write(t, dir, files)
	var hashed atomic.Int64
	r := &remote{MemStore: transfer.NewMemStore(0), early: sync.OnceFunc(func() {
		if n := hashed.Load(); n > 30<<20 {
			t.Errorf("the first are sent after %d bytes were hashed", n)
		}
	})}
	inputs := []transfer.Input{{Path: dir, Name: "."}}
	up, err := transfer.Upload(t.Context(), r, inputs, func(_ transfer.Step, done, _ int64) { hashed.Store(done) })
	if err != nil {
		t.Fatal(err)
	}
	if again, err := transfer.Upload(t.Context(), r, inputs, nil); err != nil || up.Sent != 36_000_000 || again.Sent != 0 {
		t.Errorf("sent %d bytes, then %d: %v", up.Sent, again.Sent, err)
	}
	whole := func(r *remote, up transfer.Uploaded) {
		t.Helper()
		m, err := transfer.LoadManifest(r, up.Manifest)
		to := t.TempDir()
		if err == nil {
			err = m.Write(t.Context(), r, to)
		}
		if err != nil {
			t.Fatal(err)
		}
		sameTree(t, read(t, to), files)
	}
	whole(r, up)

	r = &remote{MemStore: transfer.NewMemStore(0), early: func() { write(t, dir, map[string]string{"f000": "other"}) }}
	files = map[string]string{"f000": files["f000"], "f001": files["f001"]}
	up, err = transfer.Upload(t.Context(), r, []transfer.Input{{Path: dir + "/f000", Name: "f000"}, {Path: dir + "/f001", Name: "f001"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole(r, up)
}
