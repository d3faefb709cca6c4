package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"zorilla/internal/reserved"
	"zorilla/jobs"
	"zorilla/transfer"
)

// Push brings files into the node's store and returns the hash of their
// manifest, for jobs.Spec.Inputs. The zero Hash stands for no files. Tell may be nil.
func Push(ctx context.Context, s Service, inputs []transfer.Input, tell transfer.Tell) (transfer.Hash, error) {
	if len(inputs) == 0 {
		return transfer.Hash{}, nil
	}
	up, err := transfer.Upload(ctx, s, inputs, tell)
	return up.Manifest, err
}

// Wanted says which outputs Pull fetches, and where to.
type Wanted struct {
	Rank int // of an array: a task; -1 = all
	// Into is the directory. All ranks share it, as Merge says, unless it contains
	// %r, which stands for the rank. Of an array %t stands for the task; without
	// it the tasks share it as placeTasks says.
	Into  string
	Force bool     // replace files that are there
	Only  []string // patterns as those of output files: only what one of them names; none = all
	// Foreign: the job was submitted at another node, so its patterns are not the user's own
	// words. Hidden files are left out then, unless Only names them.
	Foreign bool
	// Tell is told how many bytes of the files that are not there yet have come, from any
	// goroutine; nil = nobody is.
	Tell func(done, total int64)

	hidden int // how many files were left out because they are hidden
}

// Pulled reports what Pull did.
type Pulled struct {
	Ranks    int // or tasks, whose outputs were there
	Files    int // there now
	Bytes    int64
	Warnings []string // one line each
}

