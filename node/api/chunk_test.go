package api

import (
	"bytes"
	"net/http/httptest"
	"testing"

	"zorilla/transfer"
)

// The room for chunks that clients send is kept, whatever they send next.
func TestRoomForChunksIsKept(t *testing.T) {
	buf := chunkBuffers.New().(*bytes.Buffer)
	for _, size := range []int{transfer.ChunkSize, 1, transfer.ChunkSize - 1, transfer.ChunkSize} {
		sent := bytes.Repeat([]byte{byte(size)}, size)
		buf.Reset()
		if err := readInto(buf, httptest.NewRequest("PUT", "/", bytes.NewReader(sent)), transfer.MaxBlob); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf.Bytes(), sent) || !isChunkRoom(buf) {
			t.Errorf("%d bytes: room for %d is not kept", size, buf.Cap())
		}
	}
	buf.Grow(2 * transfer.ChunkSize)
	if isChunkRoom(buf) {
		t.Errorf("room for %d is kept", buf.Cap())
	}
}
