package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"zorilla/jobs/work"
)

func samples() []message {
	return []message{
		{Kind: kindHello, Version: protocol, Key: "K", Input: true},
		{Kind: kindAck, Stdout: 1 << 40, Stderr: 3},
		{Kind: kindStop, Grace: 5 * time.Second},
		{Kind: kindStop, Notice: time.Minute, Grace: 5 * time.Second},
		{Kind: kindSignal, Signal: 10},
		{Kind: kindTasks, Added: 7, Ranges: []TaskRange{{7, 500}, {3, 1}}, Last: true},
		{Kind: kindProgress, Stdout: 70_000},
		{Kind: kindRefused, Text: "wrong key"},
		{Kind: "of the future"},
	}
}

func encode(t testing.TB, m message) []byte {
	var b bytes.Buffer
	if err := writeMessage(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestMessagesRoundTrip(t *testing.T) {
	var all bytes.Buffer
	for _, m := range samples() {
		all.Write(encode(t, m))
	}
	for _, want := range samples() {
		if got, err := readMessage(&all); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := readMessage(&all); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// The bytes of a message are a promise to supervisors that are older than
// their node.
func TestMessageBytes(t *testing.T) {
	want := "\x00\x00\x00\x1a" + "\x83\xa4kind\xa3ack\xa6stdout\x07\xa6stderr\x08"
	if got := string(encode(t, message{Kind: kindAck, Stdout: 7, Stderr: 8})); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMalformedMessagesAreRefused(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	for name, b := range map[string][]byte{
		"huge":        {0xff, 0xff, 0xff, 0xff},
		"not msgpack": {0, 0, 0, 1, 0xc1},
		"not a map":   {0, 0, 0, 1, 0x01},
		"negative":    encode(t, message{Kind: kindAck, Stdout: -1}),
		"no signal":   encode(t, message{Kind: kindSignal}),
		"bad signal":  encode(t, message{Kind: kindSignal, Signal: 65}),
		"long grace":  encode(t, message{Kind: kindStop, Grace: 1 << 62}),
		"long text":   encode(t, message{Kind: kindRefused, Text: long}),
		"long key":    encode(t, message{Kind: kindHello, Key: long}),
	} {
		if m, err := readMessage(bytes.NewReader(b)); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
	whole := encode(t, samples()[0])
	for n := 1; n < len(whole); n++ {
		if _, err := readMessage(bytes.NewReader(whole[:n])); err != io.ErrUnexpectedEOF {
			t.Errorf("first %d bytes: %v", n, err)
		}
	}
}

func FuzzReadMessage(f *testing.F) {
	for _, m := range samples() {
		f.Add(encode(f, m))
	}
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readMessage(bytes.NewReader(b))
		if err != nil {
			return
		}
		if again, err := readMessage(bytes.NewReader(encode(t, m))); err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

func chunk(text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + text
}

func TestChunks(t *testing.T) {
	for name, c := range map[string]struct {
		in, out string
		fails   bool
	}{
		"ended":      {in: chunk("hello ") + chunk("world") + chunk(""), out: "hello world"},
		"empty":      {in: chunk("")},
		"broken off": {in: chunk("hello"), out: "hello", fails: true},
		"in a chunk": {in: chunk("hello")[:7], out: "hel", fails: true},
		"in a head":  {in: chunk("hello") + "\x00", out: "hello", fails: true},
		"too large":  {in: "\xff\xff\xff\xff", fails: true},
	} {
		var out strings.Builder
		if err := copyChunks(&out, strings.NewReader(c.in)); (err != nil) != c.fails || out.String() != c.out {
			t.Errorf("%s: %q, %v", name, out.String(), err)
		}
	}
}

func FuzzCopyChunks(f *testing.F) {
	f.Add([]byte(chunk("hello") + chunk("")))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		if copyChunks(&out, bytes.NewReader(b)) == nil && out.Len()+4 > len(b) {
			t.Fatalf("%d bytes made %d", len(b), out.Len())
		}
	})
}

// Whoever finds the socket but does not know the key is sent away, and does
// not disturb the node.
func TestStrangersAreRefused(t *testing.T) {
	spec := script(t, "echo started; read line; echo $line")
	spec.Stdin = true
	w := start(t, Config{}, spec)
	awaitOutput(t, w, 8)
	if err := loadSpec(spec.Root, &spec); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m    message
		want string
	}{
		"wrong key":   {message{Kind: kindHello, Version: protocol, Key: "guess"}, "wrong key"},
		"no key":      {message{Kind: kindHello, Version: protocol}, "wrong key"},
		"other times": {message{Kind: kindHello, Version: protocol + 1, Key: spec.terms.Key}, "is not spoken"},
		"rude":        {message{Kind: kindStop}, "hello first"},
	} {
		conn, err := dialSocket(spec.terms.Socket)
		if err != nil {
			t.Fatal(err)
		}
		if err := writeMessage(conn, c.m); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(deadline))
		if m, err := readMessage(conn); err != nil || m.Kind != kindRefused || !strings.Contains(m.Text, c.want) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
		if _, err := readMessage(conn); err != io.EOF {
			t.Errorf("%s: the connection goes on: %v", name, err)
		}
		_ = conn.Close()
	}
	if _, err := w.Stdin().Write([]byte("undisturbed\n")); err != nil {
		t.Fatal(err)
	}
	if e := await(t, w); e.Code != 0 || output(t, w, work.Stdout) != "started\nundisturbed\n" {
		t.Errorf("%+v", e)
	}
}
