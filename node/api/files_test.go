package api_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

// tree makes the output of a rank of lines "name=content"; "name/" is a
// directory.
func tree(t *testing.T, rank int, files ...string) api.RankTree {
	t.Helper()
	var entries []transfer.Entry
	for _, f := range files {
		name, content, _ := strings.Cut(f, "=")
		e := transfer.Entry{Path: strings.TrimSuffix(name, "/"), Dir: strings.HasSuffix(name, "/")}
		if content != "" {
			e.Size = int64(len(content))
			e.Chunks = transfer.HashList{transfer.HashOf([]byte(content))}
		}
		entries = append(entries, e)
	}
	m, err := transfer.NewManifest(entries)
	if err != nil {
		t.Fatal(err)
	}
	return api.RankTree{Rank: rank, Manifest: m}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name     string
		ranks    [][]string
		want     string
		warnings string
	}{
		{"nothing", nil, "", ""},
		{"different names", [][]string{{"a=1"}, {"b=2", "d/e=3"}}, "a b d/e", ""},
		{"the same content once", [][]string{{"a=1"}, {"a=1"}}, "a", ""},
		{"different content", [][]string{{"a=1"}, {"a=2"}}, "a.0 a.1", `ranks 0 and 1 made different files "a": kept as "a.RANK"`},
		{"two of three are the same", [][]string{{"a=1"}, {"a=2"}, {"a=1"}}, "a.0 a.1 a.2", `ranks 0, 1 and 2 made different files "a": kept as "a.RANK"`},
		{"the new name is taken", [][]string{{"a=1", "a.0=x"}, {"a=2"}}, "a.0 a.0.0 a.1", `ranks 0 and 1 made different files "a": kept as "a.RANK"`},
		{"file and directory", [][]string{{"a=1"}, {"a/b=2"}}, "a/b a.0", `rank 0 made a file where others made a directory "a": kept as "a.RANK"`},
		{"the new name is a directory", [][]string{{"a=1"}, {"a=2", "a.1/b=2"}}, "a.0 a.1/b a.1.1", `ranks 0 and 1 made different files "a": kept as "a.RANK"`},
		{"empty directories", [][]string{{"d/", "e/"}, {"d/x=1"}}, "d/x e/", ""},
		{"many ranks", [][]string{{"a=0"}, {"a=1"}, {"a=2"}, {"a=3"}, {"a=4"}, {"a=5"}}, "a.0 a.1 a.2 a.3 a.4 a.5", `6 ranks made different files "a": kept as "a.RANK"`},
	} {
		var trees []api.RankTree
		for rank, files := range c.ranks {
			trees = append(trees, tree(t, rank, files...))
		}
		slices.Reverse(trees) // the order of arrival must not matter
		m, warnings, err := api.Merge(trees)
		var got []string
		for _, e := range m.Entries {
			name := e.Path
			if e.Dir {
				name += "/"
			}
			got = append(got, name)
		}
		if err != nil || strings.Join(got, " ") != c.want || strings.Join(warnings, "\n") != c.warnings {
			t.Errorf("%s: got %v, %q, %v\nwant %s, %q", c.name, got, warnings, err, c.want, c.warnings)
		}
	}
}

func TestMergeBoundsItsWarnings(t *testing.T) {
	var a, b []string
	for i := range 100 {
		name := strings.Repeat("x", i+1)
		a, b = append(a, name+"=1"), append(b, name+"=2")
	}
	_, warnings, err := api.Merge([]api.RankTree{tree(t, 0, a...), tree(t, 1, b...)})
	if err != nil || len(warnings) != 21 || warnings[20] != "and 80 more names with different files" {
		t.Errorf("got %d warnings, %v", len(warnings), err)
	}
	long := strings.Repeat("x", 255)
	if _, _, err := api.Merge([]api.RankTree{tree(t, 0, long+"=1"), tree(t, 1, long+"=2")}); err == nil || !strings.Contains(err.Error(), "%r") {
		t.Errorf("a name that cannot grow: got %v, want the way out", err)
	}
}

