package journal

import (
	"bytes"
	"context"
	"fmt"
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
	owner *Memory        // the one that may write
	spoil map[string]int // the number of an entry that is damaged, from 1
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
			delete(m.disk.spoil, o.remove)
		}
		for _, e := range o.entries {
			m.disk.keys[e.Key] = append(m.disk.keys[e.Key], bytes.Clone(e.Data))
		}
	}
	return nil
}

// Spoil damages an entry of a key, counted from 1, as a disk does.
func (m *Memory) Spoil(key string, n int) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	if m.disk.spoil == nil {
		m.disk.spoil = map[string]int{}
	}
	m.disk.spoil[key] = n
}

// readLocked returns the entries of a key.
func (m *Memory) readLocked(key string) (entries []Entry) {
	all := m.disk.keys[key]
	for i, data := range all {
		if i+1 == m.disk.spoil[key] {
			return append(entries, Entry{Key: key, Damage: fmt.Sprintf("entry %d of %d is damaged", i+1, len(all))})
		}
		entries = append(entries, Entry{Key: key, Data: append([]byte{}, data...)})
	}
	return entries
}

// Read returns the entries of one key; see Journal.
func (m *Memory) Read(key string) ([]Entry, error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	return m.readLocked(key), nil
}

// Load calls f with every entry; see Journal.
func (m *Memory) Load(f func(Entry) error) error {
	var all []Entry
	m.disk.mu.Lock()
	for key := range m.disk.keys {
		all = append(all, m.readLocked(key)...)
	}
	m.disk.mu.Unlock()
	for _, e := range all {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}
