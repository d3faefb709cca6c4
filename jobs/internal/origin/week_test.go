package origin_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/journal"
)

// folder is a journal of which nothing is in memory: a file for each key. The journal under it
// has no entries, and calls done functions in order.
type folder struct {
	*journal.Memory
	t   *testing.T
	dir string
}

func (f *folder) file(key string) string { return filepath.Join(f.dir, key) }

func (f *folder) Append(entries []journal.Entry, done func(error)) {
	for _, e := range entries {
		file, err := os.OpenFile(f.file(e.Key), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = file.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(e.Data))), e.Data...))
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			f.t.Error(err)
		}
	}
	f.Memory.Append(nil, done)
}

func (f *folder) Delete(key string, done func(error)) {
	if err := os.Remove(f.file(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		f.t.Error(err)
	}
	f.Memory.Append(nil, done)
}

func (f *folder) Replace(e journal.Entry, done func(error)) {
	f.Delete(e.Key, nil)
	f.Append([]journal.Entry{e}, done)
}

func (f *folder) Read(key string) (list []journal.Entry, err error) {
	b, err := os.ReadFile(f.file(key))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for len(b) > 0 {
		n := 4 + binary.BigEndian.Uint32(b)
		list = append(list, journal.Entry{Key: key, Data: b[4:n]})
		b = b[n:]
	}
	return list, nil
}

func (f *folder) Load(each func(journal.Entry) error) error {
	dir, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(100)
		for _, name := range names {
			list, err := f.Read(name)
			if err != nil {
				return err
			}
			for _, e := range list {
				if err := each(e); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A week of small jobs, some of them by the hundred, some with the key of a script that
// submits again what it has submitted: after its first day the origin's memory does not grow,
// and the first job is as well known as the last one.
func TestMemoryOfAWeek(t *testing.T) {
	const days, burst = 7, 250
	perDay := seeds.Fewer(4, 2) * burst
	atHome(t, func(t *testing.T, h *home) {
		h.stop()
		h.wrap = func(m *journal.Memory) journal.Journal { return &folder{Memory: m, t: t, dir: h.t.TempDir()} }
		log := h.wrap(h.log)
		h.wrap = func(m *journal.Memory) journal.Journal { log.(*folder).Memory = m; return log }
		h.start()
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		spec := func(day, i int) jobs.Spec {
			spec := jobs.Spec{Name: fmt.Sprintf("day%d-%d", day, i), Args: []string{"fail", "0"}, Key: fmt.Sprintf("%026d", day*perDay+i)}
			if i == 0 {
				spec.Args = []string{"say", "hello"}
			}
			return spec
		}
		ids := make([]jobs.ID, 0, burst)
		var first jobs.ID
		var after [days]int64
		begun := time.Now()
		for day := range days {
			for i := 0; i < perDay; i += burst {
				ids = ids[:0]
				for k := range burst {
					ids = append(ids, h.submit(spec(day, i+k)))
				}
				for _, id := range ids {
					if st := h.await(id); st.State != jobs.Completed {
						t.Fatalf("%s is %s: %s", id, st.State, st.Reason)
					}
				}
				if first == "" {
					first = ids[0]
				}
			}
			time.Sleep(time.Until(begun.Add(time.Duration(day+1) * 23 * time.Hour))) // none is forgotten yet
			after[day] = heap()
			t.Logf("after day %d: %d jobs, %.1f MB", day+1, h.Results().Jobs, float64(after[day])/1e6)
		}
		if grown := float64(after[days-1])/float64(after[0]) - 1; grown > 0.2 {
			t.Errorf("memory grew by %.0f %%", 100*grown)
		}
		for range 2 {
			if st, _, err := h.Status(first); err != nil || st.Spec.Name != "day0-0" || st.State != jobs.Completed || st.Brief || len(st.Workers) != 1 {
				t.Errorf("the first: %+v, %v", st, err)
			}
			if text := h.printed(first, 0); text != "hello\n" {
				t.Errorf("the first printed %q", text)
			}
			if again := h.submit(spec(0, 0)); again != first {
				t.Errorf("submitted once more it is %s, not %s", again, first)
			}
			other := spec(0, 0)
			other.Args = []string{"say", "bye"}
			other.Min, other.Max, other.Slots = 1, 1, 1
			if _, err := h.Submit(context.Background(), other); !errors.Is(err, jobs.ErrInvalid) {
				t.Errorf("another job has its key: %v", err)
			}
			if d := h.Select(jobs.Selection{Text: "day0-0", Limit: 10}); d.Found != 1 || len(d.Ended) != 1 || d.Ended[0].ID != first {
				t.Errorf("found %d: %+v", d.Found, d.Ended)
			}
			d := h.Select(jobs.Selection{Skip: days*perDay - 1, Limit: 10})
			if d.Found != days*perDay || len(d.Ended) != 1 || d.Ended[0].State != jobs.Completed || d.Ended[0].Name == "" || d.Ended[0].Size < int64(len("hello\n")) {
				t.Errorf("the last page has %+v of %d", d.Ended, d.Found)
			}
			if n := len(h.List(jobs.ListEnded)); n != min(jobs.ListEnded, days*perDay) {
				t.Errorf("lists %d", n)
			}
			h.stop()
			h.start()
		}
	})
}
