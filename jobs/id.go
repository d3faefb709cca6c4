package jobs

import (
	"math/rand/v2"
	"slices"
	"strings"

	"zorilla/vicinity"
)

// ID names a job: five random characters, "@" and the whole ID of its origin.
// People see it short, as in "k7f3q@zeb2a", which is, as any other unique
// prefix, enough for every command.
type ID string

const (
	idRandom   = 5
	idShort    = idRandom + 1 + 5
	idAlphabet = "abcdefghijkmnpqrstuvwxyz23456789" // 32 characters that are hard to mix up
)

// NewID makes the ID of a job that originates at the node.
func NewID(rnd *rand.Rand, origin vicinity.ID) ID {
	var b [idRandom]byte
	for i := range b {
		b[i] = idAlphabet[rnd.IntN(len(idAlphabet))]
	}
	return ID(b[:]).At(origin)
}

// At returns the job of the same random characters at another origin.
func (id ID) At(origin vicinity.ID) ID {
	return id[:min(len(id), idRandom)] + "@" + ID(origin)
}

// Valid reports whether id is a whole job ID. Check it before an ID from the
// network or a user becomes part of a path.
func (id ID) Valid() bool {
	return len(id) > idRandom && id[idRandom] == '@' &&
		strings.Trim(string(id[:idRandom]), idAlphabet) == "" && id.Origin().Valid()
}

// Origin returns the node that the job originates at.
func (id ID) Origin() vicinity.ID {
	_, origin, _ := strings.Cut(string(id), "@")
	return vicinity.ID(origin)
}

// Short returns the ID as people see it.
func (id ID) Short() string { return string(id[:min(len(id), idShort)]) }

// Distinct returns how people tell these jobs apart: their short forms, longer
// where two would look the same.
func Distinct(ids []ID) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	texts := make([]string, len(ids))
	for i, id := range ids {
		n := idShort
		at, _ := slices.BinarySearch(sorted, id)
		for _, other := range sorted[max(at-1, 0):min(at+2, len(sorted))] {
			if other != id {
				n = max(n, Shared(id, other)+1)
			}
		}
		texts[i] = string(id[:min(len(id), n)])
	}
	return texts
}

// DistinctOf is Distinct for the jobs of a listing.
func DistinctOf[T any](list []T, of func(T) ID) []string {
	ids := make([]ID, len(list))
	for i, e := range list {
		ids[i] = of(e)
	}
	return Distinct(ids)
}

// EarlierForm reports whether a text is the ID of a job as protocol version 1
// had it: with the short ID of its origin only.
func EarlierForm(text string) bool { return len(text) == idShort && ID(text).shaped() }

func (id ID) shaped() bool {
	return id[idRandom] == '@' && id[idRandom+1] == 'z' && strings.Trim(string(id[:idRandom]), idAlphabet) == ""
}