// Pull writes the outputs of the job's ranks that have ended. If a file is in the
// way that has other content, or anything that cannot be replaced, nothing is
// written: the error is a transfer.ObstacleError that names all of it.
//
// The status comes from the network: files that none of the job's patterns
// names are an error.
func Pull(ctx context.Context, s Service, st jobs.Status, want Wanted) (Pulled, error) {
	if err := want.Check(&st.Spec); err != nil {
		return Pulled{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if st.Spec.Array != nil {
		return pullTasks(ctx, s, st, &want)
	}
	get := chunksOf(ctx, s, st.ID)
	layout, done, err := plan(get, st, &want)
	if err != nil {
		return done, err
	}
	return write(ctx, get, s, layout, want, done)
}

// Check refuses a directory that stands for what the job does not have.
func (want *Wanted) Check(spec *jobs.Spec) error {
	switch {
	case spec.Array == nil && strings.Contains(want.Into, "%t"):
		return fmt.Errorf("--into %s: %%t stands for a task, and without -a there are none: want %%r, the rank", want.Into)
	case spec.Array != nil && strings.Contains(want.Into, "%r"):
		return fmt.Errorf("--into %s: an array has tasks, not ranks: want %%t", want.Into)
	}
	for _, glob := range want.Only {
		if err := transfer.CheckPattern(glob); err != nil {
			return err
		}
	}
	// What somebody wrote who knows the marks of other systems.
	if mark := regexp.MustCompile(`%[a-qsu-zA-Z]`).FindString(want.Into); mark != "" {
		return fmt.Errorf("--into %s: %s stands for nothing: want %%r, the rank, or %%t, the task of an array", want.Into, mark)
	}
	return nil
}

// ErrNoFile: there are output files, and none of them is wanted.
var ErrNoFile = errors.New("no output file is named by")

// only returns the entries that are wanted.
func (want *Wanted) only(entries []transfer.Entry) []transfer.Entry {
	if len(want.Only) == 0 && !want.Foreign {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e transfer.Entry) bool {
		if len(want.Only) > 0 {
			return !transfer.MatchOutput(want.Only, e.Path)
		}
		if !transfer.Hidden(e.Path) {
			return false
		}
		want.hidden++
		return true
	})
}

// left returns a warning of files that the job names and that were not fetched.
func (want *Wanted) left() []string {
	if want.hidden == 0 {
		return nil
	}
	return []string{fmt.Sprintf("files with hidden names were left out (%d), since the job was submitted at another node: "+
		"'zorilla get JOB PATTERN...' fetches them if a pattern has the dot", want.hidden)}
}

func (want *Wanted) nothing() error {
	return fmt.Errorf("%w %s", ErrNoFile, strings.Join(want.Only, " or "))
}

// pullTasks is Pull for an array.
func pullTasks(ctx context.Context, s Service, st jobs.Status, want *Wanted) (done Pulled, err error) {
	heap, err := heapFor(want.Into)
	if err != nil {
		return done, fmt.Errorf("fetch outputs: %w", err)
	}
	defer heap.Close()
	tasks, err := fetchTasks(ctx, s, &st, want.Rank, heap)
	if len(want.Only) > 0 || want.Foreign {
		for i := range tasks {
			tasks[i].entries = want.only(tasks[i].entries)
		}
		tasks = slices.DeleteFunc(tasks, func(t taskFiles) bool { return len(t.entries) == 0 })
		if len(tasks) == 0 && len(want.Only) > 0 && err == nil {
			err = want.nothing()
		}
	}
	done.Ranks, done.Warnings = len(tasks), want.left()
	damaged := error(nil) // what is whole is written all the same
	if errors.Is(err, jobs.ErrDamaged) {
		damaged, err = fmt.Errorf("fetch outputs: %w", err), nil
	}
	var layout []placed
	if err == nil {
		layout, err = placeTasks(&st.Spec, tasks, *want)
	}
	if err != nil {
		return done, fmt.Errorf("fetch outputs: %w", err)
	}
	done, err = write(ctx, heap, nil, layout, *want, done)
	return done, cmp.Or(err, damaged)
}

// write writes all of it, or nothing if anything is in the way. From, unless it is nil, may
// know files of this machine.
func write(ctx context.Context, get transfer.Getter, from transfer.Locator, layout []placed, want Wanted, done Pulled) (Pulled, error) {
	var way transfer.ObstacleError
	places := reserved.New()
	for i := range layout {
		p := &layout[i]
		var list []transfer.Obstacle
		var err error
		if p.rest, list, err = p.tree.Obstacles(ctx, p.dir, places, want.Force); err != nil {
			return done, fmt.Errorf("fetch outputs into %s: %w", p.dir, err)
		}
		way = append(way, list...)
	}
	if len(way) > 0 {
		return done, fmt.Errorf("outputs were not fetched: %w", way)
	}
	got := func(int) {}
	if want.Tell != nil {
		get, got = counting(get, layout, want.Tell)
	}
	if far, ok := get.(transfer.VerifiedFunc); ok && from != nil {
		var files []transfer.Entry
		for _, p := range layout {
			files = append(files, p.rest.Entries...)
		}
		get = transfer.Nearby(ctx, from, far, files, got)
	}
	how := transfer.How{New: !want.Force, Umask: transfer.Umask()}
	for _, p := range layout {
		if err := p.rest.WriteTo(ctx, get, p.dir, how); err != nil {
			return done, fmt.Errorf("fetch outputs into %s: %w", p.dir, err)
		}
		done.Files += p.tree.Files()
		done.Bytes += p.tree.Size()
	}
	return done, nil
}

// chunksOf gets chunks of the outputs of a job.
func chunksOf(ctx context.Context, s Service, id jobs.ID) transfer.VerifiedFunc {
	return func(h transfer.Hash, _ []byte) ([]byte, error) { return s.Chunk(ctx, string(id), h) }
}

// counting reports how much of what is not there yet was got, also elsewhere.
func counting(get transfer.Getter, layout []placed, tell func(done, total int64)) (counted transfer.Getter, got func(n int)) {
	var mu sync.Mutex // guards done, and orders the calls of tell
	var done, total int64
	for _, p := range layout {
		total += p.rest.Size()
	}
	got = func(n int) {
		mu.Lock()
		defer mu.Unlock()
		done += int64(n)
		tell(min(done, total), total)
	}
	f := func(h transfer.Hash, buf []byte) ([]byte, error) {
		data, err := get.Get(h, buf)
		got(len(data))
		return data, err
	}
	if _, ok := get.(transfer.VerifiedFunc); ok {
		return transfer.VerifiedFunc(f), got
	}
	return transfer.GetterFunc(f), got
}

// placed is files that go to one directory.
type placed struct {
	dir  string
	tree transfer.Manifest
	rest transfer.Manifest // what is not there yet
}

// Files lists the output files of the job's ranks that Pull would fetch, by rank. It is for
// jobs that are no arrays.
func Files(ctx context.Context, s Service, st jobs.Status, want Wanted) ([]RankTree, error) {
	if err := want.Check(&st.Spec); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return rankTrees(chunksOf(ctx, s, st.ID), &st, &want)
}

// rankTrees returns what is wanted of the outputs of each rank.
func rankTrees(get transfer.Getter, st *jobs.Status, want *Wanted) (trees []RankTree, err error) {
	for _, o := range st.Outputs {
		if want.Rank >= 0 && o.Rank != want.Rank || o.Manifest.IsZero() {
			continue
		}
		m, err := OutputTree(get, &st.Spec, o)
		if err != nil {
			return nil, fmt.Errorf("fetch outputs of rank %d: %w", o.Rank, err)
		}
		if m.Entries = want.only(m.Entries); len(m.Entries) > 0 || len(want.Only) == 0 {
			trees = append(trees, RankTree{o.Rank, m})
		}
	}
	if len(trees) == 0 && len(want.Only) > 0 {
		return nil, want.nothing()
	}
	return trees, nil
}

// plan decides which file goes where.
func plan(get transfer.Getter, st jobs.Status, want *Wanted) (layout []placed, done Pulled, err error) {
	trees, err := rankTrees(get, &st, want)
	done.Warnings = want.left()
	if done.Ranks = len(trees); err != nil || len(trees) == 0 {
		return nil, done, err
	}
	if strings.Contains(want.Into, "%r") {
		for _, t := range trees {
			layout = append(layout, placed{dir: strings.ReplaceAll(want.Into, "%r", strconv.Itoa(t.Rank)), tree: t.Manifest})
		}
		return layout, done, nil
	}
	m, warnings, err := Merge(trees)
	done.Warnings = append(done.Warnings, warnings...)
	return []placed{{dir: want.Into, tree: m}}, done, err
}

// OutputTree gets the list of the files of one rank. That one of them is none that the job
// asks for is an error; hidden ones are left out, which nodes of before sent for wildcards.
func OutputTree(get transfer.Getter, spec *jobs.Spec, o jobs.RankOutput) (transfer.Manifest, error) {
	m, err := transfer.LoadManifest(get, o.Manifest)
	if err == nil {
		m.Entries, err = asked(spec, m.Entries)
	}
	return m, err
}

// asked returns the entries that the job asks for.
func asked(spec *jobs.Spec, entries []transfer.Entry) (all []transfer.Entry, err error) {
	for _, e := range entries {
		switch {
		case e.Link != "":
			return nil, fmt.Errorf("%w: its node sent the symbolic link %.80q: only files are outputs", ErrRefused, e.Path)
		case spec.Wants(e.Path):
			all = append(all, e)
		case !transfer.MatchedBefore(spec.Outputs, e.Path):
			return nil, fmt.Errorf("%w: its node sent %.80q, which no output pattern of the job names", ErrRefused, e.Path)
		}
	}
	return all, nil
}

// errTogether is how to get outputs that cannot be in one directory.
var errTogether = errors.New("fetch the ranks into directories of their own, as with --into 'out/%r'")
