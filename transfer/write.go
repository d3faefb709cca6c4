package transfer

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// How says how Manifest.WriteTo writes. The zero value replaces what is there.
type How struct {
	New   bool        // replace nothing
	Umask fs.FileMode // what others are not allowed; see Umask
	// Fresh: nobody looks at the directory before all is written, or if that fails. Small files
	// need not get their names when they are complete then. Not with New.
	Fresh bool
	// Give: a large file may be one that the store has assembled, instead of a copy. The
	// store does not have it any more then, until TakeBack. Not with New.
	Give bool
	// Owner is whose all of the tree becomes, and at the end dir itself: who finds it so
	// knows that nothing is left to be given. nil = who writes it.
	Owner *Owner
	Steps *atomic.Int64 // counts small files and chunks of others as they are written; nil = nobody asks
}

// Write makes the tree below dir, which it makes too if it is missing. Files
// that exist are replaced as a whole; other files are left alone. Files get
// the modes that they had, whatever the umask. Symbolic
// links below dir are never followed: one in place of a directory is an
// error, one in place of a file or a link is replaced.
//
// Every chunk is verified. If one is not held (any more) the error is
// ErrNotFound. After an error some files are there, each of them complete.
func (m *Manifest) Write(ctx context.Context, get Getter, dir string) error {
	return m.WriteTo(ctx, get, dir, How{})
}

// WriteTo is Write, but for what how says. With How.New what is there, or comes
// meanwhile, in place of a file is an error that wraps fs.ErrExist.
func (m *Manifest) WriteTo(ctx context.Context, get Getter, dir string, how How) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	w := &treeWriter{pool: newPool(ctx, parallel, ChunkSize), get: get, prefix: ".zorilla-" + rand.Text(), how: how}
	w.files, _ = get.(WholeFiles)
	if w.to, err = filepath.Abs(dir); err != nil || how.New {
		w.how.Give = false
	}
	w.how.Fresh = how.Fresh && !how.New
	w.masked = w.how.masked(dir)
	at := descent{[]*openDir{newOpenDir("", root)}, how}
	err = w.entries(&at, m.Entries)
	at.leave(0)
	if err = w.pool.wait(err); err != nil || how.Owner == nil {
		return err
	}
	if err := how.Owner.failed(os.Lchown(dir, how.Owner.UID, how.Owner.GID)); err != nil {
		return fmt.Errorf("write files: %w", err)
	}
	return nil
}

// treeWriter writes entries.
type treeWriter struct {
	pool   *pool
	get    Getter
	prefix string // of temporary files
	how    How
	files  WholeFiles  // nil = no file is anywhere but in chunks
	to     string      // the directory, absolute
	masked fs.FileMode // what of their mode small files get after they are made
	count  atomic.Int64
}

// entries writes all, and hands what is large and the bundles to the pool. A bundle
// is read once, wherever its files are.
func (w *treeWriter) entries(at *descent, all []Entry) error {
	var order []Hash
	bundles := map[Hash][]*Entry{}
	for i := range all {
		e := &all[i]
		if e.bundle == nil {
			if err := w.entry(at, e); err != nil {
				return err
			}
			continue
		}
		h := e.bundle.hash
		if bundles[h] == nil {
			order = append(order, h)
		}
		bundles[h] = append(bundles[h], e)
	}
	at.leave(1)
	top := at.dirs[0]
	for _, h := range spread(order) {
		top.users.Add(1)
		if err := w.pool.do(func(ctx context.Context, buf []byte) error {
			below := descent{[]*openDir{top}, at.how}
			defer below.leave(0)
			return w.bundle(ctx, &below, bundles[h], buf)
		}); err != nil {
			top.done()
			return err
		}
	}
	return nil
}

// descent keeps the directories that lead to the current one open, so that
// every step is a single name in a directory that was checked.
type descent struct {
	dirs []*openDir
	how  How
}

