package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/transfer"
)

// maxPulled bounds the files of tasks that one Pull brings, in bytes.
const maxPulled = int64(transfer.MaxBlob) / 32 * transfer.ChunkSize

// taskFiles is the files of one task.
type taskFiles struct {
	task    int
	entries []transfer.Entry
}

// fetchTasks brings the files of all tasks of an array that have ended, or of
// one. They come as one stream, task by task, and stay in the heap. With an error
// that wraps jobs.ErrDamaged come those of the tasks whose files are whole.
func fetchTasks(ctx context.Context, s Service, st *jobs.Status, task int, heap *transfer.Heap) ([]taskFiles, error) {
	f := newTaskFetch(st, task, heap)
	err := f.run(ctx, s, st)
	return f.all, err
}

type taskFetch struct {
	numbers work.TaskNumbers
	globs   []string               // the job's patterns
	named   func(path string) bool // by them
	task    int                    // the only one, or -1
	put     transfer.Putter
	all     []taskFiles
	bytes   int64
	broken  error                                  // what was wrong first with what came
	each    func(task int, e transfer.Entry) error // is told of files, which are not in all then; nil = they are
	modes   func(*transfer.PackReader) error       // is told that all files of a task were; nil = nobody is
	most    int64                                  // of what is read; 0 = all
	read    int64

	now    int // the task that comes
	offset int64
	pipe   *io.PipeWriter // to who unpacks the task that comes; nil = none
	result chan error     // of that
}

func newTaskFetch(st *jobs.Status, task int, put transfer.Putter) *taskFetch {
	return &taskFetch{numbers: work.NumberTasks(st.Spec.Array.Tasks), globs: st.Spec.Globs(), named: st.Spec.WantsOfTask(), task: task, put: put, now: -1}
}

// run reads what the origin sends.
func (f *taskFetch) run(ctx context.Context, s outputTeller, st *jobs.Status) error {
	err := s.Output(ctx, string(st.ID), OutputQuery{Rank: f.task, Files: true}, f.receive)
	if errors.Is(err, jobs.ErrDamaged) {
		f.finish(nil) // all that is left was told
	} else {
		f.finish(err)
	}
	if errors.Is(err, ErrEnough) || errors.Is(f.broken, ErrEnough) {
		return ErrEnough
	}
	return cmp.Or(err, f.broken) // the former knows why
}

// receive takes the next bytes of a task's files.
func (f *taskFetch) receive(o jobs.Output) error {
	if _, ok := f.numbers.Place(o.Rank); !ok || f.task >= 0 && o.Rank != f.task {
		return fmt.Errorf("%w: the node sent files of task %d, which were not asked for", ErrRefused, o.Rank)
	}
	if f.now != o.Rank {
		if f.finish(nil); errors.Is(f.broken, ErrEnough) {
			return ErrEnough
		}
	}
	if f.read += int64(len(o.Data)); f.most > 0 && f.read > f.most {
		return ErrEnough
	}
	if f.now != o.Rank {
		r, w := io.Pipe()
		f.all = append(f.all, taskFiles{task: o.Rank})
		f.now, f.offset, f.pipe, f.result = o.Rank, 0, w, make(chan error, 1)
		go func() {
			err := f.unpack(&f.all[len(f.all)-1], r)
			r.CloseWithError(err)
			f.result <- err
		}()
	}
	if o.Offset == f.offset && f.pipe != nil {
		f.offset += int64(len(o.Data))
		if _, err := f.pipe.Write(o.Data); err == nil {
			return nil
		}
	}
	// The disk there lost what was before, or it is no pack: what Output says in
	// the end tells more.
	f.finish(fmt.Errorf("%w: they go on at byte %d, want %d", codec.ErrMalformed, o.Offset, f.offset))
	if errors.Is(f.broken, ErrEnough) {
		return ErrEnough
	}
	return nil
}

