package transfer_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"zorilla/transfer"
)

const benchSize = 256 << 20

// benchInput makes a file whose chunks all differ.
func benchInput(b *testing.B) []transfer.Input {
	data := make([]byte, benchSize)
	for i := range benchSize / transfer.ChunkSize {
		binary.BigEndian.PutUint64(data[i*transfer.ChunkSize:], uint64(i))
	}
	src := filepath.Join(b.TempDir(), "src")
	if err := os.WriteFile(src, data, 0o644); err != nil {
		b.Fatal(err)
	}
	return []transfer.Input{{Path: src, Name: "f"}}
}

func benchStore(b *testing.B) *transfer.DirStore {
	s := transfer.NewDirStore(b.TempDir(), 0)
	if err := s.Open(); err != nil {
		b.Fatal(err)
	}
	return s
}

// BenchmarkHash is what one core can do: the measure of the others.
func BenchmarkHash(b *testing.B) {
	data := bytes.Repeat([]byte("z"), transfer.ChunkSize)
	b.SetBytes(transfer.ChunkSize)
	for b.Loop() {
		transfer.HashOf(data)
	}
}

func BenchmarkIngest(b *testing.B) {
	in := benchInput(b)
	discard := transfer.PutterFunc(func(transfer.Hash, []byte) error { return nil })
	for name, put := range map[string]func() transfer.Putter{
		"discard": func() transfer.Putter { return discard },
		"store":   func() transfer.Putter { return benchStore(b) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(benchSize)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := transfer.Ingest(b.Context(), put(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	s := benchStore(b)
	m, err := transfer.Ingest(b.Context(), s, benchInput(b))
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	b.SetBytes(benchSize)
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Write(b.Context(), s, dir); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSmallFiles is the way of 10 000 files of 1 kB without a network.
func BenchmarkSmallFiles(b *testing.B) {
	const count = 10_000
	src := b.TempDir()
	for i := range count {
		at := filepath.Join(src, fmt.Sprintf("d%02d", i/1000), fmt.Sprintf("f%05d", i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, fmt.Appendf(make([]byte, 990), "%010d", i), 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	in := []transfer.Input{{Path: src, Name: "."}}
	s := benchStore(b)
	m, err := transfer.Ingest(b.Context(), s, in)
	if err != nil {
		b.Fatal(err)
	}
	discard := transfer.PutterFunc(func(transfer.Hash, []byte) error { return nil })
	b.Run("ingest", func(b *testing.B) {
		for b.Loop() {
			if _, err := transfer.Ingest(b.Context(), discard, in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if err := m.Write(b.Context(), s, b.TempDir()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
