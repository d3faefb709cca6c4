package web

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// packOf packs files as a task's worker does.
func packOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pack, _, err := transfer.Gather(t.Context(), dir, []string{"out*", "d"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer pack.Close()
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	if err := pack.Write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// made is an array of so many tasks that are done, without files so far.
func made(f *fake, tasks int) jobs.Status {
	st := sample("a2b3c@zaaaa", jobs.Completed, f.nodes, 2, time.Minute, "./simulate")
	st.Spec.Outputs = []string{"out*", "d"}
	st.Spec.Min, st.Spec.Array = 1, &jobs.Array{Tasks: []work.TaskIDs{{First: 1, Last: tasks, Step: 1}}}
	st.Array = &jobs.ArrayStatus{Tasks: tasks, Done: tasks}
	f.put(st)
	return st
}

// pack has a task leave a pack of files, in several pieces.
func (f *fake) pack(id jobs.ID, task int, pack []byte) {
	f.change(func() {
		j := f.jobs[id]
		for at := 0; at < len(pack); at += 1000 {
			j.output = append(j.output, jobs.Output{Rank: task, Attempt: 1, Stream: work.Files, Offset: int64(at), Data: pack[at:min(at+1000, len(pack))]})
		}
	})
}

// The files of tasks are listed with their sizes, and each can be saved; those of no job, and
// what is no name of one, cannot.
func TestFilesOfTasks(t *testing.T) {
	f := newFake(network(2))
	st := made(f, 12)
	large := strings.Repeat("0123456789abcdef", 1<<17) // more than a chunk
	f.pack(st.ID, 7, packOf(t, map[string]string{"out.bin": large, `out we"ird <b>;ü%2f.html`: "<script>alert(1)</script>"}))
	f.pack(st.ID, 3, packOf(t, map[string]string{"out.bin": "of task 3", "d/e/f": "deep", "out.empty": ""}))
	v := newPage(t, f).views.job(t.Context(), st, 0).Outputs
	if v.None || v.Of != "Task" || v.Sum != "5 files, 2 MiB" || v.Note != "" || len(v.Rows) != 5 {
		t.Fatalf("%+v", v)
	}
	srv := serve(t, f)
	want := map[string]string{"7 out.bin": large, `7 out we"ird <b>;ü%2f.html`: "<script>alert(1)</script>", "3 out.bin": "of task 3", "3 d/e/f": "deep", "3 out.empty": ""}
	for _, row := range v.Rows {
		res, body := ask(t, srv, "GET", row.Href, nil)
		text, ok := want[row.Rank+" "+row.Name]
		if !ok || res.StatusCode != 200 || body != text || res.Header.Get("Content-Type") != "application/octet-stream" || res.Header.Get("Content-Length") != fmt.Sprint(len(text)) || !strings.HasPrefix(res.Header.Get("Content-Disposition"), "attachment;") {
			t.Errorf("%s: %s, %d bytes, want %d, %v", row.Href, res.Status, len(body), len(text), res.Header)
		}
		if res, _ := ask(t, srv, "GET", row.Href, map[string]string{"Cookie": "none=1"}); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a cookie %s is sent: %s", row.Href, res.Status)
		}
		delete(want, row.Rank+" "+row.Name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", len(want))
	}
	for _, path := range []string{"3/out.none", "4/out.bin", "-1/out.bin", "0/out.bin", "13/out.bin", "3/d", "3/", "3/..%2f..%2fetc%2fpasswd", "99999999999999999999/out.bin"} {
		if res, body := ask(t, srv, "GET", "/jobs/a2b3c/files/"+path, nil); res.StatusCode == 200 || strings.Contains(body, "of task 3") || strings.Contains(body, "root:") {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	st.Forgotten = time.Now()
	f.put(st)
	if res, _ := ask(t, srv, "GET", "/jobs/a2b3c/files/3/out.bin", nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("what is forgotten is sent: %s", res.Status)
	}
	if v := newPage(t, f).views.job(t.Context(), st, 0).Outputs; len(v.Rows) > 0 || v.Note != "They are not kept any more." {
		t.Errorf("what is forgotten is listed: %+v", v)
	}
}

// Files that tasks left without a pattern are listed if some are kept.
func TestFilesOfTasksThatNobodyHasAskedFor(t *testing.T) {
	f := newFake(network(2))
	st := made(f, 12)
	st.Spec.Outputs = nil
	f.put(st)
	fetch := typed{"Fetch its files", "zorilla get " + st.ID.Short()}
	if v := newPage(t, f).views.job(t.Context(), st, 0); !v.Outputs.None || slices.Contains(commands(&st), fetch) {
		t.Errorf("of none there are %+v", v.Outputs)
	}
	st.Array.Filed = 1
	f.put(st)
	f.pack(st.ID, 7, packOf(t, map[string]string{"out.txt": "text"}))
	if v := newPage(t, f).views.job(t.Context(), st, 0).Outputs; v.None || len(v.Rows) != 1 || v.Rows[0].Name != "out.txt" || !slices.Contains(commands(&st), fetch) {
		t.Errorf("%+v", v)
	}
}

// However many files tasks have, and whatever is said to be some: the list is bounded.
func TestFilesOfManyTasks(t *testing.T) {
	f := newFake(network(2))
	st := made(f, 500)
	for task := range 300 {
		f.pack(st.ID, task+1, packOf(t, map[string]string{"out": "x"}))
	}
	v := newPage(t, f).views.job(t.Context(), st, 0).Outputs
	if v.Sum != "the first 200 files" || len(v.Rows) != maxFileRows || v.Note != "More are not shown: zorilla get a2b3c@zaaaa fetches all, and those of one task with :TASK after that." {
		t.Errorf("%d rows, %q, %q", len(v.Rows), v.Sum, v.Note)
	}
	f = newFake(network(2))
	st = made(f, 20)
	f.pack(st.ID, 1, packOf(t, map[string]string{"out": "x"}))
	f.pack(st.ID, 2, []byte("no pack"))
	if v := newPage(t, f).views.job(t.Context(), st, 0).Outputs; len(v.Rows) != 1 || !strings.HasPrefix(v.Note, "Not all can be read at the moment.") {
		t.Errorf("%+v", v)
	}
	f = newFake(network(2))
	st = made(f, 20)
	f.pack(st.ID, 99, packOf(t, map[string]string{"out": "x"}))
	f.pack(st.ID, 2, packOf(t, map[string]string{"out": "x"}))
	if v := newPage(t, f).views.job(t.Context(), st, 0).Outputs; !strings.HasPrefix(v.Note, "Not all can be read at the moment.") {
		t.Errorf("a task that there is not: %+v", v)
	}
}

// A list is made again when tasks have ended, but not at each end of one.
func TestFilesOfTasksAreListedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(network(2))
		st := made(f, 100)
		st.State, st.Array.Done = jobs.Running, 0
		f.put(st)
		views := newPage(t, f).views
		rows := func() int { return len(views.job(t.Context(), st, 0).Outputs.Rows) }
		if v := views.job(t.Context(), st, 0).Outputs; len(v.Rows) != 0 || v.Note != "They come here when tasks have ended." {
			t.Errorf("%+v", v)
		}
		end := func(task int) {
			f.pack(st.ID, task, packOf(t, map[string]string{"out": "x"}))
			array := *st.Array
			array.Done++
			st.Array = &array
		}
		end(1)
		if n := rows(); n != 0 {
			t.Errorf("%d rows at once", n)
		}
		time.Sleep(listAgain)
		if n := rows(); n != 1 {
			t.Errorf("%d rows later", n)
		}
		end(2)
		st.State = jobs.Completed
		if n := rows(); n != 2 {
			t.Errorf("%d rows at the end", n)
		}
	})
}

// What is kept of files of tasks while they are sent is bounded, and nothing is kept of those
// that nobody asked for.
func TestFilesOfTasksOnShelves(t *testing.T) {
	f := newFake(network(2))
	st := made(f, 2)
	files := map[string]string{}
	for i := range 4 {
		files[fmt.Sprint("out", i)] = strings.Repeat(fmt.Sprintf("%08d", i), 150_000)
	}
	f.pack(st.ID, 1, packOf(t, files))
	all := &shelves{most: 2_500_000}
	open := func() *shelf {
		s, err := all.open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	held := map[string]*shelf{}
	for _, name := range []string{"out0", "out1", "out2", "out3"} {
		s := open()
		e, err := taskFile(t.Context(), f, &st, 1, name, s)
		if len(held) == 2 {
			if !errors.Is(err, errFull) {
				t.Errorf("%s beside %d others: %v, %d bytes are kept", name, len(held), err, all.kept.Load())
			}
			s.Close()
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if data, readErr := e.Read(s, 0, nil); readErr != nil || !strings.HasPrefix(files[name], string(data)) {
			t.Errorf("%s: %v", name, readErr)
		}
		held[name] = s
	}
	if n := all.kept.Load(); n != 2_400_000 {
		t.Errorf("%d bytes are kept of two files", n)
	}
	for _, s := range held {
		s.Close()
	}
	if n := all.kept.Load(); n != 0 {
		t.Errorf("%d bytes are kept of none", n)
	}
}