// finish waits for the files of the task that came; err reports why they are not
// all there.
func (f *taskFetch) finish(err error) {
	if f.pipe == nil {
		return
	}
	f.pipe.CloseWithError(err) // nil: the end
	f.pipe = nil
	if err := <-f.result; err != nil {
		f.all = f.all[:len(f.all)-1]
		f.broken = cmp.Or(f.broken, fmt.Errorf("files of task %d: %w", f.now, err))
	}
}

func (f *taskFetch) unpack(t *taskFiles, r io.Reader) error {
	for pack := transfer.NewPackReader(r); ; {
		e, err := pack.Head() // what is refused is not kept
		if errors.Is(err, io.EOF) {
			if f.modes != nil {
				return f.modes(pack)
			}
			pack.Modes(t.entries)
			t.entries = slices.DeleteFunc(t.entries, func(e transfer.Entry) bool { return !f.named(e.Path) })
			return nil
		}
		if err != nil {
			return err
		}
		if !f.named(e.Path) && !transfer.MatchedBefore(f.globs, e.Path) {
			return fmt.Errorf("%w: its node sent %.80q, which no output pattern of the job names", ErrRefused, e.Path)
		}
		if f.bytes += e.Size; f.bytes > maxPulled {
			return fmt.Errorf("more than %d bytes with those before: fetch the tasks one by one, as JOB:%d", maxPulled, t.task)
		}
		if f.named(e.Path) {
			if e, err = pack.Chunks(f.put); err != nil {
				return err
			}
		}
		if f.each == nil {
			t.entries = append(t.entries, e)
		} else if err := f.each(t.task, e); err != nil {
			return err
		}
	}
}

// placeTasks decides which file of a task goes where. It keeps its name in a
// directory of its task's own (%t), of one task alone, and where it bears the
// task's number in place of %t in a pattern. Else it is NAME.TASK if a pattern
// without wildcards names it, or if several tasks made one of that name.
func placeTasks(spec *jobs.Spec, all []taskFiles, want Wanted) (layout []placed, err error) {
	if strings.Contains(want.Into, "%t") {
		for _, t := range all {
			m, err := transfer.NewManifest(t.entries)
			if err != nil {
				return nil, fmt.Errorf("files of task %d: %w", t.task, err)
			}
			layout = append(layout, placed{dir: strings.ReplaceAll(want.Into, "%t", strconv.Itoa(t.task)), tree: m})
		}
		return layout, nil
	}
	makers := map[string]int{} // of each name, how many
	for _, t := range all {
		for _, e := range t.entries {
			makers[e.Path]++
		}
	}
	var entries []transfer.Entry
	taken := map[string]bool{}
	for _, t := range all {
		suffix := "." + strconv.Itoa(t.task)
		for _, e := range t.entries {
			if e.Dir {
				if !taken[e.Path] {
					entries = append(entries, e)
				}
				taken[e.Path] = true
				continue
			}
			id, bears := spec.TaskOf(e.Path)
			if want.Rank < 0 && !(bears && id == t.task) && (makers[e.Path] > 1 || spec.NamesOutput(e.Path)) {
				e.Path += suffix
			}
			for taken[e.Path] {
				e.Path += suffix
			}
			taken[e.Path] = true
			entries = append(entries, e)
		}
	}
	m, err := transfer.NewManifest(entries)
	if err != nil {
		return nil, fmt.Errorf("%w: fetch the tasks into directories of their own, as with --into 'out/%%t'", err)
	}
	return []placed{{dir: want.Into, tree: m}}, nil
}

// heapFor makes a place for what is fetched, near to where it goes, which has to
// have room for as much: in the deepest directory that is there and can be
// written to. If there is none it is where temporary files are.
func heapFor(into string) (*transfer.Heap, error) {
	dir, _, marked := strings.Cut(into, "%")
	if marked {
		dir = filepath.Dir(dir + "x") // part of a name names no directory
	}
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		heap, err := transfer.NewHeap(dir)
		if err == nil {
			return heap, nil
		}
		if dir == filepath.Dir(dir) {
			return transfer.NewHeap("")
		}
	}
}
