package transfer_test

import (
	"encoding/json"
	"testing"

	"zorilla/internal/codec"
	"zorilla/transfer"
)

func TestHashIsTextInJSONAndOnTheWire(t *testing.T) {
	type holder struct {
		H transfer.Hash `json:"h"`
		Z transfer.Hash `json:"z,omitzero"`
	}
	in := holder{H: transfer.HashOf([]byte("a"))}
	const text = "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
	b, err := json.Marshal(in)
	if err != nil || string(b) != `{"h":"`+text+`"}` {
		t.Errorf("got %s, %v", b, err)
	}
	var out holder
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Errorf("JSON: got %v, %v", out, err)
	}
	out = holder{}
	if err := codec.Unmarshal(codec.MustMarshal(in), &out); err != nil || out != in {
		t.Errorf("msgpack: got %v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"h":"sha256:00"}`), &out); err == nil {
		t.Error("a short hash was accepted")
	}
}
