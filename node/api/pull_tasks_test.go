package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

// packs is a service that gives out files of tasks.
type packs struct {
	*apitest.Fake
	pieces []jobs.Output
	err    error // at the end
	hangs  bool  // instead of the end
}

func (p *packs) Output(ctx context.Context, _ string, q api.OutputQuery, out func(jobs.Output) error) error {
	for _, o := range p.pieces {
		if q.Rank >= 0 && o.Rank != q.Rank {
			continue
		}
		if err := out(o); err != nil {
			return err
		}
	}
	if p.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return p.err
}

// add adds the files of a task, cut into pieces.
func (p *packs) add(t *testing.T, task int, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	p.addDir(t, task, dir)
}

// addDir adds what is in a directory as the files of a task.
func (p *packs) addDir(t *testing.T, task int, dir string) {
	t.Helper()
	pack, _, err := transfer.Gather(t.Context(), dir, []string{".", ".*", "**/.*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer pack.Close()
	var b bytes.Buffer
	if err := pack.Write(bufio.NewWriter(&b)); err != nil {
		t.Fatal(err)
	}
	for at := 0; b.Len() > 0; {
		data := bytes.Clone(b.Next(7))
		p.pieces = append(p.pieces, jobs.Output{Rank: task, Attempt: 1, Stream: work.Files, Offset: int64(at), Data: data})
		at += len(data)
	}
}

func arrayStatus(outputs ...string) jobs.Status {
	return jobs.Status{ID: "k7f3q@zbcdf", State: jobs.Completed, Spec: jobs.Spec{Outputs: outputs, Array: &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: 40, Step: 1}}}}}
}

