package trust

import (
	"bytes"
	"errors"
	"testing"

	"zorilla/vicinity"
)

func TestSignatures(t *testing.T) {
	alice, bob := testIdentity(t, 1), testIdentity(t, 2)
	msg := []byte("eight workers, please")
	sig := alice.Sign("advertisement", msg)
	if len(sig) != SignatureSize || SignatureSize != 96 {
		t.Fatalf("%d bytes", len(sig))
	}
	if err := Verify("advertisement", alice.ID(), msg, sig); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(sig)
	flipped[95] ^= 1
	forged := append(bytes.Clone(sig[:32]), bob.Sign("advertisement", msg)[32:]...)
	for name, err := range map[string]error{
		"other domain":  Verify("grant", alice.ID(), msg, sig),
		"shifted split": Verify("advertisementei", alice.ID(), msg[2:], sig),
		"other message": Verify("advertisement", alice.ID(), msg[1:], sig),
		"other node":    Verify("advertisement", bob.ID(), msg, sig),
		"no node":       Verify("advertisement", "", msg, sig),
		"flipped bit":   Verify("advertisement", alice.ID(), msg, flipped),
		"forged":        Verify("advertisement", alice.ID(), msg, forged),
		"short":         Verify("advertisement", alice.ID(), msg, sig[:95]),
		"empty":         Verify("advertisement", alice.ID(), msg, nil),
	} {
		if !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	alice := testIdentity(f, 1)
	msg := []byte("message")
	f.Add("d", string(alice.ID()), msg, alice.Sign("d", msg))
	f.Add("", "", []byte{}, []byte{})
	f.Add("d", string(alice.ID()), msg, make([]byte, SignatureSize))
	f.Fuzz(func(t *testing.T, domain, from string, m, sig []byte) {
		if Verify(domain, vicinity.ID(from), m, sig) != nil {
			return
		}
		// Nobody but alice has a key here, and she signed one thing.
		if domain != "d" || from != string(alice.ID()) || !bytes.Equal(m, msg) || !bytes.Equal(sig, alice.Sign("d", msg)) {
			t.Fatalf("forged: %q %q %q %x", domain, from, m, sig)
		}
	})
}
