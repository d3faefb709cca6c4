package journal

import (
	"bytes"
	"context"
	"sync"
)

// Memory is a journal without a disk. Keep it beyond the end of its node and
// Reopen it to see what a restarted node would find.
type Memory struct {
	queue
	disk *disk
}

// disk is what outlives a Memory.
type disk struct {
	mu    sync.Mutex
	owner *Memory // the one that may write
	keys  map[string][][]byte
}

// NewMemory returns an empty journal.
func NewMemory() *Memory {
	m := &Memory{queue: newQueue(), disk: &disk{keys: map[string][][]byte{}}}
	m.disk.owner = m
	return m
}

// Reopen returns a journal with the entries that m has written so far, as after
// a crash: what m has queued, or appends from now on, fails with ErrClosed.
func (m *Memory) Reopen() *Memory {
	next := &Memory{queue: newQueue(), disk: m.disk}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.disk.owner = next
	return next
}

// Run writes until ctx ends.
func (m *Memory) Run(ctx context.Context) error {
	m.run(ctx, m.commit)
	return nil
}

func (m *Memory) commit(ops []op) error {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if m.disk.owner != m {
		return ErrClosed
	}
	for _, o := range ops {
		if o.remove != "" {
			delete(m.disk.keys, o.remove)
		}
		for _, e := range o.entries {
			m.disk.keys[e.Key] = append(m.disk.keys[e.Key], bytes.Clone(e.Data))
		}
	}
	return nil
}

// Read returns the entries of one key; see Journal.
func (m *Memory) Read(key string) ([]Entry, error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	var entries []Entry
	for _, data := range m.disk.keys[key] {
		entries = append(entries, Entry{key, append([]byte{}, data...)})
	}
	return entries, nil
}

// Load calls f with every entry; see Journal.
func (m *Memory) Load(f func(Entry) error) error {
	var all []Entry
	m.disk.mu.Lock()
	for key, entries := range m.disk.keys {
		for _, data := range entries {
			all = append(all, Entry{key, append([]byte{}, data...)})
		}
	}
	m.disk.mu.Unlock()
	for _, e := range all {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}
