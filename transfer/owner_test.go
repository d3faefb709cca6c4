package transfer_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zorilla/internal/needs"
	"zorilla/internal/seeds"
	"zorilla/transfer"
)

// All of a tree becomes the owner's, and the directory itself when nothing is left: not if
// something is missing.
func TestFilesBecomeTheOwners(t *testing.T) {
	needs.Root(t)
	seed := seeds.One(t)
	owner := transfer.Owner{UID: 2100000005, GID: 2100000006}
	files := map[string]string{"large": noise(rand.New(rand.NewPCG(seed, 2)), 2*transfer.ChunkSize+1), "d/run": strings.Repeat("r", 70_000)}
	for i := range 40 {
		files[fmt.Sprintf("many/%d/sub/file", i)] = fmt.Sprint(i)
	}
	for how, c := range map[string]transfer.How{
		"fresh":                         {Fresh: true},
		"in place of files":             {},
		"files that the store may give": {Fresh: true, Give: true},
	} {
		s := newStation(t, seed, files)
		m, err := transfer.NewManifest(append(slices.Clone(s.tree.Entries), transfer.Entry{Path: "d/link", Link: "run"}, transfer.Entry{Path: "void", Dir: true}))
		if err != nil {
			t.Fatal(err)
		}
		c.Owner = &owner
		work := filepath.Join(t.TempDir(), "work")
		if err := m.WriteTo(t.Context(), s.store, work, c); err != nil {
			t.Fatal(err)
		}
		if given := len(s.assembled()) == 0; given != c.Give {
			t.Errorf("%s: the store gave its file: %v", how, given)
		}
		if n, left := belongTo(t, work, owner); n != 1+len(files)+4+40*2 || len(left) > 0 {
			t.Errorf("%s: %d are the owner's, but not %q", how, n, left)
		}
	}

	s := newStation(t, seed, files)
	work := filepath.Join(t.TempDir(), "work")
	err := s.tree.WriteTo(t.Context(), transfer.NewMemStore(0), work, transfer.How{Fresh: true, Owner: &owner})
	if !errors.Is(err, transfer.ErrNotFound) {
		t.Fatalf("got %v, want ErrNotFound", err)
	}
	if _, left := belongTo(t, work, owner); !slices.Contains(left, ".") {
		t.Error("the directory is the owner's, though nothing is there")
	}
}

// belongTo counts what is an owner's, and lists what is not.
func belongTo(t *testing.T, dir string, owner transfer.Owner) (n int, not []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) == owner.UID && int(st.Gid) == owner.GID {
			n++
			return nil
		}
		rel, err := filepath.Rel(dir, at)
		not = append(not, rel)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return n, not
}
