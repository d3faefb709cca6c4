package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"zorilla/internal/codec"
	"zorilla/internal/seeds"
)

// byTags is an entry that is encoded by reflection.
type byTags Entry

// Entries are written and read as their tags say.
func TestEntriesAreEncodedAsTheirTagsSay(t *testing.T) {
	seeds.OneGoroutine(t)
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		one := func() (e Entry) {
			maybe := func(fill func()) {
				if rnd.IntN(2) == 0 {
					fill()
				}
			}
			e.Path = strings.Repeat("é", rnd.IntN(200))
			maybe(func() { e.Dir = true })
			maybe(func() { e.Exec = true })
			maybe(func() { e.Mode = rnd.Uint32() >> rnd.IntN(32) })
			maybe(func() { e.Size = rnd.Int64() >> rnd.IntN(63) })
			maybe(func() { e.Size = -e.Size })
			maybe(func() {
				e.Chunks = make(HashList, 1+rnd.IntN(300)*rnd.IntN(10))
				for i := range e.Chunks {
					e.Chunks[i] = HashOf(fmt.Append(nil, i, seed))
				}
			})
			maybe(func() { e.Link = strings.Repeat("l", rnd.IntN(70_000)) })
			return e
		}
		for n := range 20 {
			var list entryList
			var tags []byTags
			for range n {
				e := one()
				list, tags = append(list, e), append(tags, byTags(e))
			}
			got, want := codec.MustMarshal(list), codec.MustMarshal(tags)
			if !bytes.Equal(got, want) {
				t.Fatalf("seed %d: %+v\nare %x\nnot %x", seed, list, got, want)
			}
			var back entryList
			if err := codec.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, list) {
				t.Fatalf("seed %d: %+v\nare read as %+v, %v", seed, list, back, err)
			}
		}
	}
}

// What else there may be in an entry, from a version to come or somebody hostile, is passed
// over or refused as it is by reflection, but that an entry is a map and nothing else.
func TestOddEntriesAreReadAsTheirTagsSay(t *testing.T) {
	long := strings.Repeat("a name from the future ", 20)
	for name, odd := range map[string]any{
		"none":                 nil,
		"unknown":              []any{map[string]any{"a": []any{1, "b"}, "path": "p", long: map[string]any{"size": 3}, "size": 7}},
		"nothing in a field":   []any{map[string]any{"path": nil, "dir": nil, "exec": nil, "mode": nil, "size": nil, "chunks": nil, "link": nil}},
		"part of a hash":       []any{map[string]any{"chunks": make([]byte, 33)}},
		"text as hash":         []any{map[string]any{"chunks": strings.Repeat("h", 32)}},
		"text as size":         []any{map[string]any{"size": "7"}},
		"number as path":       []any{map[string]any{"path": 7}},
		"list as directory":    []any{map[string]any{"dir": []any{}}},
		"numbers for names":    []any{map[int]any{1: 2}},
		"no list":              map[string]any{"path": "p"},
		"entry without fields": []any{map[string]any{}},
	} {
		b := codec.MustMarshal(odd)
		var list entryList
		var tags []byTags
		err, want := codec.Unmarshal(b, &list), codec.Unmarshal(b, &tags)
		if (err == nil) != (want == nil) {
			t.Errorf("%s: %v, by reflection %v", name, err, want)
			continue
		}
		if err != nil {
			continue
		}
		for i, e := range list {
			if !reflect.DeepEqual(byTags(e), tags[i]) {
				t.Errorf("%s: %+v, by reflection %+v", name, e, tags[i])
			}
		}
		if len(list) != len(tags) {
			t.Errorf("%s: %d entries, by reflection %d", name, len(list), len(tags))
		}
	}
}

