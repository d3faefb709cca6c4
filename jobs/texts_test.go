package jobs

import (
	"strings"
	"testing"
)

// What is not UTF-8 would arrive as something else, and two texts as the same: it is refused.
func TestTextsThatAreNotUTF8(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"argument":             func(s *Spec) { s.Args = append(s.Args, "caf\xe9") },
		"environment variable": func(s *Spec) { s.Env = map[string]string{"X": "caf\xe9"} },
		"output pattern":       func(s *Spec) { s.Outputs = []string{"x\xe9*"} },
	} {
		spec := Spec{Args: []string{"echo", "ü", "日本"}, Min: 1, Max: 1, Slots: 1, Env: map[string]string{"X": "é"}, Outputs: []string{"ünï*"}}
		if err := spec.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		change(&spec)
		if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), `\xe9`) || !strings.Contains(err.Error(), "valid UTF-8") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForPeople(t *testing.T) {
	for path, want := range map[string]bool{"result.txt": true, "a/b.c": true, ".cache/x": false, "a/.b/c": false, "__pycache__/m.pyc": false, "x.": true, "a..b": true} {
		if got := (&Spec{}).Wants(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	without, with := Spec{}, Spec{Outputs: []string{"out-*"}}
	array := Spec{Array: &Array{}}
	if !without.Wants("x") || without.Wants(".x") || !array.Wants("x") || array.Wants(".x") || with.Wants("x") || !with.Wants("out-1") {
		t.Error("it wants other files")
	}
}
