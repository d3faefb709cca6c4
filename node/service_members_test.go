package node

import (
	"errors"
	"strings"
	"testing"

	"zorilla/node/api"
	"zorilla/vicinity"
)

func someNodes(idsAndNames ...string) []api.NodeInfo {
	var all []api.NodeInfo
	for i := 0; i < len(idsAndNames); i += 2 {
		id := vicinity.ID(idsAndNames[i] + strings.Repeat("x", 27-len(idsAndNames[i])))
		all = append(all, api.NodeInfo{Member: vicinity.Member{ID: id, Name: idsAndNames[i+1]}, Self: i == 0})
	}
	return all
}

func TestNodesAreFoundByWhatPeopleCallThem(t *testing.T) {
	all := someNodes("zself", "here", "zabcd", "there", "zabce", "zabcd", "zq", "twin", "zr", "twin", "zs", "self", "zt", "")
	for _, c := range []struct {
		ref, want string // the beginning of the ID
		err       error
		says      string
	}{
		{"self", "zself", nil, ""},
		{"here", "zself", nil, ""},
		{"there", "zabcd", nil, ""},
		{"zabcd", "zabce", nil, ""}, // a name is meant before an ID
		{"zabcdx", "zabcd", nil, ""},
		{"zt", "zt", nil, ""},
		{"zab", "", api.ErrAmbiguous, `node "zab" is ambiguous: it could be there (zabcdxxx), zabcd (zabcexxx): name more of its ID`},
		{"twin", "", api.ErrAmbiguous, "twin (zqxxxxxx), twin (zrxxxxxx)"},
		{"z", "", api.ErrAmbiguous, "here (zselfxxx)"},
		{"nobody", "", api.ErrNotFound, `node "nobody" not found: the members are here (zselfxxx), `},
		{"", "", api.ErrInvalid, "want its name"},
		{"a\nb", "", api.ErrInvalid, `"a\nb"`},
		{strings.Repeat("z", 65), "", api.ErrInvalid, "does not name a node"},
	} {
		got, err := findNode(all, c.ref)
		if !errors.Is(err, c.err) || !strings.HasPrefix(string(got.ID), c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %s, %v; want %s, %v %s", c.ref, got.ID, err, c.want, c.err, c.says)
		}
	}
}

func TestAnErrorNamesAFewCandidatesOnly(t *testing.T) {
	var names []string
	for i := range 300 {
		names = append(names, "z"+string(rune('a'+i%26))+string(rune('a'+i/26)), "node")
	}
	_, err := findNode(someNodes(names...), "node")
	if err == nil || len(err.Error()) > 300 || !strings.Contains(err.Error(), "292 more") {
		t.Errorf("got %v", err)
	}
}
