package transfer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
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
// over or refused as it is by reflection.
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