// The codec does not look into extensions: what is in one is not read as an entry.
func TestExtensionsAreNoEntries(t *testing.T) {
	deep := append([]byte{0x81, 0xa1, 'x'}, bytes.Repeat([]byte{0x91}, 1000)...) // a field unknown, a thousand lists deep
	for name, inside := range map[string][]byte{
		"entry":         append([]byte{0x81, 0xa4}, "path\xa1p"...),
		"deep":          deep,
		"endless name":  {0x81, 0xdb, 0xff, 0xff, 0xff, 0xff},
		"endless list":  append([]byte{0x81, 0xa6}, "chunks\xc6\xff\xff\xff\xe0"...),
		"endless path":  append([]byte{0x81, 0xa4}, "path\xdb\xff\xff\xff\xe0"...),
		"entries of it": {0xdf, 0xff, 0xff, 0xff, 0xff},
	} {
		for how, head := range map[string][]byte{
			"ext8":  {0xc7, byte(len(inside)), 7},
			"ext16": {0xc8, byte(len(inside) >> 8), byte(len(inside)), 7},
			"ext32": {0xc9, 0, 0, byte(len(inside) >> 8), byte(len(inside)), 7},
		} {
			if how == "ext8" && len(inside) > 255 {
				continue
			}
			b := slices.Concat([]byte{0x91}, head, inside)
			if err := codec.Unmarshal(b, new(entryList)); !errors.Is(err, codec.ErrMalformed) || !strings.Contains(err.Error(), "an extension for an entry") {
				t.Errorf("%s in %s: %v", name, how, err)
			}
			if _, err := DecodeManifest(append([]byte(magic), b...)); !errors.Is(err, ErrManifest) {
				t.Errorf("%s in %s: manifest: %v", name, how, err)
			}
		}
	}
	list := slices.Concat([]byte{0x91, 0x97}, []byte{0xa1, 'p', 0xc2, 0xc2, 0, 0, 0xc0, 0xa0}) // its fields in their order
	if err := codec.Unmarshal(list, new(entryList)); !errors.Is(err, codec.ErrMalformed) {
		t.Errorf("a list of fields: %v", err)
	}
}

// FuzzEntries looks for entries that are read otherwise than their tags say.
func FuzzEntries(f *testing.F) {
	f.Add(codec.MustMarshal([]byTags{{Path: "p", Size: 7, Chunks: HashList{HashOf(nil)}}, {Path: "q", Dir: true}, {Path: "r", Link: "p"}, {Path: "s", Exec: true, Mode: 0o711}}))
	f.Add([]byte{0x91, 0xc7, 2, 7, 0x80, 0xc0})
	f.Add([]byte{0x91, 0x81, 0xa1, 'x', 0x91, 0x91, 0xc0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var list entryList
		if codec.Unmarshal(b, &list) != nil {
			return // some forms are read by reflection alone
		}
		var tags []byTags
		if err := codec.Unmarshal(b, &tags); err != nil || len(tags) != len(list) {
			t.Fatalf("%+v: by reflection %+v, %v", list, tags, err)
		}
		for i, e := range list {
			if string(codec.MustMarshal(byTags(e))) != string(codec.MustMarshal(tags[i])) {
				t.Fatalf("%+v: by reflection %+v", e, tags[i])
			}
		}
	})
}

// BenchmarkEntries compares the encoding of entries with that by reflection.
func BenchmarkEntries(b *testing.B) {
	list := make(entryList, 100_000)
	tags := make([]byTags, len(list))
	for i := range list {
		list[i] = Entry{Path: fmt.Sprintf("dir%03d/file%06d", i/1000, i), Size: 1000, Chunks: HashList{HashOf(fmt.Append(nil, i))}}
		tags[i] = byTags(list[i])
	}
	all := codec.MustMarshal(list)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			codec.MustMarshal(list)
		}
	})
	b.Run("encode-by-reflection", func(b *testing.B) {
		for b.Loop() {
			codec.MustMarshal(tags)
		}
	})
	decode := func(b *testing.B, into func() any) {
		for b.Loop() {
			if err := codec.UnmarshalLarge(all, into(), MaxEntries); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("decode", func(b *testing.B) { decode(b, func() any { return new(entryList) }) })
	b.Run("decode-by-reflection", func(b *testing.B) { decode(b, func() any { return new([]byTags) }) })
}
