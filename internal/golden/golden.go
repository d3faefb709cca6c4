// Package golden keeps what earlier versions of the program wrote, files and
// messages, and has today's program read it.
//
// What version V wrote is in testdata/golden/V of the package that owns the
// format, in one directory for each set. Nothing there is ever changed: a format
// that was written once must be read for as long as its version is supported.
// A new version is written beside the old ones, by the tests themselves:
//
//	ZORILLA_GOLDEN=0.2 go test -run TestGolden ./jobs/... ./flood ./vicinity ./node/gossip ./node/fastrpc ./transfer
//
// Look at what that adds before you commit it: the JSON beside a message is what
// it means.
package golden

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// variable is the environment variable with the version to write.
const variable = "ZORILLA_GOLDEN"

const (
	bytesSuffix   = ".bin"
	meaningSuffix = ".json"
)

// Read calls check, in a subtest each, with the directories of all versions of a
// set, the oldest first. If a version is to be written it calls write with the new
// directory first; one that is there already is not written again.
func Read(t *testing.T, set string, write func(t *testing.T, dir string), check func(t *testing.T, version, dir string)) {
	t.Helper()
	top := filepath.Join("testdata", "golden")
	if version := os.Getenv(variable); version != "" {
		dir := filepath.Join(top, version, set)
		if number(version) == nil {
			t.Fatalf("%s=%s: want a version such as 0.2", variable, version)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatalf("%s is there already, and golden files are never written over: choose another version", dir)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, dir)
	}
	versions := versionsIn(t, top, set)
	if len(versions) == 0 {
		t.Fatalf("no golden files of %s: write them with %s=VERSION", set, variable)
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) { check(t, version, filepath.Join(top, version, set)) })
	}
}

// versionsIn lists the versions of a set in the order of their numbers.
func versionsIn(t *testing.T, top, set string) (versions []string) {
	t.Helper()
	sets, err := filepath.Glob(filepath.Join(top, "*", set))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range sets {
		version := filepath.Base(filepath.Dir(dir))
		if number(version) == nil {
			t.Fatalf("%s is of no version", dir)
		}
		versions = append(versions, version)
	}
	slices.SortFunc(versions, Compare)
	return versions
}

// Compare orders versions by their numbers.
func Compare(a, b string) int { return cmp.Or(slices.Compare(number(a), number(b)), cmp.Compare(a, b)) }

// number returns the numbers of a version such as 0.2; nil if it is none.
func number(version string) (list []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// Message is one kind of message or small file.
type Message struct {
	// Bytes are what today's program writes.
	Bytes []byte
	// Decode reads such bytes as the program does. What it returns is compared,
	// as JSON, with what the bytes meant when they were written.
	Decode func(b []byte) (any, error)
	// Varies is set if the bytes are not the same each time, or are pinned by
	// another test: they are only read.
	Varies bool
}

// Messages reads the messages of all versions, by name, and compares their
// meaning with the JSON beside them: what that names must be there, and equal.
// The newest version must have all of them, as today's program writes them.
func Messages(t *testing.T, set string, messages map[string]Message) {
	t.Helper()
	newest := ""
	write := func(t *testing.T, dir string) {
		for name, m := range messages {
			if err := m.write(filepath.Join(dir, name)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	Read(t, set, write, func(t *testing.T, version, dir string) {
		newest = dir
		files, err := filepath.Glob(filepath.Join(dir, "*"+bytesSuffix))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no messages, %v", dir, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), bytesSuffix)
			m, ok := messages[name]
			if !ok {
				t.Errorf("%s: nobody reads it", file)
				continue
			}
			if err := m.read(strings.TrimSuffix(file, bytesSuffix)); err != nil {
				t.Errorf("%s of version %s: %v", name, version, err)
			}
		}
	})
	if t.Failed() {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(messages)) {
		b, err := os.ReadFile(filepath.Join(newest, name+bytesSuffix))
		if m := messages[name]; err != nil || !m.Varies && string(b) != string(m.Bytes) {
			t.Errorf("%s is not what %s has: if the format was meant to change, write it as a new version with %s=VERSION", name, newest, variable)
		}
	}
}

func (m *Message) write(path string) error {
	v, err := m.Decode(m.Bytes)
	if err != nil {
		return err
	}
	meaning, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+meaningSuffix, append(meaning, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(path+bytesSuffix, m.Bytes, 0o644)
}

// read decodes a message of some version and compares its meaning.
func (m *Message) read(path string) error {
	b, err := os.ReadFile(path + bytesSuffix)
	if err != nil {
		return err
	}
	meant, err := os.ReadFile(path + meaningSuffix)
	if err != nil {
		return err
	}
	v, err := m.Decode(b)
	if err != nil {
		return err
	}
	now, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var want, got any
	if err := json.Unmarshal(meant, &want); err != nil {
		return err
	}
	if err := json.Unmarshal(now, &got); err != nil {
		return err
	}
	return Holds(want, got)
}

// Holds reports where a JSON value lacks something of another, or has it
// otherwise: fields that are only in got are newer, and do not count.
func Holds(want, got any) error { return holds("", want, got) }

func holds(at string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %v, was %v", at, got, want)
		}
		for _, key := range slices.Sorted(maps.Keys(w)) {
			if err := holds(at+"."+key, w[key], g[key]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s is %v, was %v", at, got, want)
		}
		for i := range w {
			if err := holds(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if want != got && !sameTime(want, got) {
		return fmt.Errorf("%s is %v, was %v", at, got, want)
	}
	return nil
}

// sameTime reports whether both are the same moment, perhaps in other time zones:
// which one is told is that of the machine.
func sameTime(want, got any) bool {
	w, ok1 := want.(string)
	g, ok2 := got.(string)
	a, err1 := time.Parse(time.RFC3339Nano, w)
	b, err2 := time.Parse(time.RFC3339Nano, g)
	return ok1 && ok2 && err1 == nil && err2 == nil && a.Equal(b)
}
