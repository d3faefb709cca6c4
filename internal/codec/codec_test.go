package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

type sample struct {
	Name  string            `json:"name"`
	Count int               `json:"count,omitempty"`
	Wait  Duration          `json:"wait"`
	Env   map[string]string `json:"env,omitempty"`
	Raw   []byte            `json:"raw,omitempty"`
	Kids  []sample          `json:"kids,omitempty"`
}

func TestRoundTrip(t *testing.T) {
	in := sample{Name: "a", Count: 70000, Wait: Duration(1500 * time.Millisecond), Env: map[string]string{"b": "2", "a": "1"}, Raw: []byte{0, 1}, Kids: []sample{{Name: "kid"}}}
	b := MustMarshal(in)
	if !bytes.Equal(b, MustMarshal(in)) {
		t.Fatal("the same value has two encodings")
	}
	var out sample
	if err := Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if out.Name != in.Name || out.Count != in.Count || out.Wait != in.Wait || out.Env["b"] != "2" || !bytes.Equal(out.Raw, in.Raw) || out.Kids[0].Name != "kid" {
		t.Fatalf("got %+v, want %+v", out, in)
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	b := MustMarshal(map[string]any{"name": "x", "from the future": []any{1, map[string]any{"deep": true}}})
	var out sample
	if err := Unmarshal(b, &out); err != nil || out.Name != "x" {
		t.Fatalf("got %+v, %v", out, err)
	}
}

func TestHostileInputIsRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty":             {},
		"two values":        {1, 2},
		"short string":      {0xd9, 200, 'a'},
		"huge array":        {0xdd, 0xff, 0xff, 0xff, 0xff},
		"huge map":          {0xdf, 0xff, 0xff, 0xff, 0xff, 1, 2},
		"million deep":      bytes.Repeat([]byte{0x91}, 1<<20),
		"million structs":   append([]byte{0x81, 0xa4, 'k', 'i', 'd', 's', 0xdd, 0, 0x10, 0, 0}, bytes.Repeat([]byte{0x80}, 1<<20)...),
		"reserved byte":     {0xc1},
		"truncated integer": {0xcf, 1, 2},
	} {
		var out sample
		if err := Unmarshal(b, &out); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", name, err)
		}
	}
}

func TestDurationIsSecondsInJSON(t *testing.T) {
	b, err := json.Marshal(Duration(1500 * time.Millisecond))
	if err != nil || string(b) != "1.5" {
		t.Fatalf("got %s, %v", b, err)
	}
	var d Duration
	if err := json.Unmarshal([]byte("0.25"), &d); err != nil || d != Duration(250*time.Millisecond) {
		t.Fatalf("got %v, %v", d, err)
	}
	for _, long := range []Duration{math.MaxInt64, math.MinInt64} { // what is written can be read
		b, err := json.Marshal(long)
		if err == nil {
			err = json.Unmarshal(b, &d)
		}
		if err != nil || (d < 0) != (long < 0) {
			t.Errorf("%d: %s, %v", long, b, err)
		}
	}
	for _, bad := range []string{`"x"`, "1e300", "NaN"} {
		if err := d.UnmarshalJSON([]byte(bad)); err == nil {
			t.Errorf("%s was accepted as %v", bad, d)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(MustMarshal(sample{Name: "seed", Kids: []sample{{}}}))
	f.Add([]byte(strings.Repeat("\x91", 40)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s sample
		if Unmarshal(b, &s) != nil {
			return
		}
		again := MustMarshal(s)
		var s2 sample
		if err := Unmarshal(again, &s2); err != nil {
			t.Fatalf("own encoding %x is refused: %v", again, err)
		}
		if !bytes.Equal(again, MustMarshal(s2)) {
			t.Fatalf("%x changes when encoded again", again)
		}
	})
}
