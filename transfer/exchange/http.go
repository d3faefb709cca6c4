package exchange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"zorilla/internal/codec"
	"zorilla/transfer"
	"zorilla/transfer/swarm"
	"zorilla/vicinity"
)

// HTTP asks the Handlers of other nodes, as a Source and as Trees.
type HTTP struct {
	Client *http.Client
	Files  *http.Client             // for the chunks of large trees; nil = Client
	URL    func(vicinity.ID) string // the address of a node, such as "https://host:port"; "" = it is not known
}

// Blob is a Source.
func (c *HTTP) Blob(ctx context.Context, holder vicinity.ID, h transfer.Hash) (io.ReadCloser, error) {
	return c.blob(ctx, c.Client, holder, h)
}

// Bulk is a Source for chunks of large trees.
func (c *HTTP) Bulk(ctx context.Context, holder vicinity.ID, h transfer.Hash) (io.ReadCloser, error) {
	return c.blob(ctx, c.files(), holder, h)
}

func (c *HTTP) files() *http.Client { return cmp.Or(c.Files, c.Client) }

func (c *HTTP) blob(ctx context.Context, client *http.Client, holder vicinity.ID, h transfer.Hash) (io.ReadCloser, error) {
	resp, err := c.do(ctx, client, http.MethodGet, holder, BlobPath+h.String(), nil)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusOK:
		return resp.Body, nil
	case http.StatusNotFound:
		err = fmt.Errorf("%w: %s", transfer.ErrNotFound, h)
	default:
		err = unexpected(resp)
	}
	resp.Body.Close()
	return nil, err
}

func (c *HTTP) do(ctx context.Context, client *http.Client, method string, holder vicinity.ID, path string, body io.Reader) (*http.Response, error) {
	base := c.URL(holder)
	if base == "" {
		return nil, errors.New("no address known")
	}
	var conn net.Conn // of an answer that may be large
	if client == c.files() {
		ctx = connOf(ctx, &conn)
	}
	req, err := http.NewRequestWithContext(ctx, method, base+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err == nil && conn != nil {
		gather(resp, conn)
	}
	return resp, err
}

func unexpected(resp *http.Response) error {
	return fmt.Errorf("answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
}

// ask asks about a tree. The caller closes the body of the answer.
func (c *HTTP) ask(ctx context.Context, client *http.Client, holder vicinity.ID, tree transfer.Hash, what string, question any) (*http.Response, error) {
	resp, err := c.do(ctx, client, http.MethodPost, holder, TreePath+tree.String()+what, bytes.NewReader(codec.MustMarshal(question)))
	if err != nil {
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusConflict:
		return resp, nil
	case resp.StatusCode == http.StatusNotFound && resp.Header.Get(treeHeader) != "":
		err = fmt.Errorf("%w: of tree %s", transfer.ErrNotFound, tree)
	case resp.StatusCode == http.StatusNotFound:
		err = ErrOlder
	default:
		err = unexpected(resp)
	}
	resp.Body.Close()
	return nil, err
}

// maxState bounds an answer about a state: two million chunks, and whom it names.
const maxState = 512 << 10

// State implements Trees.
func (c *HTTP) State(ctx context.Context, holder vicinity.ID, tree transfer.Hash, since uint64) (so swarm.State, err error) {
	resp, err := c.ask(ctx, c.Client, holder, tree, "/state", stateQuestion{since})
	if err != nil {
		return so, err
	}
	defer resp.Body.Close()
	var a stateAnswer
	if err := decode(resp.Body, maxState, &a); err != nil {
		return so, err
	}
	so = swarm.State{Version: a.Version, Seed: a.Seed, Peers: a.Peers[:min(len(a.Peers), maxNamed)]}
	return so, so.Has.UnmarshalBinary(a.Has)
}

// Chunk implements Trees.
func (c *HTTP) Chunk(ctx context.Context, holder vicinity.ID, tree transfer.Hash, want Want) (int, io.ReadCloser, error) {
	set, _ := want.Chunks.MarshalBinary() // never fails
	resp, err := c.ask(ctx, c.files(), holder, tree, "/chunk", chunkQuestion{set, want.From, want.Insist})
	if err != nil {
		return 0, nil, err
	}
	if resp.StatusCode == http.StatusConflict {
		defer resp.Body.Close()
		var a givenAnswer
		if err := decode(resp.Body, maxAsk, &a); err != nil {
			return 0, nil, err
		}
		return 0, nil, &GivenError{a.To[:min(len(a.To), maxNamed)]}
	}
	i, err := strconv.Atoi(resp.Header.Get(chunkHeader))
	if err != nil {
		resp.Body.Close()
		return 0, nil, errors.New("it does not say which chunk it sends")
	}
	return i, resp.Body, nil
}

// decode reads an answer of at most that many bytes.
func decode(r io.Reader, limit int64, a any) error {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return err
	}
	if int64(len(b)) > limit {
		return fmt.Errorf("an answer of more than %d bytes", limit)
	}
	return codec.Unmarshal(b, a)
}
