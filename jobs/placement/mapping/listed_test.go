package mapping

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// A graph of a file is the same when it comes back from a journal.
func TestGraphSurvives(t *testing.T) {
	m, err := ReadMETIS(strings.NewReader("4 3 011\n5 2 7\n1 1 7 3 2\n2 2 2 4 1\n1 3 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	var back Listed
	listed := List(m)
	listed.Names = []string{"source", "left", "right", "sink-2"}
	text, err := json.Marshal(listed)
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.Graph()
	if err != nil || !reflect.DeepEqual(again, m) || !reflect.DeepEqual(back, *listed) {
		t.Errorf("it is %+v (%v), was %+v", again, err, m)
	}
	if plain := List(NewGraph(3)); plain.Costs != nil || plain.Volumes != nil || plain.Tasks != 3 {
		t.Errorf("what is 1 takes room: %+v", plain)
	}
}
