package session

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFrames(t *testing.T) {
	start := &Start{Args: []string{"sh", "-c", "echo \xff"}, Env: []string{"A=", "B=x=y"}, Terminal: &Size{24, 80}}
	exit := Exit{Code: 137, Text: "the worker has ended"}
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := errors.Join(w.Start(start), w.Write(KindInput, make([]byte, MaxData)), w.Write(KindClose, nil), w.Resize(Size{1, 65535}),
		w.Signal(64), w.Taken(Window), w.Exit(exit)); err != nil {
		t.Fatal(err)
	}
	r := NewReader(iotest.OneByteReader(&b))
	if got, err := ReadStart(r); err != nil || !reflect.DeepEqual(got, start) {
		t.Errorf("%+v, %v", got, err)
	}
	next := func(want Kind) []byte {
		kind, data, err := r.Next()
		if err != nil || kind != want {
			t.Fatalf("kind %d, %v, want %d", kind, err, want)
		}
		return data
	}
	if data := next(KindInput); len(data) != MaxData {
		t.Errorf("%d bytes of input", len(data))
	}
	next(KindClose)
	if s, err := ParseSize(next(KindResize)); err != nil || s != (Size{1, 65535}) {
		t.Errorf("%+v, %v", s, err)
	}
	if n, err := ParseSignal(next(KindSignal)); err != nil || n != 64 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := ParseTaken(next(KindTaken)); err != nil || n != Window {
		t.Errorf("%d, %v", n, err)
	}
	if e, err := ParseExit(next(KindExit)); err != nil || e != exit {
		t.Errorf("%+v, %v", e, err)
	}
	if _, _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// What nobody honest says is refused, by who would say it and by who hears it.
func TestMalformed(t *testing.T) {
	w := NewWriter(io.Discard)
	long := strings.Repeat("x", maxStart)
	for name, err := range map[string]error{
		"no command":         w.Start(&Start{}),
		"an empty command":   w.Start(&Start{Args: []string{""}}),
		"a zero byte":        w.Start(&Start{Args: []string{"a\x00"}}),
		"no variable":        w.Start(&Start{Args: []string{"a"}, Env: []string{"=x"}}),
		"too long a command": w.Start(&Start{Args: []string{long}}),
		"too many words":     w.Start(&Start{Args: make([]string, maxWords+1)}),
		"too much input":     w.Write(KindInput, make([]byte, MaxData+1)),
		"signal 0":           w.Signal(0),
		"signal 65":          w.Signal(65),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bytes := range map[string]string{
		"too long a frame": "\x02\x00\x01\x00\x00",
		"too long a start": "\x01\x7f\xff\xff\xff",
		"no start":         "\x02\x00\x00\x00\x00",
		"senseless":        "\x01\x00\x00\x00\x01\xc1",
		"no words":         "\x01\x00\x00\x00\x01\x80",
	} {
		if _, err := ReadStart(NewReader(strings.NewReader(bytes))); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := NewReader(strings.NewReader("\x02\x00\x00\x00\x01")).Next(); err != io.ErrUnexpectedEOF {
		t.Errorf("half a frame: %v", err)
	}
	for name, err := range map[string]error{
		"a size":   second(ParseSize([]byte{1})),
		"a signal": second(ParseSignal([]byte{0})),
		"taken":    second(ParseTaken([]byte{0xff, 0, 0, 0})),
		"an exit":  second(ParseExit([]byte{0xc1})),
	} {
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzReader(f *testing.F) {
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := errors.Join(w.Start(&Start{Args: []string{"a"}}), w.Signal(2), w.Exit(Exit{Code: 1})); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x14\x00\x00\x00\x07\x81\xa4code\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		if s, err := ReadStart(r); err == nil {
			var again bytes.Buffer
			if err := NewWriter(&again).Start(s); err != nil {
				t.Fatalf("%+v cannot be said again: %v", s, err)
			}
			if got, err := ReadStart(NewReader(&again)); err != nil || !reflect.DeepEqual(got, s) {
				t.Fatalf("%+v became %+v, %v", s, got, err)
			}
		}
		for {
			kind, data, err := r.Next()
			if err != nil {
				return
			}
			if len(data) > maxStart {
				t.Fatalf("%d bytes of kind %d", len(data), kind)
			}
			if n, err := ParseTaken(data); err == nil && n > Window {
				t.Fatalf("taken %d", n)
			}
			if n, err := ParseSignal(data); err == nil && (n < 1 || n > maxSignal) {
				t.Fatalf("signal %d", n)
			}
			if e, err := ParseExit(data); err == nil && (e.Code < 0 || e.Code > 255 || len(e.Text) > maxText) {
				t.Fatalf("exit %+v", e)
			}
		}
	})
}