// filesBelow returns what is in the files below a directory, by name.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.Walk(dir, func(at string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(at)
		name, _ := filepath.Rel(dir, at)
		files[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPullTasks(t *testing.T) {
	log := map[int]map[string]string{1: {"log": "one"}, 12: {"log": "two"}, 3: {"log": "one"}}
	for name, c := range map[string]struct {
		tasks   map[int]map[string]string
		outputs string
		rank    int
		into    string
		want    map[string]string
	}{
		"one name":                           {log, "log", -1, "", map[string]string{"log.1": "one", "log.12": "two", "log.3": "one"}},
		"one task has it":                    {map[int]map[string]string{5: {"log": "x"}}, "log", -1, "", map[string]string{"log.5": "x"}},
		"directories":                        {log, "log", -1, "res/%t/x", map[string]string{"res/1/x/log": "one", "res/12/x/log": "two", "res/3/x/log": "one"}},
		"one task":                           {log, "log", 12, "", map[string]string{"log": "two"}},
		"by wildcard":                        {map[int]map[string]string{1: {"out-a": "a", "out-x": "x1"}, 2: {"out-b": "b", "out-x": "x2"}}, "out-*", -1, "", map[string]string{"out-a": "a", "out-b": "b", "out-x.1": "x1", "out-x.2": "x2"}},
		"by number":                          {map[int]map[string]string{1: {"o-1": "a"}, 2: {"o-02": "b", "o-1": "c"}}, "o-%t", -1, "", map[string]string{"o-1": "a", "o-02": "b", "o-1.2": "c"}},
		"file where others have a directory": {map[int]map[string]string{1: {"d": "f"}, 2: {"d/e": "g"}}, "d", -1, "", map[string]string{"d.1": "f", "d/e.2": "g"}},
		"names that look alike":              {map[int]map[string]string{7: {"o": "a"}, 3: {"o": "b", "o.7": "c"}}, "o*", -1, "", map[string]string{"o.7.7": "a", "o.3": "b", "o.7": "c"}},
	} {
		for _, force := range []bool{false, true} {
			p := &packs{Fake: apitest.New()}
			for _, task := range []int{1, 2, 12, 3, 5, 7} {
				if f := c.tasks[task]; f != nil {
					p.add(t, task, f)
				}
			}
			dir := t.TempDir()
			got, err := api.Pull(t.Context(), overSocket(t, p), arrayStatus(c.outputs), api.Wanted{Rank: c.rank, Into: filepath.Join(dir, c.into), Force: force})
			if err != nil || got.Files != len(c.want) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if have := filesBelow(t, dir); !reflect.DeepEqual(have, c.want) {
				t.Errorf("%s: got %q, want %q", name, have, c.want)
			}
		}
	}
}

// Without patterns files of tasks are those that a program leaves for people.
func TestPullTasksThatNobodyHasAskedFor(t *testing.T) {
	p, dir := &packs{Fake: apitest.New()}, t.TempDir()
	p.add(t, 2, map[string]string{"result": "two"})
	p.add(t, 1, map[string]string{"result": "one", "own": "o"})
	if _, err := api.Pull(t.Context(), overSocket(t, p), arrayStatus(), api.Wanted{Rank: -1, Into: dir}); err != nil {
		t.Error(err)
	}
	if have, want := filesBelow(t, dir), (map[string]string{"result.1": "one", "result.2": "two", "own": "o"}); !reflect.DeepEqual(have, want) {
		t.Errorf("got %q, want %q", have, want)
	}
	p.add(t, 3, map[string]string{".bashrc": "evil"})
	if _, err := api.Pull(t.Context(), overSocket(t, p), arrayStatus(), api.Wanted{Rank: -1, Into: t.TempDir()}); !errors.Is(err, api.ErrRefused) {
		t.Errorf("a hidden file: %v", err)
	}
}

// Hidden files that a node of before has sent for a wildcard are passed over.
func TestPullTasksLeavesHiddenFiles(t *testing.T) {
	p, dir, st := &packs{Fake: apitest.New()}, t.TempDir(), arrayStatus()
	p.add(t, 1, map[string]string{".bashrc": "evil", "a": "one", "d/.x": "evil"})
	st.Spec.Outputs = []string{"*"}
	if _, err := api.Pull(t.Context(), overSocket(t, p), st, api.Wanted{Rank: -1, Into: dir}); err != nil {
		t.Error(err)
	}
	if have, want := filesBelow(t, dir), (map[string]string{"a": "one"}); !reflect.DeepEqual(have, want) {
		t.Errorf("got %q, want %q", have, want)
	}
	list, _, err := api.TaskFiles(t.Context(), overSocket(t, p), &st, api.Wanted{Rank: -1}, 10)
	if err != nil || len(list) != 1 || list[0].Path != "a" || list[0].Mode == 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestPullTasksWritesAllOrNothing(t *testing.T) {
	large := strings.Repeat("x", 3*transfer.ChunkSize)
	for name, c := range map[string]struct {
		change func(*packs)
		want   error
	}{
		"other task":    {func(p *packs) { p.pieces[len(p.pieces)-1].Rank = 41 }, api.ErrRefused},
		"other name":    {func(p *packs) { p.add(t, 9, map[string]string{".bashrc": "evil"}) }, api.ErrRefused},
		"other stream":  {func(p *packs) { p.pieces[0].Stream = work.Stdout }, nil},
		"piece is lost": {func(p *packs) { p.pieces = append(p.pieces[:3], p.pieces[4:]...) }, nil},
		"no pack":       {func(p *packs) { p.pieces[2].Data = []byte("garbage") }, nil},
		"breaks off":    {func(p *packs) { p.err = api.ErrUnavailable }, api.ErrUnavailable},
		"half a file":   {func(p *packs) { p.pieces = p.pieces[:len(p.pieces)-1] }, nil},
	} {
		p := &packs{Fake: apitest.New()}
		for task := 1; task < 4; task++ {
			p.add(t, task, map[string]string{"log": "log of " + strconv.Itoa(task), "log2": large[:task*10]})
		}
		c.change(p)
		dir := t.TempDir()
		_, err := api.Pull(t.Context(), overSocket(t, p), arrayStatus("log*"), api.Wanted{Rank: -1, Into: dir})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if have := filesBelow(t, dir); len(have) > 0 {
			t.Errorf("%s: wrote %q", name, have)
		}
	}
	p := &packs{Fake: apitest.New(), err: jobs.ErrDamaged}
	for task := range 3 {
		p.add(t, task+1, map[string]string{"log": "log"})
	}
	p.pieces = append(p.pieces[:1], p.pieces[2:]...)
	dir := t.TempDir()
	got, err := api.Pull(t.Context(), overSocket(t, p), arrayStatus("log"), api.Wanted{Rank: -1, Into: dir})
	if have, want := filesBelow(t, dir), (map[string]string{"log.2": "log", "log.3": "log"}); !errors.Is(err, jobs.ErrDamaged) || got.Files != 2 || !reflect.DeepEqual(have, want) {
		t.Errorf("a disk that lost something: %+v, %v, %q, want %q", got, err, have, want)
	}
	p = &packs{Fake: apitest.New(), hangs: true}
	p.add(t, 1, map[string]string{"log": large})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := api.Pull(ctx, p, arrayStatus("log"), api.Wanted{Rank: -1, Into: t.TempDir()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a node that hangs: %v", err)
	}
}

// watched is a service that tells where the heap lies that is filled from it.
type watched struct {
	*packs
	heap string
}

func (w *watched) Output(ctx context.Context, job string, q api.OutputQuery, f func(jobs.Output) error) error {
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, fd := range open {
		if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(filepath.Base(to), ".zorilla-") {
			w.heap = filepath.Dir(to)
		}
	}
	return w.packs.Output(ctx, job, q, f)
}

// Where temporary files are there may be no room for what is fetched.
func TestTaskFilesWaitOnTheDiskThatTheyGoTo(t *testing.T) {
	dir := t.TempDir()
	temp := filepath.Join(dir, "temp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	for into, want := range map[string]string{"": dir, "new/deep": dir, "%t": dir, "later/res-%t/out": dir} {
		if !filepath.IsAbs(into) {
			into = filepath.Join(dir, into)
		}
		w := &watched{packs: &packs{Fake: apitest.New()}}
		w.add(t, 1, map[string]string{"log": "log"})
		_, err := api.Pull(t.Context(), w, arrayStatus("log"), api.Wanted{Rank: -1, Into: into, Force: true})
		if w.heap != want || err != nil {
			t.Errorf("files for %s wait in %s, want %s: %v", into, w.heap, want, err)
		}
	}
}
