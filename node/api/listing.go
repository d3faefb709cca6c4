package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// pieceSize is about how many bytes of a listing are sent, and read, at once.
const pieceSize = 16 << 10

// answerList makes a handler of a function whose result is sent as a JSON array with
// one element a line. A piece is on its way as soon as it is encoded, so that a
// client decodes the first while the last are written.
func answerList[T any](f func(*http.Request) ([]T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		items, err := f(r)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		out := bufio.NewWriterSize(w, pieceSize)
		enc := json.NewEncoder(out)
		_ = out.WriteByte('[') // what fails here fails again in Flush
		for i := range items {
			if i > 0 {
				_ = out.WriteByte(',')
			}
			if err := enc.Encode(&items[i]); err != nil {
				return // the client is gone
			}
		}
		_, _ = out.WriteString("]\n")
		_ = out.Flush() // the client is gone if this fails
	}
}

// getList asks for a listing and decodes it as it comes.
func getList[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body := &noting{Reader: io.LimitReader(resp.Body, maxAnswer)}
	list, err := decodeList[T](json.NewDecoder(bufio.NewReaderSize(body, pieceSize)))
	switch {
	case body.err != nil:
		return nil, c.broken(ctx, body.err)
	case err != nil:
		return nil, unreadable(err)
	}
	return list, nil
}

// unreadable is the error of an answer that is not what was asked for.
func unreadable(err error) error {
	return fmt.Errorf("%w: the node's answer cannot be read: %v", ErrUnavailable, err)
}

// decodeList reads an array. It is not nil if it is empty.
func decodeList[T any](dec *json.Decoder) ([]T, error) {
	if begin, err := dec.Token(); err != nil {
		return nil, err
	} else if begin != json.Delim('[') {
		return nil, errors.New("it is no list")
	}
	list := []T{}
	for dec.More() {
		var zero T
		list = append(list, zero)
		if err := dec.Decode(&list[len(list)-1]); err != nil {
			return nil, err
		}
	}
	_, err := dec.Token()
	return list, err
}

// noting keeps the error, other than its end, that reading ran into.
type noting struct {
	io.Reader
	err error
}

func (n *noting) Read(b []byte) (int, error) {
	k, err := n.Reader.Read(b)
	if err != io.EOF {
		n.err = err
	}
	return k, err
}
