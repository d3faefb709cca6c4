package api_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/work"
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
	st := &jobs.Status{Spec: jobs.Spec{Outputs: []string{"a", "d"}, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 5, Step: 1}}}}}
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

// A list of files of tasks has their modes, which come after all files of a task, and is bounded
// in rows and in what is read for it.
func TestTaskFiles(t *testing.T) {
	p, last := &packs{}, 0
	for task := 1; task <= 3; task++ {
		dir := t.TempDir()
		last = len(p.pieces)
		for name, mode := range map[string]os.FileMode{"a": 0o644, "b": 0o600, "c": 0o750, "d/e": 0o640} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(strings.Repeat("x", task)), mode), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(dir, "aa"), 0o755); err != nil { // empty: an entry, and no file
			t.Fatal(err)
		}
		p.addDir(t, task, dir)
	}
	cut := &packs{pieces: p.pieces[:len(p.pieces)/3-1], err: errors.New("it breaks")} // before the modes of the first
	broken := &packs{pieces: append(append([]jobs.Output(nil), cut.pieces...), p.pieces[len(p.pieces)/3:]...), err: jobs.ErrDamaged}
	swapped := &packs{pieces: append(append([]jobs.Output(nil), p.pieces[last:]...), p.pieces[:last]...)} // 3 has ended first
	large := &packs{}
	large.add(t, 1, map[string]string{"a": "x"})
	large.pieces = append(large.pieces, jobs.Output{Rank: 2, Attempt: 1, Stream: p.pieces[0].Stream, Data: make([]byte, 33<<20)})
	one := "1 a 1 -rw-r--r--, 1 b 1 -rw-------, 1 c 1 -rwxr-x---, 1 d/e 1 -rw-r-----"
	two, three := strings.NewReplacer("1 ", "2 ").Replace(one), strings.NewReplacer("1 ", "3 ").Replace(one)
	unknown := "1 a 1 ----------, 1 b 1 ----------, 1 c 1 ----------, 1 d/e 1 ----------"
	for name, c := range map[string]struct {
		from   *packs
		wanted api.Wanted
		limit  int
		want   string
		more   bool
		err    error
	}{
		"all":                  {p, api.Wanted{Rank: -1}, 99, one + ", " + two + ", " + three, false, nil},
		"in another order":     {swapped, api.Wanted{Rank: -1}, 99, one + ", " + two + ", " + three, false, nil},
		"as many as there are": {p, api.Wanted{Rank: -1}, 12, one + ", " + two + ", " + three, false, nil},
		"the first":            {p, api.Wanted{Rank: -1}, 5, "", true, nil},
		"in the midst of one":  {p, api.Wanted{Rank: -1}, 2, "", true, nil},
		"at its end":           {p, api.Wanted{Rank: -1}, 4, one, true, nil},
		"of one":               {p, api.Wanted{Rank: 2}, 99, two, false, nil},
		"by pattern":           {p, api.Wanted{Rank: -1, Only: []string{"d", "b"}}, 3, "", true, nil},
		"it breaks":            {cut, api.Wanted{Rank: -1}, 99, unknown, false, cut.err},
		"one is cut short":     {broken, api.Wanted{Rank: -1}, 99, unknown + ", " + two + ", " + three, false, jobs.ErrDamaged},
		"much of all":          {large, api.Wanted{Rank: -1}, 99, "1 a 1 -rw-r--r--", true, nil},
		"much of one":          {large, api.Wanted{Rank: 2}, 99, "", false, transfer.ErrPack},
	} {
		st := arrayStatus(".")
		list, more, err := api.TaskFiles(t.Context(), c.from, &st, c.wanted, c.limit)
		var got []string
		for _, f := range list {
			got = append(got, fmt.Sprint(f.Task, " ", f.Path, " ", f.Size, " ", f.Mode))
		}
		if len(got) == c.limit && c.want == "" { // the disk decides which of a task are the first
			for i, f := range got {
				if of := strings.Split([]string{one, two, three}[list[i].Task-1], ", "); !slices.Contains(of, f) || i < 4 && list[i].Task == 2 && c.limit == 5 {
					t.Errorf("%s: %s at %d", name, f, i)
				}
			}
			got = nil
		}
		if text := strings.Join(got, ", "); text != c.want || more != c.more || !errors.Is(err, c.err) {
			t.Errorf("%s:\n%s, %t, %v\nwant\n%s, %t, %v", name, text, more, err, c.want, c.more, c.err)
		}
	}
	st, few := arrayStatus("."), &counted{packs: p}
	if _, _, err := api.TaskFiles(t.Context(), few, &st, api.Wanted{Rank: -1}, 2); err != nil || few.given > len(p.pieces)/3+1 {
		t.Errorf("two files of the first task took %d pieces of %d, %v", few.given, len(p.pieces), err)
	}
}
