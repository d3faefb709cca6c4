package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"zorilla/internal/units"
	"zorilla/jobs"
	"zorilla/node/api"
	"zorilla/transfer"
)

// Limits of the lists of files, and of what is sent at once.
const (
	maxFileRows  = 200  // of a job's outputs, and of its inputs
	maxFileRanks = 200  // whose lists are looked at
	maxTrees     = 1000 // lists that are remembered
	maxDownloads = 16

	// Lists may be at an origin that is far or away: a page waits so long for them, and
	// asks again for one that did not come after so long.
	listWait  = 2 * time.Second
	listAgain = 10 * time.Second
)

// filesView is a job's output files, or its inputs.
type filesView struct {
	None bool      `json:"none"`
	Of   string    `json:"of"` // what made them, as the head of a column
	Rows []fileRow `json:"rows"`
	Sum  string    `json:"sum"`
	Note string    `json:"note"`
}

type fileRow struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	Rank string `json:"rank"`
	Size string `json:"size"`
	Href string `json:"href"` // "" = it is only named
}

// trees remembers the beginnings of lists of files, which never change.
type trees struct {
	mu    sync.Mutex // guards what follows
	rows  map[transfer.Hash]tree
	tasks map[jobs.ID]taskFiles
}

type tree struct {
	files []transfer.Entry // the first ones, without what they consist of
	count int
	bytes int64
	lost  time.Time // when it could not be got; zero = it is here
}

