// Package codec turns Go values into bytes and back, the same way everywhere.
//
// Between nodes and on disk values travel as msgpack, read with the same
// `json` field tags that the client API uses, so that a type is described
// once. [Duration] is a length of time that reads as seconds in JSON.
//
// Decoding is meant for hostile input: [Unmarshal] refuses bytes that are
// nested too deeply or that go on after the value, and ignores fields it does
// not know, so that messages can grow. All functions may be called from any
// goroutine.
package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// MaxDepth is the deepest nesting of arrays and maps that Unmarshal accepts.
const MaxDepth = 32

// MaxItems is how many elements of arrays, in all, Unmarshal accepts.
const MaxItems = 250_000

// ErrMalformed is wrapped by every error of Unmarshal.
var ErrMalformed = errors.New("malformed message")

// Marshal returns v as msgpack. It fails only for types that cannot be
// encoded (channels, functions), which is a mistake in the program.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.SetCustomStructTag("json")
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return buf.Bytes(), nil
}

// MustMarshal is Marshal for types that are known to be encodable: it panics
// where Marshal fails.
func MustMarshal(v any) []byte {
	b, err := Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Unmarshal reads exactly one value from b, with at most MaxItems elements of
// arrays in it, into the pointer v. Errors wrap ErrMalformed. v may be partly
// filled when an error is returned.
func Unmarshal(b []byte, v any) error { return UnmarshalLarge(b, v, MaxItems) }

// UnmarshalLarge is Unmarshal for values with more elements, up to what the
// caller allows.
func UnmarshalLarge(b []byte, v any, items int) error {
	if err := checkShape(b, items); err != nil {
		return fmt.Errorf("decode %s: %w", typeName(v), err)
	}
	dec := msgpack.NewDecoder(bytes.NewReader(b))
	dec.SetCustomStructTag("json")
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("decode %s: %w: %v", typeName(v), ErrMalformed, err)
	}
	return nil
}

func typeName(v any) string {
	return strings.TrimPrefix(reflect.TypeOf(v).String(), "*")
}

// Duration is a time.Duration that is a number of seconds in JSON. In Go it
// converts to and from time.Duration directly.
type Duration time.Duration

// maxSeconds is the longest duration that is written, and read.
const maxSeconds = 9e9

// MarshalJSON writes the duration as seconds, one of more than 285 years as so many.
func (d Duration) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%g", max(-maxSeconds, min(time.Duration(d).Seconds(), maxSeconds))), nil
}

// UnmarshalJSON reads a number of seconds. It refuses what does not fit into
// a time.Duration (about 292 years).
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s float64
	if _, err := fmt.Sscanf(string(b), "%g", &s); err != nil {
		return fmt.Errorf("duration %q is not a number of seconds", b)
	}
	if !(s >= -maxSeconds && s <= maxSeconds) {
		return fmt.Errorf("duration %q is out of range", b)
	}
	*d = Duration(math.Round(s * float64(time.Second)))
	return nil
}

// String writes the duration as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// Std returns the duration as the standard library's type.
func (d Duration) Std() time.Duration { return time.Duration(d) }
