package transfer_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"zorilla/internal/codec"
	"zorilla/transfer"
)

var (
	hashA = transfer.HashOf([]byte("a"))
	hashB = transfer.HashOf([]byte("b"))
)

func file(p string) transfer.Entry {
	return transfer.Entry{Path: p, Size: 1, Chunks: transfer.HashList{hashA}}
}

func link(p, to string) transfer.Entry { return transfer.Entry{Path: p, Link: to} }

func TestManifestRoundTrip(t *testing.T) {
	m, err := transfer.NewManifest([]transfer.Entry{
		file("b"),
		{Path: "a-b/empty", Size: 0},
		{Path: "a/big", Exec: true, Size: transfer.ChunkSize + 1, Chunks: transfer.HashList{hashB, hashA}},
		{Path: "a/dir", Dir: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const golden = "7a6d616e31" + "94" +
		"84" + "a470617468" + "a5612f626967" + "a465786563" + "c3" + "a473697a65" + "ce00100001" + "a66368756e6b73" + "c440"
	if got := hex.EncodeToString(b); !strings.HasPrefix(got, golden) {
		t.Errorf("the layout changed: got\n%s, want\n%s...", got, golden)
	}
	got, err := transfer.DecodeManifest(b)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, e := range got.Entries {
		paths = append(paths, e.Path)
	}
	if want := []string{"a/big", "a/dir", "a-b/empty", "b"}; !reflect.DeepEqual(paths, want) {
		t.Errorf("order %q, want %q", paths, want)
	}
	if again, _ := got.Encode(); !bytes.Equal(again, b) {
		t.Error("the manifest changed when encoded again")
	}
	if got.Size() != transfer.ChunkSize+2 || got.Files() != 3 || len(got.Chunks()) != 2 {
		t.Errorf("size %d, %d files, %d chunks", got.Size(), got.Files(), len(got.Chunks()))
	}
}

func TestHostileManifests(t *testing.T) {
	long := strings.Repeat("x", 250) + "/"
	for name, entries := range map[string][]transfer.Entry{
		"empty path":         {file("")},
		"dot":                {file(".")},
		"absolute":           {file("/etc/passwd")},
		"parent":             {file("../x")},
		"parent inside":      {file("a/../../x")},
		"only parent":        {file("..")},
		"parent at the end":  {file("a/..")},
		"not clean":          {file("a//b")},
		"dot element":        {file("./a")},
		"trailing slash":     {file("a/")},
		"zero byte":          {file("a\x00b")},
		"newline":            {file("a\nb")},
		"terminal escape":    {file("a\x1b[2J")},
		"C1 control":         {file("a\u009bm")},
		"invalid UTF-8":      {file("a\xff")},
		"long element":       {file(strings.Repeat("x", 256))},
		"long path":          {file(strings.Repeat(long, 17) + "x")},
		"deep path":          {file(strings.Repeat("x/", 100) + "x")},
		"twice":              {file("a"), file("a")},
		"file and directory": {file("a"), {Path: "a", Dir: true}},
		"below a file":       {file("a"), file("a/b")},
		"deep below a file":  {file("a"), file("a/b/c")},
		"out of order":       {file("b"), file("a")},
		"bytewise order":     {file("a-b"), file("a/b")},
		"directory as file":  {{Path: "a", Dir: true, Size: 1, Chunks: transfer.HashList{hashA}}},
		"mode of a dir":      {{Path: "a", Dir: true, Mode: 0o700}},
		"mode of a link":     {{Path: "a", Link: "b", Mode: 0o700}},
		"setuid":             {{Path: "a", Exec: true, Mode: 0o4755}},
		"mode without exec":  {{Path: "a", Mode: 0o700}},
		"exec without mode":  {{Path: "a", Exec: true, Mode: 0o600}},
		"executable dir":     {{Path: "a", Dir: true, Exec: true}},
		"negative size":      {{Path: "a", Size: -1}},
		"absurd size":        {{Path: "a", Size: 1 << 62}},
		"too few chunks":     {{Path: "a", Size: transfer.ChunkSize + 1, Chunks: transfer.HashList{hashA}}},
		"too many chunks":    {{Path: "a", Size: 1, Chunks: transfer.HashList{hashA, hashB}}},
		"chunks of nothing":  {{Path: "a", Chunks: transfer.HashList{hashA}}},
		"zero hash":          {{Path: "a", Size: 1, Chunks: transfer.HashList{{}}}},
		"absolute link":      {link("a", "/etc")},
		"link out":           {link("a", "..")},
		"deeper link out":    {link("a/b/c", "../../../x")},
		"link not clean":     {link("a/b", "c/../../..")},
		"link through link":  {link("a/b/c", "../.."), link("d", "a/b/c/../..")},
		"trailing slash to":  {link("a", "b/")},
		"link with newline":  {link("a", "b\nc")},
		"link with zero":     {link("a", "b\x00c")},
		"link not UTF-8":     {link("a", "\xff")},
		"long link":          {link("a", strings.Repeat("xxxxxxx/", 512)+"x")},
		"link as directory":  {{Path: "a", Dir: true, Link: "b"}},
		"link with content":  {{Path: "a", Link: "b", Size: 1, Chunks: transfer.HashList{hashA}}},
		"executable link":    {{Path: "a", Link: "b", Exec: true}},
		"below a link":       {link("a", "b"), file("a/x"), file("b/x")},
		"link below a link":  {link("a", "b"), link("a/x", "y")},
		"below a far link":   {link("a", "b"), {Path: "a/x/y", Dir: true}},
		"link before file":   {link("a", "b"), file("a")},
		"file before link":   {file("a"), link("a", "b")},
		"two links":          {link("a", "b"), link("a", "c")},
		"link and directory": {{Path: "a", Dir: true}, link("a", "b")},
	} {
		m := transfer.Manifest{Entries: entries}
		if err := m.Validate(); !errors.Is(err, transfer.ErrManifest) {
			t.Errorf("%s: Validate: got %v, want ErrManifest", name, err)
		}
		for _, magic := range []string{"zman1", "zman2"} {
			b := append([]byte(magic), codec.MustMarshal(entries)...)
			if _, err := transfer.DecodeManifest(b); !errors.Is(err, transfer.ErrManifest) {
				t.Errorf("%s: Decode: got %v, want ErrManifest", name, err)
			}
		}
		if _, err := m.Encode(); err == nil {
			t.Errorf("%s: Encode made a blob of it", name)
		}
		dir := t.TempDir()
		if err := m.Write(t.Context(), transfer.NewMemStore(0), dir); !errors.Is(err, transfer.ErrManifest) {
			t.Errorf("%s: Write: got %v, want ErrManifest", name, err)
		}
	}
}

func TestHostileManifestBytes(t *testing.T) {
	huge := append([]byte("zman1\xdd\x03\x00\x00\x00"), bytes.Repeat([]byte{0x80}, 3<<24)...)
	for name, b := range map[string][]byte{
		"nothing":          nil,
		"no magic":         codec.MustMarshal([]transfer.Entry{file("a")}),
		"other version":    append([]byte("zman4"), codec.MustMarshal([]transfer.Entry{file("a")})...),
		"links untold":     append([]byte("zman1"), codec.MustMarshal([]transfer.Entry{link("a", "b")})...),
		"links told of":    append([]byte("zman2"), codec.MustMarshal([]transfer.Entry{file("a")})...),
		"only magic":       []byte("zman1"),
		"a map":            []byte("zman1\x80"),
		"nil entry":        []byte("zman1\x91\xc0"),
		"two values":       []byte("zman1\x90\x90"),
		"short array":      []byte("zman1\xdd\x00\x00"),
		"lying array":      []byte("zman1\xdd\x00\x0f\xff\xff\x80"),
		"too many entries": huge,
		"half a hash":      append([]byte("zman1\x91"), codec.MustMarshal(map[string]any{"path": "a", "size": 1, "chunks": make([]byte, 33)})...),
	} {
		if _, err := transfer.DecodeManifest(b); !errors.Is(err, transfer.ErrManifest) {
			t.Errorf("%s: got %v, want ErrManifest", name, err)
		}
	}
	if m, err := transfer.DecodeManifest([]byte("zman1\xc0")); err == nil && len(m.Entries) != 0 {
		t.Errorf("nil: got %v", m)
	}
}

func TestUnknownFieldsOfEntriesAreIgnored(t *testing.T) {
	b := append([]byte("zman1\x91"), codec.MustMarshal(map[string]any{"path": "a", "later": []int{1}})...)
	if m, err := transfer.DecodeManifest(b); err != nil || m.Files() != 1 {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestSaveAndLoadManifest(t *testing.T) {
	s := transfer.NewMemStore(0)
	m, _ := transfer.NewManifest([]transfer.Entry{file("a")})
	h, err := transfer.SaveManifest(s, m)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := transfer.LoadManifest(s, h); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("got %v, %v", got, err)
	}
	liar := transfer.GetterFunc(func(transfer.Hash, []byte) ([]byte, error) { return []byte("zman1\x90"), nil })
	if _, err := transfer.LoadManifest(liar, h); !errors.Is(err, transfer.ErrMismatch) {
		t.Errorf("a getter that lies: got %v", err)
	}
	if _, err := transfer.LoadManifest(s, hashA); !errors.Is(err, transfer.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	for _, entries := range [][]transfer.Entry{
		nil,
		{file("a")},
		{{Path: "a", Dir: true}, file("a/b"), file("c")},
		{link("a", "b"), {Path: "b", Dir: true}},
		{{Path: "x", Exec: true, Size: transfer.ChunkSize * 2, Chunks: transfer.HashList{hashA, hashB}}},
	} {
		f.Add(append([]byte("zman1"), codec.MustMarshal(entries)...))
		f.Add(append([]byte("zman2"), codec.MustMarshal(entries)...))
		f.Add(zman3(bundleOf(0, 2, hashA), entries...))
	}
	f.Add(zman3(append(bundleOf(1, 2, hashA), bundleOf(0, 3, hashB)...), file("a"), file("b"), file("c"), link("d", "a"), file("e"), file("f"), file("g")))
	f.Add([]byte("zman1\xdd\x00\x00\x00\x01\x80"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := transfer.DecodeManifest(b)
		if err != nil {
			if !errors.Is(err, transfer.ErrManifest) {
				t.Fatalf("%v is not ErrManifest", err)
			}
			return
		}
		for _, e := range m.Entries {
			if strings.HasPrefix(e.Path, "/") || strings.Contains("/"+e.Path+"/", "/../") {
				t.Fatalf("path %q", e.Path)
			}
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		m2, err := transfer.DecodeManifest(again)
		if err != nil {
			t.Fatal(err)
		}
		if third, _ := m2.Encode(); !bytes.Equal(again, third) {
			t.Fatalf("%x changes to %x", again, third)
		}
	})
}

func FuzzParseHash(f *testing.F) {
	for _, s := range []string{"", hashA.String(), strings.ToUpper(hashA.String()), "sha256:", "sha256:" + strings.Repeat("0", 64), "md5:00", hashA.String() + "0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := transfer.ParseHash(s)
		if err == nil && h.String() != s {
			t.Fatalf("%q reads as %q", s, h)
		}
		if err != nil && !h.IsZero() {
			t.Fatalf("%q: hash %v and error %v", s, h, err)
		}
	})
}