func (c *trees) get(h transfer.Hash, load func() (transfer.Manifest, error)) (tree, error) {
	c.mu.Lock()
	t, ok := c.rows[h]
	c.mu.Unlock()
	switch {
	case ok && t.lost.IsZero():
		return t, nil
	case ok && time.Since(t.lost) < listAgain:
		return t, errNoFile
	}
	t = tree{}
	m, err := load()
	if err != nil {
		t.lost = time.Now()
	}
	for _, e := range m.Entries {
		if e.Dir {
			continue
		}
		t.count++
		t.bytes += e.Size
		if len(t.files) < maxFileRows {
			t.files = append(t.files, transfer.Entry{Path: strings.Clone(e.Path), Size: e.Size, Link: e.Link})
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows == nil {
		c.rows = map[transfer.Hash]tree{}
	}
	makeRoom(c.rows, maxTrees)
	c.rows[h] = t
	return t, err
}

// makeRoom forgets any, until there is room for one more among so many.
func makeRoom[K comparable, V any](m map[K]V, most int) {
	for old := range m {
		if len(m) < most {
			return
		}
		delete(m, old)
	}
}

// chunks gets the chunks of a job's files.
func chunks(ctx context.Context, s Service, id jobs.ID) transfer.Getter {
	return transfer.GetterFunc(func(h transfer.Hash, _ []byte) ([]byte, error) { return s.Chunk(ctx, string(id), h) })
}

// outputs lists the files that the ranks of a job have made, which its origin keeps.
func (s *views) outputs(ctx context.Context, st *jobs.Status) filesView {
	v := filesView{None: !st.HasFiles(), Of: "Rank"}
	if st.Array != nil {
		return s.taskFiles(ctx, st)
	}
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	get := chunks(ctx, s.service, st.ID)
	files, bytes, unknown, left := 0, int64(0), 0, 0
	for i, o := range st.Outputs {
		files += o.Files
		bytes += o.Bytes
		if o.Manifest.IsZero() || o.Files == 0 || !st.Forgotten.IsZero() {
			continue
		}
		if i >= maxFileRanks || len(v.Rows) >= maxFileRows {
			left += o.Files
			continue
		}
		if ctx.Err() != nil {
			unknown++
			continue
		}
		t, err := s.trees.get(o.Manifest, func() (transfer.Manifest, error) { return api.OutputTree(get, &st.Spec, o) })
		if err != nil {
			unknown++
			continue
		}
		rows := t.files[:min(len(t.files), maxFileRows-len(v.Rows))]
		left += max(0, t.count-len(rows))
		for _, e := range rows {
			v.Rows = append(v.Rows, fileRowOf(st.ID, len(v.Rows), o.Rank, e.Path, e.Size))
		}
	}
	if files > 0 {
		v.Sum = fmt.Sprintf("%s, %s", plural(files, "file", "files"), units.Bytes(bytes))
	}
	v.Note = filesNote(st, files, left, unknown)
	return v
}

// fileRowOf is the row of a file that a rank or a task has made.
func fileRowOf(id jobs.ID, place, rank int, path string, size int64) fileRow {
	of := strconv.Itoa(rank)
	return fileRow{Key: strconv.Itoa(place), Name: label(path, textLimit), Rank: of, Size: units.Bytes(size),
		Href: fmt.Sprintf("/jobs/%s/files/%s/%s", url.PathEscape(string(id)), of, escapePath(path))}
}

func filesNote(st *jobs.Status, files, left, unknown int) string {
	switch {
	case !st.Forgotten.IsZero():
	case unknown > 0:
		return fmt.Sprintf("The list of %s cannot be read at the moment.", plural(unknown, "rank", "ranks"))
	case left > 0:
		return fmt.Sprintf("%s not shown: %s fetches all.", plural(left, "more file is", "more files are"), getFiles(st))
	case files > 0:
		return ""
	}
	return noFiles(st)
}

// noFiles reports why a job has no output files.
func noFiles(st *jobs.Status) string {
	who := "workers"
	if st.Array != nil {
		who = "tasks"
	}
	switch {
	case !st.Forgotten.IsZero():
		return "They are not kept any more."
	case !st.State.Final():
		return "They come here when " + who + " have ended."
	}
	return "There are none: see the warnings."
}

// getFiles is the command that fetches the output files of a job.
func getFiles(st *jobs.Status) string { return "zorilla get " + label(st.ID.Short(), nameLimit) }

// escapePath writes a path for an address.
func escapePath(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

// downloads sends output files to browsers.
type downloads struct {
	service Service
	pages   *pages
	open    chan struct{} // one place for each
	shelves shelves
}

// errNoFile: a job has no output file of that name, or not any more.
var errNoFile = errors.New("no such file")

// find looks a file of a rank up, or of a task. Who calls it closes what it returns, if that is
// not nil.
func (d *downloads) find(ctx context.Context, id, rank, name string) (e transfer.Entry, get transfer.Getter, closing io.Closer, err error) {
	n, err := strconv.Atoi(rank)
	if err != nil || n < 0 || !plausible(id) {
		return e, nil, nil, errNoFile
	}
	st, err := d.service.Job(ctx, id)
	if err != nil {
		return e, nil, nil, err
	}
	if !st.Forgotten.IsZero() {
		return e, nil, nil, errNoFile
	}
	if st.Array != nil {
		to, err := d.shelves.open()
		if err != nil {
			return e, nil, nil, err
		}
		e, err = taskFile(ctx, d.service, &st, n, name, to)
		return e, to, to, err
	}
	e, get, err = d.ofRank(ctx, &st, n, name)
	return e, get, nil, err
}

func (d *downloads) ofRank(ctx context.Context, st *jobs.Status, n int, name string) (transfer.Entry, transfer.Getter, error) {
	get := chunks(ctx, d.service, st.ID)
	for _, o := range st.Outputs {
		if o.Rank != n || o.Manifest.IsZero() {
			continue
		}
		m, err := api.OutputTree(get, &st.Spec, o)
		if err != nil {
			return transfer.Entry{}, nil, err
		}
		for _, e := range m.Entries {
			if e.Path == name && !e.Dir && e.Link == "" {
				return e, get, nil
			}
		}
	}
	return transfer.Entry{}, nil, errNoFile
}

// serve sends one file, always as something to be saved: no browser shows it or runs what
// is in it.
func (d *downloads) serve(w http.ResponseWriter, r *http.Request) {
	if !d.enter(w) {
		return
	}
	defer d.leave()
	e, get, closing, err := d.find(r.Context(), r.PathValue("id"), r.PathValue("rank"), r.PathValue("path"))
	if closing != nil {
		defer closing.Close()
	}
	if errors.Is(err, api.ErrEnough) {
		d.pages.message(w, http.StatusRequestEntityTooLarge, "Too much for a page",
			"The files of this task are more than "+units.Bytes(maxSearched)+": fetch them with zorilla get, and :TASK after the job.")
		return
	}
	if errors.Is(err, errFull) {
		http.Error(w, errFull.Error()+": try again later, or fetch them with zorilla get", http.StatusServiceUnavailable)
		return
	}
	if errors.Is(err, errNoFile) {
		d.pages.message(w, http.StatusNotFound, "No such file", "The job has no output file of that name, or it is not kept any more.")
		return
	}
	if err != nil {
		d.pages.fail(w, err)
		return
	}
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", disposition(e.Path))
	head.Set("Content-Length", strconv.FormatInt(e.Size, 10))
	if r.Method == http.MethodHead {
		return
	}
	rc := http.NewResponseController(w)
	defer rc.SetWriteDeadline(time.Time{}) // the connection may have more to do
	for i := range e.Chunks {
		data, err := e.Read(get, i, nil)
		if err == nil {
			_ = rc.SetWriteDeadline(time.Now().Add(writeLimit)) // what has none cannot get stuck
			_, err = w.Write(data)
		}
		if err != nil {
			d.pages.log.Debug().Err(err).Msg("page: a file cannot be sent")
			return // it is less than announced: the browser takes it for what it is
		}
	}
}

// log sends what ranks have written so far, as it is.
func (d *downloads) log(w http.ResponseWriter, r *http.Request) {
	want, err := readOutputQuery(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id := r.PathValue("id")
	if !plausible(id) {
		d.pages.fail(w, api.ErrNotFound)
		return
	}
	if !d.enter(w) {
		return
	}
	defer d.leave()
	st, err := d.service.Job(r.Context(), id)
	if err == nil {
		err = st.Gone()
	}
	if err != nil {
		d.pages.fail(w, err)
		return
	}
	name := string(st.ID[:min(len(st.ID), 5)])
	if want.rank >= 0 {
		name += fmt.Sprintf("-%d", want.rank)
	}
	if !want.both {
		name += "-" + r.URL.Query().Get("stream")
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", disposition(name+".log"))
	if r.Method == http.MethodHead {
		return
	}
	rc := http.NewResponseController(w)
	defer rc.SetWriteDeadline(time.Time{}) // the connection may have more to do
	err = d.service.Output(r.Context(), id, api.OutputQuery{Rank: want.rank}, func(o jobs.Output) error {
		if !want.has(o.Stream) {
			return nil
		}
		_ = rc.SetWriteDeadline(time.Now().Add(writeLimit))
		_, err := w.Write(o.Data)
		return err
	})
	if err != nil {
		d.pages.log.Debug().Err(err).Msg("page: output cannot be sent")
		panic(http.ErrAbortHandler) // else the browser took what it has for all
	}
}

// enter takes a place, or says that there is none.
func (d *downloads) enter(w http.ResponseWriter) bool {
	select {
	case d.open <- struct{}{}:
		return true
	default:
		http.Error(w, fmt.Sprintf("%d files are being sent already: try again later", maxDownloads), http.StatusServiceUnavailable)
		return false
	}
}

func (d *downloads) leave() { <-d.open }

// disposition names the file that a browser saves.
func disposition(name string) string {
	d := mime.FormatMediaType("attachment", map[string]string{"filename": label(path.Base(name), textLimit)})
	if d == "" {
		return "attachment"
	}
	return d
}
