package selector

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
)

// node has jobs, each "ID NAME STATE".
func node(t *testing.T, list ...string) *apitest.Fake {
	t.Helper()
	f := apitest.New()
	for _, text := range list {
		w := strings.Fields(text)
		st := apitest.Example()
		st.ID, st.Spec.Name, st.State = jobs.ID(w[0]).At(f.Members[0].ID), w[1], jobs.State(w[2])
		f.Add(st)
	}
	return f
}

func TestFind(t *testing.T) {
	f := node(t, "aaaaa train RUNNING", "bbbbb train COMPLETED", "ccccc train FAILED",
		"ddddd eval COMPLETED", "eeeee eval COMPLETED", "fffff ddddd RUNNING", "ggggg last RUNNING",
		"hhhhh b RUNNING", "iiiii d@e RUNNING", "jjjjj c COMPLETED", "kkkkk late RUNNING", "mmmmm late PENDING", "nnnnn Größe_3 COMPLETED")
	at := "@" + string(f.Members[0].ID)
	for ref, want := range map[string]string{
		"train":           "aaaaa" + at, // the one that has not ended
		"ddddd":           "ddddd" + at, // an ID wins over a name
		"fffff":           "fffff" + at,
		"last":            "last", // is the last one
		"b":               "hhhhh" + at,
		"bb":              "bb", // begins an ID, and is no name
		"d@e":             "iiiii" + at,
		"c":               "jjjjj" + at,
		"Größe_3":         "nnnnn" + at,
		"zzzzz":           "zzzzz", // the node says what is wrong
		"aaaaa@zother":    "aaaaa@zother",
		"":                "",
		"../../etc":       "../../etc",
		"trainer":         "trainer",
		"aaaaa" + at[:3]:  "aaaaa" + at[:3],
		"aaaaa" + at + "": "aaaaa" + at,
	} {
		if got, note, err := Find(t.Context(), f, ref); err != nil || got != want || note != "" {
			t.Errorf("%s: got %q, %q, %v, want %q", ref, got, note, err, want)
		}
	}
	if got, note, err := Find(t.Context(), f, "eval"); err != nil || got != "eeeee"+at || note != `2 jobs that have ended are called "eval": the last one is meant, eeeee@zeb2a` {
		t.Errorf("of two that have ended: %q, %q, %v", got, note, err)
	}
	for ref, want := range map[string]string{
		"late": `job "late" is ambiguous: 2 jobs are called so: mmmmm@zeb2a (PENDING), kkkkk@zeb2a (RUNNING): write the ID of one`,
	} {
		if _, _, err := Find(t.Context(), f, ref); !errors.Is(err, api.ErrAmbiguous) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", ref, err, want)
		}
	}
}

// An error stays short.
func TestTooManyNamesakes(t *testing.T) {
	var list []string
	for i := range 10 {
		list = append(list, fmt.Sprintf("aaaa%c x RUNNING", 'a'+i))
	}
	if _, _, err := Find(t.Context(), node(t, list...), "x"); err == nil || !strings.HasSuffix(err.Error(), "(RUNNING) and 2 more: write the ID of one") {
		t.Errorf("got %v", err)
	}
}
