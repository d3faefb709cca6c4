package exchange_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/transfer"
	"zorilla/vicinity"
)

// thin is a link over which 20 kB come in a second.
type thin struct{ *bytes.Reader }

func (r thin) Read(b []byte) (int, error) {
	time.Sleep(time.Second)
	return r.Reader.Read(b[:min(len(b), 20_000)])
}

func (thin) Close() error { return nil }

// While a chunk comes that takes a minute it is told again and again that it does.
func TestSlowFetchTellsThatItGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newNetwork()
		h, m := sw.add(t, 2, "tail")
		sw.act["za"] = func(_ context.Context, want transfer.Hash) (io.ReadCloser, error) {
			data, err := sw.store.Get(want, nil)
			return thin{bytes.NewReader(data)}, err
		}
		store := transfer.NewMemStore(0)
		last, longest := time.Now(), time.Duration(0)
		if _, _, err := sw.fetcher(store, 1).Fetch(t.Context(), "job", h, []vicinity.ID{"za"}, func(transfer.Stats) {
			longest = max(longest, time.Since(last))
			last = time.Now()
		}); err != nil {
			t.Fatal(err)
		}
		complete(t, store, m)
		if longest > 10*time.Second {
			t.Errorf("nothing was told for %v", longest)
		}
	})
}
