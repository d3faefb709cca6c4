package claims

import (
	"testing"

	"zorilla/internal/codec"
	"zorilla/jobs/internal/jobtest"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/vicinity"
)

func FuzzDecodeAdvertisement(f *testing.F) {
	f.Add(append(make([]byte, wire.SignatureLen), codec.MustMarshal(wiretest.Ad(jobtest.Node(1), "k7f3q", 4, 1))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		ad, err := wire.DecodeAdvertisement(b, wiretest.Genuine)
		if err != nil {
			return
		}
		c := New(vicinity.Member{ID: jobtest.Node(0), Slots: 4, Memory: 1 << 30}, jobtest.Rand())
		if a := c.Advertised(jobtest.Start, ad); a.Check() != nil {
			t.Fatalf("the answer %+v is not sound", a)
		}
	})
}
