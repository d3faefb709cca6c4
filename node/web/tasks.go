package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

const (
	mapCells    = 400 // of the picture of an array
	mapColumns  = 80
	maxTaskRows = 50 // failed tasks that are listed at once
)

// tasksView is how the tasks of an array stand, in little however many there
// are: outlines of the cells of each kind, and a page of those that have failed.
type tasksView struct {
	None   bool      `json:"none"`
	Sum    string    `json:"sum"`
	Waits  string    `json:"waits"`
	Partly string    `json:"partly"`
	Runs   string    `json:"runs"`
	Done   string    `json:"done"`
	Failed string    `json:"failed"`
	Rows   []taskRow `json:"rows"`
	First  string    `json:"first"` // links to other pages; "" = there is none
	Next   string    `json:"next"`
}

type taskRow struct {
	Key   string `json:"key"` // the task's number
	Href  string `json:"href"`
	Exit  string `json:"exit"`
	Tries string `json:"tries"`
	Node  string `json:"node"`
	Took  string `json:"took"`
}

// failedFrom reads from which place on a request wants failed tasks.
func failedFrom(r *http.Request) int {
	n, err := strconv.Atoi(r.URL.Query().Get("failed"))
	if err != nil || n < 0 || n > jobs.MaxTasks {
		return 0
	}
	return n
}

// tasks describes the tasks of an array.
func (s *views) tasks(ctx context.Context, st *jobs.Status, from int) tasksView {
	if st.Array == nil {
		return tasksView{None: true}
	}
	a := st.Array
	v := tasksView{Sum: fmt.Sprintf("%s of %s done, %s failed, %s running",
		count(int64(a.Done)), count(int64(a.Tasks)), count(int64(a.Failed)), count(int64(a.Running)))}
	page, err := s.service.Tasks(ctx, string(st.ID), jobs.TaskQuery{From: from, Limit: maxTaskRows, Failed: true, Cells: mapCells})
	if err != nil { // the origin is away: the rest is still of use
		return v
	}
	paths := map[rune]*string{
		jobs.CellWaits: &v.Waits, jobs.CellPartly: &v.Partly, jobs.CellRuns: &v.Runs, jobs.CellDone: &v.Done, jobs.CellFailed: &v.Failed,
	}
	for letter, path := range paths {
		*path = outline(page.Picture, byte(letter))
	}
	for _, t := range page.Tasks[:min(len(page.Tasks), maxTaskRows)] {
		id := strconv.Itoa(t.ID)
		v.Rows = append(v.Rows, taskRow{Key: id, Href: "?rank=" + id, Exit: strconv.Itoa(t.Code), Tries: strconv.Itoa(t.Tries),
			Node: label(t.Node.Short(), 5), Took: span(time.Duration(t.Took))})
	}
	if from > 0 {
		v.First = "?failed=0"
	}
	if page.Next > 0 {
		v.Next = "?failed=" + strconv.Itoa(page.Next)
	}
	return v
}

// outline draws the cells of one letter, those that follow each other in a row
// as one.
func outline(picture string, letter byte) string {
	var b strings.Builder
	picture = picture[:min(len(picture), mapCells)]
	for row := 0; row*mapColumns < len(picture); row++ {
		line := picture[row*mapColumns : min(len(picture), (row+1)*mapColumns)]
		for x := 0; x < len(line); x++ {
			if line[x] != letter {
				continue
			}
			first := x
			for x+1 < len(line) && line[x+1] == letter {
				x++
			}
			width := (x-first+1)*10 - 1
			fmt.Fprintf(&b, "M%d %dh%dv8h-%dz", first*10, row*10, width, width)
		}
	}
	return b.String()
}

// Limits of the files of tasks, which are told as a whole.
const (
	maxSearched  = 1 << 30 // bytes of the files of a task among which one is looked for
	maxShelves   = 1 << 30 // bytes of files that are being sent, all together
	maxTaskLists = 20      // that are remembered
)

// taskFiles is the beginning of the list of the files that tasks have made.
type taskFiles struct {
	ended int       // tasks, when it was made
	at    time.Time // when that was
	rows  []fileRow
	bytes int64
	more  bool // than is in it
	err   error
}