// results makes an ended job whose ranks made the files.
func results(t *testing.T, f *apitest.Fake, globs []string, ranks ...[]string) jobs.Status {
	t.Helper()
	st := apitest.Example()
	st.Spec.Outputs, st.Outputs = globs, nil
	put := transfer.PutterFunc(func(h transfer.Hash, b []byte) error { return f.PutChunk(t.Context(), h, b) })
	for rank, files := range ranks {
		for _, file := range files {
			_, content, _ := strings.Cut(file, "=")
			if err := put(transfer.HashOf([]byte(content)), []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		h, err := transfer.SaveManifest(put, tree(t, rank, files...).Manifest)
		if err != nil {
			t.Fatal(err)
		}
		st.Outputs = append(st.Outputs, jobs.RankOutput{Rank: rank, Attempt: 1, Manifest: h})
	}
	return st
}

func TestPull(t *testing.T) {
	f := apitest.New()
	c := overSocket(t, f)
	st := results(t, f, []string{"*"}, []string{"log=zero", "same=s"}, []string{"log=one", "same=s", "d/x=deep"})
	for _, p := range []struct {
		into  string
		rank  int
		want  string
		ranks int
		warn  int
	}{
		{"flat", -1, "flat/d/x flat/log.0 flat/log.1 flat/same", 2, 1},
		{"apart/r%r", -1, "apart/r0/log apart/r0/same apart/r1/d/x apart/r1/log apart/r1/same", 2, 0},
		{"one", 1, "one/d/x one/log one/same", 1, 0},
		{"none", 9, "", 0, 0},
	} {
		dir := t.TempDir()
		got, err := api.Pull(t.Context(), c, st, api.Wanted{Rank: p.rank, Into: filepath.Join(dir, p.into)})
		names := strings.Join(files(t, dir), " ")
		if err != nil || names != p.want || got.Ranks != p.ranks || len(got.Warnings) != p.warn || got.Files != len(files(t, dir)) {
			t.Errorf("%s: got %s, %+v, %v\nwant %s", p.into, names, got, err, p.want)
		}
	}
}

// nearby is a service that has a large file on this machine, and counts the chunks that are
// asked for.
type nearby struct {
	*apitest.Fake
	path   string
	chunks atomic.Int64
}

func (n *nearby) Locate(context.Context, transfer.Hash) (transfer.File, error) {
	return transfer.File{Path: n.path}, nil
}

func (n *nearby) Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error) {
	n.chunks.Add(1)
	return n.Fake.Chunk(ctx, job, h)
}

// A large output is read where the node has it, if that can be.
func TestPullReadsFilesOfTheNode(t *testing.T) {
	content := bytes.Repeat([]byte("large "), transfer.ChunkSize/4)
	src := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(src, content, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int64{src: 1, src + "-gone": 3, "": 3} { // with the manifest
		n := &nearby{Fake: apitest.New(), path: path}
		put := transfer.PutterFunc(func(h transfer.Hash, b []byte) error { return n.PutChunk(t.Context(), h, b) })
		m, err := transfer.Ingest(t.Context(), put, []transfer.Input{{Path: src}})
		if err != nil {
			t.Fatal(err)
		}
		h, err := transfer.SaveManifest(put, m)
		if err != nil {
			t.Fatal(err)
		}
		st := apitest.Example()
		st.Spec.Outputs, st.Outputs = []string{"*"}, []jobs.RankOutput{{Attempt: 1, Manifest: h}}
		dir := t.TempDir()
		_, err = api.Pull(t.Context(), overSocket(t, n), st, api.Wanted{Rank: -1, Into: dir})
		if got, _ := os.ReadFile(filepath.Join(dir, "large")); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%q: the file is another one: %v", path, err)
		}
		if got := n.chunks.Load(); got != want {
			t.Errorf("%q: %d chunks were asked for, want %d", path, got, want)
		}
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			rel, _ := filepath.Rel(dir, p) // below dir by construction
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestPullTakesOnlyWhatWasAskedFor(t *testing.T) {
	f := apitest.New()
	st := results(t, f, []string{"out-*"}, []string{"out-1=a", ".bashrc=evil"})
	dir := t.TempDir()
	if _, err := api.Pull(t.Context(), f, st, api.Wanted{Rank: -1, Into: dir}); !errors.Is(err, api.ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("wrote %v", got)
	}
	st.Outputs[0].Manifest = transfer.HashOf([]byte("gone"))
	if _, err := api.Pull(t.Context(), f, st, api.Wanted{Rank: -1, Into: dir}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestPush(t *testing.T) {
	f := apitest.New()
	c := overSocket(t, f)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("input"), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := api.Push(t.Context(), c, []transfer.Input{{Path: filepath.Join(dir, "in")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	get := transfer.GetterFunc(func(h transfer.Hash, _ []byte) ([]byte, error) { return f.Chunk(t.Context(), "", h) })
	m, err := transfer.LoadManifest(get, h)
	if err != nil || len(m.Entries) != 1 || m.Entries[0].Path != "in" {
		t.Errorf("got %+v, %v", m, err)
	}
	if h, err := api.Push(t.Context(), c, nil, nil); err != nil || !h.IsZero() {
		t.Errorf("no files: got %v, %v", h, err)
	}
}

// What is not compared with its hash has to be of a node of the client's own user, or of root.
func TestWhoseStampsAreBelieved(t *testing.T) {
	n := &stamping{apitest.New()}
	srv := httptest.NewServer(api.Handler(n))
	defer srv.Close()
	tcp, err := api.Dial(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	for name, c := range map[string]struct {
		client   *api.Client
		believed bool
	}{"the socket": {overSocket(t, n), true}, "TCP": {tcp, false}} {
		f, err := c.client.Locate(t.Context(), transfer.HashOf(nil))
		if err != nil || f.Path != "/f" || (f.Stamp.Inode == 7) != c.believed {
			t.Errorf("over %s: got %+v, %v", name, f, err)
		}
	}
}

type stamping struct{ *apitest.Fake }

func (*stamping) Locate(context.Context, transfer.Hash) (transfer.File, error) {
	return transfer.File{Path: "/f", Stamp: transfer.Stamp{Inode: 7}}, nil
}
