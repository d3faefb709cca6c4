// Package users gives each job at a node a user of its own: a number, of a user and of a
// group, that no other job has, nor any other node of the machine.
//
// A node reserves a [Block] of a [Range] when it starts. A reservation is a file that
// is named by its numbers and holds the node's directory for workers; the node has it
// locked. Without the lock it stands as long as that directory holds anything: workers
// outlive their node, and belong to their numbers, and so do the files of those that
// have ended. A node that comes back has its own again.
//
// In the block a job has a number from its first worker until the last of their
// directories is gone. The numbers are given out in turn, so that one comes again as
// late as it can; one that a process still has, which nobody knows of, is passed over.
package users

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
)

// Range is some numbers of users and groups.
type Range struct{ First, Last int }

// Default are numbers that nobody else gives out: above those of people and services,
// of subordinate IDs (/etc/subuid; up to 600100000), of directory services (SSSD,
// FreeIPA; up to 2000200000) and of systemd's containers (up to 1879048191), and below
// its foreign users (from 2147352576).
var Default = Range{2_100_000_000, 2_100_000_000 + 1<<20 - 1}

// taken are numbers that systemd gives to services (DynamicUser), and those that mean
// nobody.
var taken = []Range{{61184, 65519}, {65534, 65535}}

// Parse reads FIRST-LAST.
func Parse(text string) (Range, error) {
	first, last, ok := strings.Cut(text, "-")
	a, err1 := strconv.Atoi(first)
	b, err2 := strconv.Atoi(last)
	if r := (Range{a, b}); ok && err1 == nil && err2 == nil && 0 < a && a <= b && b <= math.MaxInt32 {
		return r, nil
	}
	return Range{}, fmt.Errorf("%q: want FIRST-LAST, of 1 to %d", text, math.MaxInt32)
}

// IsRange reports whether a text looks like FIRST-LAST rather than like a name.
func IsRange(text string) bool {
	return strings.Contains(text, "-") && strings.Trim(text, "0123456789-") == ""
}

// String returns FIRST-LAST.
func (r Range) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

func (r Range) overlaps(o Range) bool { return r.First <= o.Last && o.First <= r.Last }

func (r Range) holds(n int) bool { return r.First <= n && n <= r.Last }

// Check refuses numbers that somebody else of the machine has, or gives out.
func (r Range) Check() error {
	for _, t := range taken {
		if r.overlaps(t) {
			return fmt.Errorf("users %v: %v are the system's", r, t)
		}
	}
	for _, f := range []struct {
		path  string
		owned func(fields []string) Range
	}{
		{"/etc/passwd", one}, {"/etc/group", one}, {"/etc/subuid", several}, {"/etc/subgid", several},
	} {
		who, err := r.find(f.path, f.owned)
		if err != nil {
			return err
		}
		if who != "" {
			return fmt.Errorf("users %v: some are those of %.60q in %s: choose others, FIRST-LAST", r, who, f.path)
		}
	}
	return nil
}

// one is the number of a line of /etc/passwd or /etc/group.
func one(f []string) Range {
	n, err := strconv.Atoi(f[2])
	if err != nil {
		n = -1 // a line for a directory service
	}
	return Range{n, n}
}

// several are the numbers of a line of /etc/subuid.
func several(f []string) Range {
	first, err1 := strconv.Atoi(f[1])
	count, err2 := strconv.Atoi(f[2])
	if err1 != nil || err2 != nil || count < 1 {
		return Range{-1, -1}
	}
	return Range{first, first + count - 1}
}

// find returns the name of the first line whose numbers are in the range, "" for none.
func (r Range) find(path string, owned func(fields []string) Range) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20) // a group may have many members
	for lines.Scan() {
		if fields := strings.Split(lines.Text(), ":"); len(fields) > 2 && r.overlaps(owned(fields)) {
			return fields[0], nil
		}
	}
	return "", lines.Err()
}

// Mapped reports whether this process can make files belong to the numbers: in a
// container of an ordinary user there are few.
func (r Range) Mapped() bool {
	return mapped(r, "/proc/self/uid_map") && mapped(r, "/proc/self/gid_map")
}

func mapped(r Range, path string) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return true // this kernel has no such maps
	}
	for line := range strings.Lines(string(b)) {
		var first, outside, count int
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil && first <= r.First && r.Last-first < count {
			return true
		}
	}
	return false
}
