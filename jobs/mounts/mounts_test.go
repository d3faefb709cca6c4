package mounts

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"/data": "/data:ro", "/data:ro": "/data:ro", "/data/:rw": "/data:rw", "/a/../b": "/b:ro", "/": "/:ro", "/:rw": "/:rw",
		"/odd:name:ro": "/odd:name:ro", "/odd:name": "", "/data:rx": "", "/odd:dir/name": "/odd:dir/name:ro", "/twice:ro:rw": "/twice:ro:rw", "/with space:rw": "/with space:rw",
		"": "", ":rw": "", "data": "", "~/data": "", "./data:ro": "", "/a,b": "", "/a\nb": "", "/" + strings.Repeat("x", MaxPath): "",
	} {
		p, err := Parse(text)
		if (err == nil) != (want != "") || err == nil && p.String() != want {
			t.Errorf("%q: got %q, %v, want %q", text, p, err, want)
		}
		if again, err2 := Parse(p.String()); err == nil && (err2 != nil || again != p) {
			t.Errorf("%q: %q is read as %+v, %v", text, p, again, err2)
		}
	}
	if _, err := ParseAll([]string{"/a", "/b:rw", "/a/:rw"}); err == nil {
		t.Error("a path may be there twice")
	}
}

func TestAllows(t *testing.T) {
	list, err := ParseAll([]string{"/data", "/data/new:rw", "/scratch:rw", "/scratch/kept:ro"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"/data": true, "/data/x/y": true, "/data:rw": false, "/data/new/x:rw": true, "/data/newer:rw": false, "/datas": false, "/": false,
		"/scratch/a:rw": true, "/scratch/kept": true, "/scratch/kept/x:rw": false, "/scratch/../etc": false,
	} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		backwards := slices.Clone(list)
		slices.Reverse(backwards)
		if list.Allows(p) != want || backwards.Allows(p) != want {
			t.Errorf("%s: allowed is %v, %v", text, list.Allows(p), backwards.Allows(p))
		}
	}
	if !(List{{Path: "/"}}).Allows(Path{Path: "/any"}) || (List{}).Allows(Path{Path: "/"}) {
		t.Error("/ does not hold everything, or nothing holds it")
	}
	read, write := list.Split()
	if !slices.Equal(read, []string{"/data", "/scratch/kept"}) || !slices.Equal(write, []string{"/data/new", "/scratch"}) {
		t.Errorf("split into %q and %q", read, write)
	}
}
