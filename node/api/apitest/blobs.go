package apitest

import (
	"bytes"
	"context"
	"fmt"

	"zorilla/node/api"
	"zorilla/transfer"
)

// Missing implements api.Service.
func (f *Fake) Missing(_ context.Context, ask []transfer.Hash) ([]transfer.Hash, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var missing []transfer.Hash
	for _, h := range ask {
		if _, ok := f.chunks[h]; !ok {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// PutChunk implements api.Service.
func (f *Fake) PutChunk(_ context.Context, h transfer.Hash, data []byte) error {
	switch {
	case len(data) > transfer.MaxBlob:
		return fmt.Errorf("%w: chunk of %d bytes", api.ErrInvalid, len(data))
	case transfer.HashOf(data) != h:
		return fmt.Errorf("%w: chunk is not %v", api.ErrInvalid, h)
	}
	f.change(func() { f.chunks[h] = bytes.Clone(data) })
	return nil
}

// Chunk implements api.Service.
func (f *Fake) Chunk(_ context.Context, _ string, h transfer.Hash) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if data, ok := f.chunks[h]; ok {
		return bytes.Clone(data), nil
	}
	return nil, fmt.Errorf("chunk %v: %w", h, api.ErrNotFound)
}