// openDir stays open while it is the current one or has unfinished files.
type openDir struct {
	path  string // in the tree; "" for the top
	root  *os.Root
	users atomic.Int64

	once   sync.Once // for these
	itself *os.File
	failed error
}

func newOpenDir(p string, root *os.Root) *openDir {
	d := &openDir{path: p, root: root}
	d.users.Store(1)
	return d
}

// file returns the directory as a file, which is open as long as the directory is.
func (d *openDir) file() (*os.File, error) {
	d.once.Do(func() { d.itself, d.failed = d.root.Open(".") })
	return d.itself, d.failed
}

func (d *openDir) done() {
	if d.users.Add(-1) == 0 {
		d.root.Close()
		if d.itself != nil {
			d.itself.Close()
		}
	}
}

// leave closes all but the first n directories.
func (at *descent) leave(n int) {
	for len(at.dirs) > n {
		at.dirs[len(at.dirs)-1].done()
		at.dirs = at.dirs[:len(at.dirs)-1]
	}
}

func (w *treeWriter) entry(at *descent, e *Entry) error {
	if e.Dir {
		_, err := at.enter(e.Path)
		return err
	}
	d, err := at.enter(dirOf(e.Path))
	if err != nil {
		return err
	}
	if e.Link != "" {
		return w.link(d, e)
	}
	done := func() {}
	if w.files != nil && len(e.Chunks) > 1 {
		if w.how.Give && w.files.Give(e, d.root, filepath.Join(w.to, e.Path), e.mode()&^w.how.Umask) {
			if err := w.how.Owner.own(d.root, path.Base(e.Path)); err != nil {
				return fmt.Errorf("write %s: %w", e.Path, err)
			}
			return nil
		}
		done = w.files.Stay(e)
	}
	wr, err := w.begin(d, e)
	if err != nil {
		done()
		return err
	}
	wr.after = done
	return w.file(wr)
}

// dirOf returns the directory of a path, "" for the top.
func dirOf(p string) string {
	dir, _ := path.Split(p)
	return strings.TrimSuffix(dir, "/")
}

// link makes a symbolic link, which nothing is written through: no entry is
// below it.
func (w *treeWriter) link(d *openDir, e *Entry) error {
	temp := w.temp()
	if err := d.root.Symlink(e.Link, temp); err != nil {
		return fmt.Errorf("write %s: %w", e.Path, bare(err))
	}
	if err := w.how.Owner.own(d.root, temp); err != nil {
		d.root.Remove(temp)
		return fmt.Errorf("write %s: %w", e.Path, err)
	}
	return d.place(temp, e, w.how.New)
}

// temp returns a name for what is not yet in its place.
func (w *treeWriter) temp() string {
	return fmt.Sprintf("%s-%d", w.prefix, w.count.Add(1))
}

// place gives what is complete its name.
func (d *openDir) place(temp string, e *Entry, fresh bool) error {
	name := path.Base(e.Path)
	put := d.root.Rename
	if fresh {
		put = d.placeNew
	}
	err := put(temp, name)
	if err == nil {
		return nil
	}
	d.root.Remove(temp)
	if there, e := d.root.Lstat(name); e == nil && there.IsDir() {
		err = errors.New("is a directory where a file is needed, remove it")
	}
	return fmt.Errorf("write %s: %w", e.Path, bare(err))
}

// placeNew gives a file a name that nothing has.
func (d *openDir) placeNew(temp, name string) error {
	err := d.root.Link(temp, name)
	if err == nil {
		return d.root.Remove(temp)
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.takeName(temp, name)
}

// takeName is placeNew on file systems without links to files: the name is taken
// first.
func (d *openDir) takeName(temp, name string) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), d.root.Rename(temp, name))
}

