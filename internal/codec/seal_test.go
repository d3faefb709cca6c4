package codec_test

import (
	"bytes"
	"errors"
	"testing"

	"zorilla/internal/codec"
)

func TestEveryBitOfASealedValue(t *testing.T) {
	plain := codec.MustMarshal(map[string]int{"code": 3, "stdout": 71})
	sealed := codec.Seal(plain)
	if got, err := codec.Unseal(sealed); err != nil || !bytes.Equal(got, plain) {
		t.Fatalf("got %x, %v", got, err)
	}
	for bit := range 8 * len(sealed) {
		spoiled := bytes.Clone(sealed)
		spoiled[bit/8] ^= 1 << (bit % 8)
		if _, err := codec.Unseal(spoiled); !errors.Is(err, codec.ErrMalformed) || codec.Unsealed(spoiled) {
			t.Errorf("bit %d: got %v, unsealed is %v", bit, err, codec.Unsealed(spoiled))
		}
	}
	for size := range sealed {
		if _, err := codec.Unseal(sealed[:size]); !errors.Is(err, codec.ErrMalformed) {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
	if _, err := codec.Unseal(plain); err == nil || !codec.Unsealed(plain) {
		t.Errorf("what was never sealed: %v", err)
	}
}