// taskFiles lists the files that the tasks of an array have made. A list is made again when
// more tasks have ended, but seldom; one that is full stays, as files come in the order in which
// tasks ended.
func (s *views) taskFiles(ctx context.Context, st *jobs.Status) filesView {
	v := filesView{None: !st.HasFiles(), Of: "Task"}
	switch {
	case v.None:
		return v
	case !st.Forgotten.IsZero():
		v.Note = noFiles(st)
		return v
	}
	ended := st.Array.Done + st.Array.Failed
	s.trees.mu.Lock()
	t, ok := s.trees.tasks[st.ID]
	s.trees.mu.Unlock()
	if fresh := time.Since(t.at) < listAgain; !ok || t.err != nil && !fresh || t.ended != ended && !t.more && (!fresh || st.State.Final()) {
		t = listTasks(ctx, s.service, st)
		t.ended, t.at = ended, time.Now()
		s.trees.remember(st.ID, t)
	}
	v.Rows = t.rows
	get := getFiles(st)
	switch {
	case t.more && len(t.rows) == 0:
		v.Note = fmt.Sprintf("They are not listed here, as the first is too large: %s fetches all.", get)
	case t.more:
		v.Sum, v.Note = "the first "+plural(len(t.rows), "file", "files"),
			fmt.Sprintf("More are not shown: %s fetches all, and those of one task with :TASK after that.", get)
	case len(t.rows) > 0:
		v.Sum = fmt.Sprintf("%s, %s", plural(len(t.rows), "file", "files"), units.Bytes(t.bytes))
	case t.err == nil:
		v.Note = noFiles(st)
	}
	if t.err != nil {
		v.Note = "Not all can be read at the moment. " + v.Note
	}
	return v
}

// remember remembers a list of files of tasks.
func (c *trees) remember(id jobs.ID, t taskFiles) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tasks == nil {
		c.tasks = map[jobs.ID]taskFiles{}
	}
	makeRoom(c.tasks, maxTaskLists)
	c.tasks[id] = t
}

// listTasks makes a list of files of tasks.
func listTasks(ctx context.Context, s Service, st *jobs.Status) (t taskFiles) {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	list, more, err := api.TaskFiles(ctx, s, st, api.Wanted{Rank: -1}, maxFileRows)
	for _, f := range list {
		t.rows, t.bytes = append(t.rows, fileRowOf(st.ID, len(t.rows), f.Task, f.Path, f.Size)), t.bytes+f.Size
	}
	t.more, t.err = more, err
	return t
}

// shelves bound what is kept of files of tasks while they are sent, all together: temporary
// files may be in memory.
type shelves struct {
	most int64
	kept atomic.Int64
}

// errFull: too much is being sent.
var errFull = errors.New("too many files of tasks are being sent")

// shelf keeps what one file consists of, and is for one goroutine.
type shelf struct {
	of   *shelves
	heap *transfer.Heap // not embedded: what is put there must be counted
	kept int64
}

func (s *shelves) open() (*shelf, error) {
	heap, err := transfer.NewHeap("")
	if err != nil {
		return nil, err
	}
	return &shelf{of: s, heap: heap}, nil
}

// Put implements transfer.Putter.
func (s *shelf) Put(h transfer.Hash, data []byte) error {
	n := int64(len(data))
	if s.of.kept.Add(n) > s.of.most {
		s.of.kept.Add(-n)
		return errFull
	}
	s.kept += n
	return s.heap.Put(h, data)
}

// Get implements transfer.Getter.
func (s *shelf) Get(h transfer.Hash, buf []byte) ([]byte, error) { return s.heap.Get(h, buf) }

// empty makes room for the next file.
func (s *shelf) empty() error {
	s.of.kept.Add(-s.kept)
	s.kept = 0
	return s.heap.Empty()
}

// Close implements io.Closer.
func (s *shelf) Close() error { return errors.Join(s.empty(), s.heap.Close()) }

// taskFile finds a file of a task, which is on the shelf then, alone: those before it may be
// much larger than all that was read of them, since holes are not in it.
func taskFile(ctx context.Context, s Service, st *jobs.Status, task int, name string, to *shelf) (found transfer.Entry, err error) {
	here := false
	err = api.WalkTaskFiles(ctx, s, st, task, maxSearched, to, func(_ int, e transfer.Entry) error {
		if e.Path == name && !e.Dir && e.Link == "" {
			found, here = e, true
			return api.ErrEnough
		}
		return to.empty()
	})
	switch {
	case here:
		return found, nil
	case err == nil:
		err = errNoFile
	}
	return found, err
}
