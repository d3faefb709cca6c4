package flood

import (
	"testing"

	"zorilla/internal/golden"
)

// TestGoldenMessages reads the copies of floods that earlier versions sent. What
// today's look like is pinned by TestGoldenPacket.
func TestGoldenMessages(t *testing.T) {
	golden.Messages(t, "messages", map[string]golden.Message{
		"flood": {Bytes: encode(sampleMessage()), Decode: func(b []byte) (any, error) { return decode(b) }, Varies: true},
	})
}
