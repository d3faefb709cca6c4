package transfer_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"zorilla/internal/golden"
	"zorilla/transfer"
)

// TestGoldenMessages reads the manifests and packs of earlier versions: they are
// in stores and in the output of jobs, and come from nodes.
func TestGoldenMessages(t *testing.T) {
	manifest := func(entries ...transfer.Entry) []byte {
		m, err := transfer.NewManifest(entries)
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	decode := func(b []byte) (any, error) { return transfer.DecodeManifest(b) }
	files := []transfer.Entry{
		{Path: "bin/prog", Exec: true, Size: transfer.ChunkSize + 1, Chunks: transfer.HashList{hashA, hashB}},
		{Path: "data", Dir: true},
		{Path: "empty"},
	}
	golden.Messages(t, "messages", map[string]golden.Message{
		"manifest":       {Bytes: manifest(files...), Decode: decode},
		"manifest-links": {Bytes: manifest(append(files, transfer.Entry{Path: "bin/tool", Link: "prog"})...), Decode: decode},
		"manifest-bundles": {Bytes: zman3(append(bundleOf(1, 2, hashA), bundleOf(0, 2, hashB)...), file("a"), file("b"), file("c"), transfer.Entry{Path: "d"}, file("e"), file("f"), file("g")), Decode: func(b []byte) (any, error) {
			m, err := transfer.DecodeManifest(b)
			blobs := map[string][]transfer.Hash{}
			for _, e := range m.Entries {
				blobs[e.Path] = e.Blobs()
			}
			return blobs, err
		}},
		"pack": {Bytes: somePack(t), Decode: unpackedWithText},
	})
}

// somePack is a pack of an executable, a text and an empty directory.
func somePack(t *testing.T) []byte {
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "tool"), []byte("#!/bin/sh\n"), 0o755), os.WriteFile(filepath.Join(dir, "text"), []byte("hello"), 0o644),
		os.Mkdir(filepath.Join(dir, "void"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	b, _ := pack(t, dir, nil, "*")
	return b
}

// unpackedWithText reads a pack, with what is in its files.
func unpackedWithText(b []byte) (any, error) {
	store := transfer.NewMemStore(1 << 20)
	type file struct {
		Entry transfer.Entry
		Text  string
	}
	var list []file
	for r := transfer.NewPackReader(bytes.NewReader(b)); ; {
		e, err := r.Next(store)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		text := ""
		for _, h := range e.Chunks {
			chunk, err := store.Get(h, make([]byte, transfer.ChunkSize))
			if err != nil {
				return nil, err
			}
			text += string(chunk)
		}
		list = append(list, file{e, text})
	}
}
