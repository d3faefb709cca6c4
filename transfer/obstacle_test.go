package transfer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zorilla/internal/reserved"
	"zorilla/transfer"
)

// obstacles lists what is in the way, and what is to be written.
func obstacles(t *testing.T, m *transfer.Manifest, dir string, replace bool) (way, rest string) {
	t.Helper()
	tree, list, err := m.Obstacles(t.Context(), dir, reserved.New(), replace)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range tree.Entries {
		names = append(names, e.Path)
	}
	text := transfer.ObstacleError(list).Error()
	return strings.ReplaceAll(text, dir+"/", ""), strings.Join(names, " ")
}

func TestObstacles(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", transfer.ChunkSize/16) + "and more"
	m, _ := saved(t, map[string]string{"a": "a", "big": big, "d/b*": "b", "d/e/": "", "d/f": "f"})
	for name, c := range map[string]struct {
		files              map[string]string
		way, forced, wrote string
	}{
		"empty":                {nil, "", "", "a big d/b d/e d/f"},
		"the same":             {map[string]string{"a": "a", "big": big, "d/b*": "b", "d/e/": "", "d/f": "f"}, "", "", ""},
		"some of it":           {map[string]string{"big": big, "d/f": "f", "mine": "m"}, "", "", "a d/b d/e"},
		"other content":        {map[string]string{"a": "b", "big": big[1:] + "e"}, "a exists, big exists", "", "a big d/b d/e d/f"},
		"other size":           {map[string]string{"a": "aa"}, "a exists", "", "a big d/b d/e d/f"},
		"other mode":           {map[string]string{"d/b": "b"}, "d/b exists", "", "a big d/b d/e d/f"},
		"link to the same":     {map[string]string{"same": "a", "a": "->same"}, "a exists", "", "a big d/b d/e d/f"},
		"dangling link":        {map[string]string{"a": "->nowhere"}, "a exists", "", "a big d/b d/e d/f"},
		"file for directory":   {map[string]string{"d": "x"}, "d is no directory, where one is needed", "d is no directory, where one is needed", "a big d/b d/e d/f"},
		"link for directory":   {map[string]string{"other/": "", "d": "->other"}, "d is no directory, where one is needed", "d is no directory, where one is needed", "a big d/b d/e d/f"},
		"directory for a file": {map[string]string{"d/f/": "", "a": "x"}, "a exists, d/f is a directory, where a file is needed", "d/f is a directory, where a file is needed", "a big d/b d/e d/f"},
	} {
		dir := t.TempDir()
		write(t, dir, c.files)
		before := read(t, dir)
		way, rest := obstacles(t, &m, dir, false)
		if way != c.way || rest != c.wrote {
			t.Errorf("%s: in the way: %s; to write: %s", name, way, rest)
		}
		if way, _ := obstacles(t, &m, dir, true); way != c.forced {
			t.Errorf("%s: in the way of force: %s", name, way)
		}
		sameTree(t, read(t, dir), before)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, list, err := m.Obstacles(t.Context(), filepath.Join(file, "x", "y"), reserved.New(), true); err != nil || len(list) != 1 || list[0].Path != file {
		t.Errorf("below a file: %v, %v", list, err)
	}
}

func TestObstaclesAreNamedOnOneLine(t *testing.T) {
	var way transfer.ObstacleError
	for range 30 {
		way = append(way, transfer.Obstacle{Path: "f", Why: "exists", File: true})
	}
	if got := way.Error(); !strings.HasSuffix(got, "f exists, and 10 more") || !way.Replaceable() {
		t.Errorf("got %s", got)
	}
}

func TestWriteNewReplacesNothing(t *testing.T) {
	m, s := saved(t, map[string]string{"a": "new", "d/b*": "new", "z": "z"})
	for name, there := range map[string]map[string]string{
		"file": {"d/b": "old"},
		"link": {"d/b": "->nowhere"},
		"same": {"d/b*": "new"},
	} {
		dir := t.TempDir()
		write(t, dir, there)
		if err := m.WriteTo(t.Context(), s, dir, transfer.How{New: true}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "write d/b") {
			t.Errorf("%s: got %v", name, err)
		}
		for f, content := range read(t, dir) {
			if want, mine := there[f]; mine && content != want || !mine && content != "new" && content != "z" {
				t.Errorf("%s: %s is %q", name, f, content)
			}
		}
	}
	dir := t.TempDir()
	if err := m.WriteTo(t.Context(), s, dir, transfer.How{New: true}); err != nil {
		t.Error(err)
	}
	sameTree(t, read(t, dir), map[string]string{"a": "new", "d/b*": "new", "z": "z"})
}

// Somebody makes the file while it is being fetched.
func TestWriteNewLosesARace(t *testing.T) {
	m, s := saved(t, map[string]string{"a": "new"})
	dir := t.TempDir()
	get := transfer.GetterFunc(func(h transfer.Hash, buf []byte) ([]byte, error) {
		write(t, dir, map[string]string{"a": "theirs"})
		return s.Get(h, buf)
	})
	if err := m.WriteTo(t.Context(), get, dir, transfer.How{New: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	sameTree(t, read(t, dir), map[string]string{"a": "theirs"})
}
