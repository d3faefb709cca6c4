package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Limits of an entry.
const (
	MaxKey  = 64      // bytes
	MaxData = 8 << 20 // bytes
)

// Errors that callers act on.
var (
	ErrClosed  = errors.New("journal is closed")
	ErrLocked  = errors.New("another node uses this state directory: stop it, or choose another directory with --state-dir")
	ErrDamaged = errors.New("journal is damaged: put back a copy of it, or move it away to start without the jobs it holds")
	ErrGap     = errors.New("an earlier entry could not be written")
	ErrInvalid = errors.New("invalid journal entry")
)

// Entry is one event under a key.
type Entry struct {
	Key  string // 1 to MaxKey of a-z A-Z 0-9 @ . _ -
	Data []byte // at most MaxData
	// Damage, of what Load and Read tell, says that the entry at this place, or
	// one of those that must follow, is not what was appended, and how; nothing
	// follows.
	Damage string
}

// Journal is a durable, ordered store of entries.
type Journal interface {
	// Append adds entries, which may be of several keys, all or none. The
	// data must not change until done has been called. done may be nil.
	Append(entries []Entry, done func(error))
	// Delete removes a key with all its entries. That there are none is no
	// error. done may be nil.
	Delete(key string, done func(error))
	// Replace removes what a key has and appends the entry, in one step. done
	// may be nil.
	Replace(e Entry, done func(error))
	// Read returns the entries of one key on disk, as Load does; there may be
	// none.
	Read(key string) ([]Entry, error)
	// Load calls f with every entry on disk: keys in any order, the entries of
	// a key as they were appended. The data is f's to keep. Load stops at the
	// first error of f and returns it as it is. f must not wait for a done
	// function.
	Load(f func(Entry) error) error
	// Stalled reports why nothing can be written now, or nil: what was appended
	// waits for room on the disk.
	Stalled() error
	// Run writes until ctx ends. Call it once.
	Run(ctx context.Context) error
}

func checkKey(key string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@._-"
	if key == "" || len(key) > MaxKey || strings.Trim(key, allowed) != "" {
		return fmt.Errorf("%w: key %.80q: want 1 to %d letters, digits, @ . _ -", ErrInvalid, key, MaxKey)
	}
	return nil
}

func checkEntry(e Entry) error {
	if err := checkKey(e.Key); err != nil {
		return err
	}
	if len(e.Data) > MaxData {
		return fmt.Errorf("%w: entry of %s has %d bytes, at most %d", ErrInvalid, e.Key, len(e.Data), MaxData)
	}
	return nil
}
