package process

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"zorilla/jobs/remover"
	"zorilla/transfer"
)

// taskDir is the directory in Root that a task begins in. It is the same one for
// all tasks of a worker, since the rules of a sandbox are about directories that
// exist, but each finds it anew: empty but for links to the inputs in Root/work,
// which tasks can read and not write. A task that writes to an input is refused;
// one that removes or replaces it has done so for itself alone.
type taskDir struct {
	spec *Spec
	own  string
	tmp  string
	made transfer.Manifest // directories and links that a task finds, those above first
	find map[string]int    // places of these in made
	kept map[string]bool   // which of them are as they were made

	// Tasks cannot put others in their places; that they are open saves each task some calls.
	ownDir, tmpDir *os.File
	bare           bool // own was empty when the latest task had ended
}

// newTaskDir makes Root/work read-only, and finds out what a task is to see of
// it: a link for each file and for each directory, but directories that are empty,
// or that an output pattern leads through, are made, with links in them.
func newTaskDir(s *Spec) (*taskDir, error) {
	t := &taskDir{spec: s, own: filepath.Join(s.Root, TaskDir), tmp: filepath.Join(s.Root, tmpDir), find: map[string]int{}, kept: map[string]bool{}}
	if err := t.plan(""); err != nil {
		return nil, fmt.Errorf("inputs of tasks: %w", err)
	}
	slices.SortFunc(t.made.Entries, func(a, b transfer.Entry) int { return transfer.ComparePaths(a.Path, b.Path) })
	for i, e := range t.made.Entries {
		t.find[e.Path] = i
	}
	err := filepath.WalkDir(filepath.Join(s.Root, workDir), func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o444)
		if d.IsDir() || info.Mode()&0o111 != 0 {
			mode = 0o555
		}
		return os.Chmod(at, mode)
	})
	if err != nil {
		return nil, fmt.Errorf("protect inputs of tasks: %w", err)
	}
	if t.ownDir, err = remover.Open(unix.AT_FDCWD, t.own); err != nil {
		return nil, err
	}
	if t.tmpDir, err = remover.Open(unix.AT_FDCWD, t.tmp); err != nil {
		_ = t.ownDir.Close()
		return nil, err
	}
	return t, nil
}

// close gives the descriptors back. No more task begins or ends.
func (t *taskDir) close() {
	_ = t.ownDir.Close()
	_ = t.tmpDir.Close()
}

