package journal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"
)

// countedMedium counts syncs.
type countedMedium struct {
	realMedium
	syncs atomic.Int64
}

func (m *countedMedium) create(path string, size int) (*os.File, error) {
	m.syncs.Add(2)
	return m.realMedium.create(path, size)
}

func (m *countedMedium) sync(f *os.File) error {
	m.syncs.Add(1)
	return m.realMedium.sync(f)
}

func (m *countedMedium) remove(path string) error {
	m.syncs.Add(4) // of the two transactions of the table that come before
	return m.realMedium.remove(path)
}

// tableOnly is a journal without logs: each commit is a transaction of the table.
type tableOnly struct {
	*File
	medium *countedMedium
}

func (b tableOnly) Run(ctx context.Context) error {
	b.run(ctx, func(ops []op) error {
		steps, err := b.plan(ops)
		if err != nil {
			return err
		}
		b.number++
		t := newTail()
		t.add(b.number, steps)
		b.medium.syncs.Add(2)
		return b.db.Update(func(tx *bbolt.Tx) error { return apply(tx, t) })
	})
	return b.Close()
}

// BenchmarkAppend shows what the logs save, with so many Appends under way at once.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 10, 100} {
		for _, logs := range []bool{false, true} {
			b.Run(fmt.Sprintf("writers=%d/logs=%v", writers, logs), func(b *testing.B) { benchmarkAppend(b, writers, logs) })
		}
	}
}

func benchmarkAppend(b *testing.B, writers int, logs bool) {
	medium := &countedMedium{}
	f, err := open(filepath.Join(b.TempDir(), "journal"), medium)
	if err != nil {
		b.Fatal(err)
	}
	var j Journal = f
	if !logs {
		j = tableOnly{f, medium}
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	free := make(chan struct{}, writers)
	data, n := bytes.Repeat([]byte("x"), 500), 0
	for b.Loop() {
		free <- struct{}{}
		n++
		j.Append([]Entry{{Key: fmt.Sprintf("k%d", n%1000), Data: data}}, func(err error) {
			if err != nil {
				b.Error(err)
			}
			<-free
		})
	}
	cancel()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(medium.syncs.Load())/float64(n), "syncs/op")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "appends/s")
}

// BenchmarkOpen opens and reads journals that were closed.
func BenchmarkOpen(b *testing.B) {
	for _, size := range []struct{ keys, entries int }{{1000, 8}, {1000, 100}} {
		b.Run(fmt.Sprintf("keys=%d/entries=%d", size.keys, size.keys*size.entries), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "journal")
			f, err := Open(path)
			if err != nil {
				b.Fatal(err)
			}
			for key := range size.keys {
				var entries []Entry
				for range size.entries {
					entries = append(entries, Entry{Key: fmt.Sprintf("k%d", key), Data: make([]byte, 300)})
				}
				f.Append(entries, nil)
			}
			ended, cancel := context.WithCancel(b.Context())
			cancel()
			if err := f.Run(ended); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				f, err := Open(path)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				if err := f.Load(func(Entry) error { n++; return nil }); err != nil || n != size.keys*size.entries {
					b.Fatal(n, err)
				}
				f.Close()
			}
		})
	}
}
