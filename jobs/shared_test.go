package jobs

import (
	"errors"
	"strings"
	"testing"

	"zorilla/jobs/work"
)

// One work directory for several ranks is for those that start together, at nodes that know of it.
func TestSharedWorkOfASpec(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		bad  string
		want string // the condition
	}{
		{Spec{Min: 2, Max: 2}, "", "version >= 7"},
		{Spec{Min: 2, Max: 2, Where: "slots > 1", Access: Access{MPI: true}, Failing: Failing{Retries: 2}}, "", "version >= 7 && (slots > 1)"},
		{Spec{Min: 2, Max: 3}, "--share-work with -n 2..3", ""},
		{Spec{Min: 2, Max: 2, Replicas: 2}, "--share-work with --replicas", ""},
		{Spec{Min: 1, Max: 2, Array: &Array{Tasks: []work.TaskIDs{{First: 1, Last: 2, Step: 1}}}}, "--share-work: each task", ""},
	} {
		s := c.spec
		s.Args, s.Slots, s.ShareWork = []string{"true"}, 1, true
		switch err := s.Validate(); {
		case c.bad == "" && err != nil, c.bad != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("%+v: %v", c.spec, err)
		case err == nil && s.Condition() != c.want:
			t.Errorf("%+v: nodes must fulfil %q", c.spec, s.Condition())
		}
	}
}

// Nodes that would take several workers of a job that wants one at each are kept out, and so is what cannot be meant.
func TestOnePerNode(t *testing.T) {
	for _, c := range []struct {
		spec      Spec
		bad, want string
	}{
		{Spec{Min: 2, Max: 2}, "", "version >= 9"},
		{Spec{Min: 1, Max: 4, Where: "slots > 1", Strategy: "compact", Replicas: 1}, "", "version >= 9 && (slots > 1)"},
		{Spec{Min: 2, Max: 2, Strategy: "concentrate"}, "--one-per-node with --strategy concentrate", ""},
		{Spec{Min: 2, Max: 2, Access: Access{ShareWork: true}}, "--one-per-node, or --strategy maheve, with --share-work", ""},
	} {
		s := c.spec
		s.Args, s.Slots, s.OnePerNode = []string{"true"}, 1, true
		switch err := s.Validate(); {
		case c.bad == "" && err != nil, c.bad != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("%+v: %v", c.spec, err)
		case err == nil && s.Condition() != c.want:
			t.Errorf("%+v: nodes must fulfil %q", c.spec, s.Condition())
		}
	}
}

// Who makes no checkpoints can have none far away, and nodes that know of none are not asked.
func TestCheckpointsFarAway(t *testing.T) {
	for _, c := range []struct {
		spec      Spec
		bad, want string
	}{
		{Spec{Min: 1, Max: 4}, "", "version >= 9"},
		{Spec{Min: 2, Max: 2, Access: Access{MPI: true}}, "", "version >= 9"},
		{Spec{Min: 2, Max: 2, Access: Access{ShareWork: true}}, "--checkpoint-far with --share-work", ""},
		{Spec{Min: 1, Max: 2, Array: &Array{Tasks: []work.TaskIDs{{First: 1, Last: 2, Step: 1}}}}, "--checkpoint-far: the tasks of an array", ""},
	} {
		s := c.spec
		s.Args, s.Slots, s.CheckpointFar = []string{"true"}, 1, true
		switch err := s.Validate(); {
		case c.bad == "" && err != nil, c.bad != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.bad)):
			t.Errorf("%+v: %v", c.spec, err)
		case err == nil && s.Condition() != c.want:
			t.Errorf("%+v: nodes must fulfil %q", c.spec, s.Condition())
		}
	}
}