// plan looks at the inputs in dir.
func (t *taskDir) plan(dir string) error {
	entries, err := os.ReadDir(filepath.Join(t.spec.Root, workDir, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() && (t.spec.Tasks.leadsThrough(name) || isEmpty(filepath.Join(t.spec.Root, workDir, name))) {
			t.made.Entries = append(t.made.Entries, transfer.Entry{Path: name, Dir: true})
			if err := t.plan(name); err != nil {
				return err
			}
			continue
		}
		// Relative: the worker's user may not be able to go to Root from above.
		target := strings.Repeat("../", strings.Count(name, "/")+1) + workDir + "/" + name
		t.made.Entries = append(t.made.Entries, transfer.Entry{Path: name, Link: target})
	}
	return nil
}

func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

// leadsThrough reports whether an output pattern names something below a
// directory, and not the directory itself.
func (t *TaskSpec) leadsThrough(dir string) bool {
	return slices.ContainsFunc(t.Outputs, func(glob string) bool { return transfer.LeadsThrough(glob, dir) })
}

// fill makes what a task finds, which is the worker's user's own.
func (t *taskDir) fill() error {
	for _, e := range t.made.Entries {
		if t.kept[e.Path] {
			continue
		}
		at := filepath.Join(t.own, e.Path)
		if !e.Dir {
			if err := os.Symlink(e.Link, at); err != nil {
				return err
			}
			continue
		}
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
		if t.spec.RunsAs() {
			if err := os.Lchown(at, t.spec.UID, t.spec.GID); err != nil {
				return err
			}
		}
	}
	return nil
}

// untouched reports whether a task has left nothing but what it found. It is cheap, and looks
// into no directory.
func (t *taskDir) untouched() bool {
	if _, err := t.ownDir.Seek(0, io.SeekStart); err != nil {
		return false
	}
	names, err := t.ownDir.Readdirnames(len(t.made.Entries) + 1)
	t.bare = err == io.EOF && len(names) == 0
	return (err == nil || err == io.EOF) && !slices.ContainsFunc(names, func(name string) bool {
		i, made := t.find[name]
		return !made || t.made.Entries[i].Dir
	})
}

// clear removes what a task has left, and keeps what is as it was made: there may
// be many inputs. No process of the task is alive.
func (t *taskDir) clear() error {
	clear(t.kept)
	err := t.ownDir.Chmod(0o700)
	if err == nil && !t.bare {
		err = t.tidy(t.ownDir, t.own, "")
	}
	if t.bare = false; err == nil {
		err = t.tmpDir.Chmod(0o700)
	}
	if err == nil {
		err = (&taskDir{}).tidy(t.tmpDir, t.tmp, "")
	}
	if err != nil {
		return fmt.Errorf("remove what a task has left: %w", err)
	}
	return nil
}

// tidyBelow is clear for a directory within own that was made, which tasks know as dir.
func (t *taskDir) tidyBelow(at, dir string) error {
	if err := os.Chmod(at, 0o755); err != nil {
		return err
	}
	d, err := remover.Open(unix.AT_FDCWD, at)
	if err != nil {
		return err
	}
	defer d.Close()
	return t.tidy(d, at, dir)
}

// tidy is clear for a directory that is open, at a path, which tasks know as dir.
func (t *taskDir) tidy(d *os.File, at, dir string) error {
	if _, err := d.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := remover.Remover{Top: d}
	for again := true; again; {
		names, err := d.Readdirnames(-1)
		if err != nil {
			return err
		}
		moved := r.Moved
		for _, name := range names {
			keep, err := t.keep(d, at, dir, name)
			if err == nil && !keep {
				err = r.Remove(name)
			}
			if err != nil {
				return err
			}
		}
		if again = r.Moved > moved; again { // something deep was moved up to here
			if _, err := d.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep reports whether an entry of a directory is as it was made; a directory is
// tidied for that.
func (t *taskDir) keep(d *os.File, at, dir, name string) (bool, error) {
	rel := path.Join(dir, name)
	i, made := t.find[rel]
	if !made || t.kept[rel] {
		return made, nil
	}
	e := &t.made.Entries[i]
	if !e.Dir {
		to := make([]byte, len(e.Link)+1)
		n, err := unix.Readlinkat(int(d.Fd()), name, to)
		t.kept[rel] = err == nil && string(to[:n]) == e.Link
		return t.kept[rel], nil
	}
	var st unix.Stat_t
	if err := unix.Fstatat(int(d.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false, nil
	}
	t.kept[rel] = true
	return true, t.tidyBelow(filepath.Join(at, name), rel)
}

// TaskLine is the variable in which a task finds its line.
const TaskLine = "ZORILLA_TASK_LINE"

// MaxLine bounds a line, in bytes without its end: with the variable's name, "=" and a zero byte
// it is as long as the kernel allows.
const MaxLine = 128<<10 - len(TaskLine+"=") - 1

// lineFile finds lines by their numbers, from 1, with eight bytes of memory
// for each.
type lineFile struct {
	file  *os.File
	begin []int64 // of each line, and the end of the last
}

// openLines opens a file for good. It must be a regular one.
func openLines(path string) (*lineFile, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	l := &lineFile{file: f, begin: []int64{0}}
	pos := int64(0)
	for r := bufio.NewReader(f); ; {
		piece, err := r.ReadSlice('\n')
		pos += int64(len(piece))
		switch {
		case err == nil:
			l.begin = append(l.begin, pos)
		case err == io.EOF:
			if pos > l.begin[len(l.begin)-1] { // the last one need not end
				l.begin = append(l.begin, pos)
			}
			return l, nil
		case err != bufio.ErrBufferFull:
			_ = f.Close()
			return nil, err
		}
	}
}

// line returns a line without its end.
func (l *lineFile) line(number int) (string, error) {
	if number < 1 || number >= len(l.begin) {
		return "", fmt.Errorf("there are %d lines", len(l.begin)-1)
	}
	from, to := l.begin[number-1], l.begin[number]
	b := make([]byte, min(to-from, int64(MaxLine+len("\r\n")))) // what is longer has no end within that
	if _, err := l.file.ReadAt(b, from); err != nil {
		return "", err
	}
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))
	switch {
	case len(b) > MaxLine:
		return "", fmt.Errorf("it has more than %d bytes", MaxLine)
	case bytes.IndexByte(b, 0) >= 0:
		return "", fmt.Errorf("it holds a zero byte")
	}
	return string(b), nil
}

// FillIn puts a line into arguments: in place of each {}, or at their end.
func FillIn(args []string, line string) []string {
	filled, found := make([]string, len(args), len(args)+1), false
	for i, a := range args {
		filled[i] = strings.ReplaceAll(a, "{}", line)
		found = found || strings.Contains(a, "{}")
	}
	if !found {
		filled = append(filled, line)
	}
	return filled
}
