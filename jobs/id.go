package jobs

import (
	"math/rand/v2"
	"strings"

	"zorilla/vicinity"
)

// ID names a job: five random characters, "@" and the short ID of its origin,
// as in "k7f3q@zeb2a". A unique prefix of it is enough for people.
type ID string

const (
	idRandom   = 5
	idLength   = idRandom + 1 + 5
	idAlphabet = "abcdefghijkmnpqrstuvwxyz23456789" // 32 characters that are hard to mix up
)

// NewID makes the ID of a job that originates at the node.
func NewID(rnd *rand.Rand, origin vicinity.ID) ID {
	var b [idRandom]byte
	for i := range b {
		b[i] = idAlphabet[rnd.IntN(len(idAlphabet))]
	}
	return ID(string(b[:]) + "@" + origin.Short())
}

// Valid reports whether id has the form of a job ID. Check it before an ID
// from the network or a user becomes part of a path.
func (id ID) Valid() bool {
	return len(id) == idLength && id[idRandom] == '@' && id[idRandom+1] == 'z' &&
		strings.Trim(string(id[:idRandom]), idAlphabet) == "" &&
		strings.Trim(string(id[idRandom+1:]), "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// OriginShort returns the short ID of the job's origin.
func (id ID) OriginShort() string {
	_, origin, _ := strings.Cut(string(id), "@")
	return origin
}
