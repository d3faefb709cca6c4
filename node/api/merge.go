package api

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"zorilla/transfer"
)

// maxMergeWarnings is how many conflicts Merge names one by one.
const maxMergeWarnings = 20

// RankTree is the output files of one rank.
type RankTree struct {
	Rank     int
	Manifest transfer.Manifest
}

// Merge lays the output files of all ranks over each other. A name that
// several ranks made with the same content is kept once. If the contents
// differ, or one rank's file is another's directory, every rank's file is
// kept as NAME.RANK, and a warning says so.
func Merge(ranks []RankTree) (transfer.Manifest, []string, error) {
	m := merger{files: map[string][]version{}, dirs: map[string]bool{}, taken: map[string]bool{}}
	ranks = slices.SortedFunc(slices.Values(ranks), func(a, b RankTree) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, r := range ranks {
		for _, e := range r.Manifest.Entries {
			m.add(r.Rank, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.files)) {
		m.place(name)
	}
	for dir := range m.dirs {
		if !m.needed(dir) {
			m.entries = append(m.entries, transfer.Entry{Path: dir, Dir: true})
		}
	}
	if n := len(m.warnings) - maxMergeWarnings; n > 0 {
		m.warnings = append(m.warnings[:maxMergeWarnings], fmt.Sprintf("and %d more names with different files", n))
	}
	merged, err := transfer.NewManifest(m.entries)
	if err != nil {
		return transfer.Manifest{}, m.warnings, fmt.Errorf("merge outputs of %d ranks: %w: %w", len(ranks), err, errTogether)
	}
	return merged, m.warnings, nil
}

// version is one content of a name, and the ranks that made it.
type version struct {
	entry transfer.Entry
	ranks []int
}

type merger struct {
	files    map[string][]version
	dirs     map[string]bool // also those that only lead to files
	taken    map[string]bool // names given out to conflicting files
	inner    map[string]bool // see needed
	entries  []transfer.Entry
	warnings []string
}

func (m *merger) add(rank int, e transfer.Entry) {
	for dir := path.Dir(e.Path); dir != "."; dir = path.Dir(dir) {
		m.dirs[dir] = true
	}
	if e.Dir {
		m.dirs[e.Path] = true
		return
	}
	versions := m.files[e.Path]
	i := slices.IndexFunc(versions, func(v version) bool {
		return v.entry.Exec == e.Exec && v.entry.Size == e.Size && slices.Equal(v.entry.Chunks, e.Chunks)
	})
	if i < 0 {
		m.files[e.Path] = append(versions, version{e, []int{rank}})
		return
	}
	versions[i].ranks = append(versions[i].ranks, rank)
}

// place decides under which names the versions of a file are kept.
func (m *merger) place(name string) {
	versions := m.files[name]
	if len(versions) == 1 && !m.dirs[name] {
		m.entries = append(m.entries, versions[0].entry)
		return
	}
	var ranks []int
	for _, v := range versions {
		for _, rank := range v.ranks {
			e := v.entry
			e.Path = m.free(name, rank)
			m.entries = append(m.entries, e)
			ranks = append(ranks, rank)
		}
	}
	why := "made different files"
	if len(versions) == 1 {
		why = "made a file where others made a directory"
	}
	slices.Sort(ranks)
	m.warnings = append(m.warnings, fmt.Sprintf("%s %s %q: kept as %q", rankList(ranks), why, name, name+".RANK"))
}

// free returns NAME.RANK, with further .RANK as long as somebody has that name.
func (m *merger) free(name string, rank int) string {
	suffix := "." + strconv.Itoa(rank)
	for name += suffix; m.files[name] != nil || m.dirs[name] || m.taken[name]; {
		name += suffix
	}
	m.taken[name] = true
	return name
}

// needed reports whether a file or directory below dir makes it anyway.
func (m *merger) needed(dir string) bool {
	if m.inner == nil {
		m.inner = map[string]bool{}
		for _, all := range []map[string]bool{m.dirs, m.taken} {
			for p := range all {
				m.inner[path.Dir(p)] = true
			}
		}
		for p := range m.files {
			m.inner[path.Dir(p)] = true
		}
	}
	return m.inner[dir]
}

// rankList names ranks: "ranks 0, 1 and 4", or "12 ranks" if they are many.
func rankList(ranks []int) string {
	switch n := len(ranks); {
	case n == 1:
		return fmt.Sprintf("rank %d", ranks[0])
	case n > 5:
		return fmt.Sprintf("%d ranks", n)
	}
	words := make([]string, len(ranks))
	for i, r := range ranks {
		words[i] = strconv.Itoa(r)
	}
	last := len(words) - 1
	return "ranks " + strings.Join(words[:last], ", ") + " and " + words[last]
}
