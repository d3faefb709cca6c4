package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{`{"a":1}`, `{"a":1,"new":2}`, true},
		{`{"a":1}`, `{"a":2}`, false},
		{`{"a":1}`, `{}`, false},
		{`{"a":[{"b":"x"}]}`, `{"a":[{"b":"x","c":1}]}`, true},
		{`{"a":[1]}`, `{"a":[1,2]}`, false},
		{`{"a":{"b":null}}`, `{"a":{}}`, true},
		{`{"a":"2026-01-01T00:00:00Z"}`, `{"a":"2026-01-01T02:00:00+02:00"}`, true},
		{`{"a":"2026-01-01T00:00:00Z"}`, `{"a":"2026-01-01T00:00:00+02:00"}`, false},
		{`{"a":{"b":1}}`, `{"a":"b"}`, false},
	} {
		var want, got any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(c.got), &got); err != nil {
			t.Fatal(err)
		}
		if err := Holds(want, got); (err == nil) != c.ok {
			t.Errorf("%s in %s: %v", c.want, c.got, err)
		}
	}
}

func TestVersionsAreOrderedByNumber(t *testing.T) {
	list := []string{"0.10", "0.2", "1.0", "0.2.1"}
	slices.SortFunc(list, Compare)
	if want := []string{"0.2", "0.2.1", "0.10", "1.0"}; !slices.Equal(list, want) {
		t.Errorf("got %v", list)
	}
	for _, bad := range []string{"", "x", "0.", "-1", "../0.1"} {
		if number(bad) != nil {
			t.Errorf("%q counts as a version", bad)
		}
	}
}

// TestNewVersionsComeBeside writes two versions: the old one stays and is still
// read.
func TestNewVersionsComeBeside(t *testing.T) {
	t.Chdir(t.TempDir())
	decode := func(b []byte) (any, error) { return map[string]string{"text": string(b)}, nil }
	for i, text := range []string{"old", "new"} {
		t.Setenv(variable, []string{"0.9", "0.10"}[i])
		Messages(t, "messages", map[string]Message{"word": {Bytes: []byte(text), Decode: decode}})
	}
	t.Setenv(variable, "")
	var read []string
	Read(t, "messages", nil, func(t *testing.T, version, dir string) {
		b, err := os.ReadFile(filepath.Join(dir, "word.bin"))
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, version+" "+string(b))
	})
	if want := []string{"0.9 old", "0.10 new"}; !slices.Equal(read, want) {
		t.Errorf("got %q, want %q", read, want)
	}
}