// enter makes the directory the current one.
func (at *descent) enter(dir string) (*openDir, error) {
	n := len(at.dirs)
	for n > 1 && dir != at.dirs[n-1].path && !strings.HasPrefix(dir, at.dirs[n-1].path+"/") {
		n--
	}
	at.leave(n)
	for {
		d := at.dirs[len(at.dirs)-1]
		rest := strings.TrimPrefix(dir[len(d.path):], "/")
		if rest == "" {
			return d, nil
		}
		name, _, _ := strings.Cut(rest, "/")
		sub, err := openSub(d.root, name, 0o755&^at.how.Umask, at.how.Owner)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path.Join(d.path, name), err)
		}
		at.dirs = append(at.dirs, newOpenDir(path.Join(d.path, name), sub))
	}
}

// begin makes one file, which gets its name when it is done.
func (w *treeWriter) begin(d *openDir, e *Entry) (*writing, error) {
	temp := w.temp()
	f, err := d.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", e.Path, bare(err))
	}
	d.users.Add(1)
	wr := &writing{entry: e, dir: d, temp: temp, file: f, how: w.how}
	wr.users.Store(1)
	return wr, nil
}

// file hands the chunks of a file to the pool.
func (w *treeWriter) file(wr *writing) error {
	var err error
	for i, h := range wr.entry.Chunks {
		if h == zeroChunk() && chunkLen(wr.entry.Size, i) == ChunkSize {
			continue // a hole, see done
		}
		wr.users.Add(1)
		err = w.pool.do(func(ctx context.Context, buf []byte) error {
			return cmp.Or(wr.chunk(ctx, w.get, i, buf), wr.done())
		})
		if err != nil {
			wr.failed.Store(true)
			wr.users.Add(-1)
			break
		}
	}
	return cmp.Or(err, wr.done())
}

// writing is a file while its chunks are written.
type writing struct {
	entry  *Entry
	dir    *openDir
	temp   string
	file   *os.File
	how    How
	users  atomic.Int64 // chunks in work, and the one who hands them out
	failed atomic.Bool
	after  func() // called at the end

	copying sync.Mutex // held by copy
}

func (w *writing) chunk(ctx context.Context, get Getter, i int, buf []byte) (err error) {
	defer func() {
		if w.how.step(); err != nil {
			w.failed.Store(true)
		}
	}()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if from, ok := get.(copier); ok && chunkLen(w.entry.Size, i) == ChunkSize && w.copy(from, i) {
		return nil
	}
	data, err := getVerified(get, w.entry.Chunks[i], buf)
	if err != nil {
		return fmt.Errorf("write %s: %w", w.entry.Path, err)
	}
	if len(data) != chunkLen(w.entry.Size, i) {
		return fmt.Errorf("write %s: %w: chunk %d has %d bytes", w.entry.Path, ErrManifest, i, len(data))
	}
	if isZero(data) {
		return nil // a hole, see done
	}
	if err := writeAt(w.file, data, int64(i)*ChunkSize); err != nil {
		return fmt.Errorf("write %s: %w", w.entry.Path, bare(err))
	}
	return nil
}

// copy has the file system copy a chunk, one at a time: it lets one call write to a file, and the
// others would turn on their processors until they may.
func (w *writing) copy(from copier, i int) bool {
	w.copying.Lock()
	defer w.copying.Unlock()
	return from.CopyTo(w.entry.Chunks[i], ChunkSize, w.file, int64(i)*ChunkSize)
}

// done puts the file in its place after its last chunk, or removes it if
// something went wrong.
func (w *writing) done() error {
	if w.users.Add(-1) > 0 {
		return nil
	}
	defer w.dir.done()
	defer w.after()
	if w.failed.Load() {
		w.file.Close()
		w.dir.root.Remove(w.temp)
		return nil
	}
	err := cmp.Or(w.how.Owner.own(w.dir.root, w.temp),
		w.file.Truncate(w.entry.Size), w.file.Chmod(w.entry.mode()&^w.how.Umask), w.file.Close())
	if err != nil {
		w.dir.root.Remove(w.temp)
		return fmt.Errorf("write %s: %w", w.entry.Path, bare(err))
	}
	return w.dir.place(w.temp, w.entry, w.how.New)
}
