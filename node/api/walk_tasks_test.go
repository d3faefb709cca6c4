package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/process"
	"zorilla/node/api"
	"zorilla/transfer"
)

// counted counts the pieces that a service gives out.
type counted struct {
	*packs
	given int
}

func (c *counted) Output(ctx context.Context, job string, q api.OutputQuery, out func(jobs.Output) error) error {
	return c.packs.Output(ctx, job, q, func(o jobs.Output) error {
		c.given++
		return out(o)
	})
}

// Who walks through files is told of them, and reads no more than was wanted.
func TestWalkTaskFiles(t *testing.T) {
	p := &packs{}
	for task := 1; task <= 5; task++ {
		p.add(t, task, map[string]string{"a": strings.Repeat("x", task*1000), "d/b": "b"})
	}
	all := int64(0)
	for _, o := range p.pieces {
		all += int64(len(o.Data))
	}
	st := &jobs.Status{Spec: jobs.Spec{Outputs: []string{"a", "d"}, Array: &jobs.Array{Tasks: []process.TaskIDs{{First: 1, Last: 5, Step: 1}}}}}
	broken := errors.New("it breaks")
	for name, c := range map[string]struct {
		task, enough int
		most         int64
		fails        error // of the service, at its end
		want         string
		err          error
		early        bool // it does not read all
	}{
		"all":             {-1, 99, all, nil, "1a1000 1d/b1 2a2000 2d/b1 3a3000 3d/b1 4a4000 4d/b1 5a5000 5d/b1", nil, false},
		"one":             {3, 99, all, nil, "3a3000 3d/b1", nil, true},
		"none":            {9, 99, all, nil, "", nil, true},
		"enough":          {-1, 3, all, nil, "1a1000 1d/b1 2a2000", api.ErrEnough, true},
		"a whole task":    {-1, 2, all, nil, "1a1000 1d/b1", api.ErrEnough, true},
		"enough at last":  {-1, 10, all, nil, "1a1000 1d/b1 2a2000 2d/b1 3a3000 3d/b1 4a4000 4d/b1 5a5000 5d/b1", api.ErrEnough, false},
		"one byte less":   {-1, 99, all - 1, nil, "", api.ErrEnough, false},
		"much less":       {-1, 99, all / 3, nil, "", api.ErrEnough, true},
		"it breaks":       {-1, 99, all, broken, "", broken, false},
		"some of it lost": {-1, 99, all, jobs.ErrDamaged, "1a1000 1d/b1 2a2000 2d/b1 3a3000 3d/b1 4a4000 4d/b1 5a5000 5d/b1", jobs.ErrDamaged, false},
	} {
		p.err = c.fails
		s := &counted{packs: p}
		heap := transfer.NewMemStore(1 << 20)
		var got []string
		err := api.WalkTaskFiles(t.Context(), s, st, c.task, c.most, heap, func(task int, e transfer.Entry) error {
			if e.Dir {
				return nil
			}
			if _, err := e.Read(heap, 0, nil); err != nil {
				t.Errorf("%s: %s of task %d is not there: %v", name, e.Path, task, err)
			}
			got = append(got, fmt.Sprint(task, e.Path, e.Size))
			if len(got) == c.enough {
				return api.ErrEnough
			}
			return nil
		})
		text := strings.ReplaceAll(strings.Join(got, ";"), " ", "")
		if text = strings.ReplaceAll(text, ";", " "); !errors.Is(err, c.err) || c.want != "" && text != c.want {
			t.Errorf("%s: %q, %v; want %q, %v", name, text, err, c.want, c.err)
		}
		if early := s.given < len(p.pieces); early != c.early {
			t.Errorf("%s: %d pieces of %d were read", name, s.given, len(p.pieces))
		}
	}
	p.err = nil
	st.Spec.Outputs = []string{"d"} // which the node does not keep to
	kept := 0
	keep := transfer.PutterFunc(func(transfer.Hash, []byte) error { kept++; return nil })
	if err := api.WalkTaskFiles(t.Context(), p, st, -1, all, keep, func(int, transfer.Entry) error { return nil }); !errors.Is(err, api.ErrRefused) || kept > 0 {
		t.Errorf("a file that no pattern names: %v, %d chunks of it are kept", err, kept)
	}
}
