package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Contents is what a store holds, and for whom.
type Contents struct {
	Usage
	Limit int64  `json:"limit"` // bytes of what nobody needs; beyond it what was not used for longest goes
	Needs []Need `json:"needs"` // the largest first; blobs that several need count for each
}

// Need is what one owner of pins needs.
type Need struct {
	Owner string `json:"owner"`
	Blobs int    `json:"blobs"` // that are held
	Bytes int64  `json:"bytes"` // of these
}

// Checked is what Verify has done.
type Checked struct {
	Blobs   int    `json:"blobs"` // that were read
	Bytes   int64  `json:"bytes"` // of these
	Damaged []Hash `json:"damaged"`
}

// Pruned is what Prune has removed.
type Pruned struct {
	Blobs int   `json:"blobs"`
	Bytes int64 `json:"bytes"`
}

// Keeper is a store that can be looked after.
type Keeper interface {
	// Contents tells what is held.
	Contents() Contents
	// Verify reads all that is held, and removes what is damaged: whoever needs it
	// fetches it again, if it is anywhere.
	Verify(ctx context.Context) (Checked, error)
	// Prune removes what nobody needs.
	Prune() Pruned
}

var _ Keeper = (*DirStore)(nil)

// Contents implements Keeper.
func (s *DirStore) Contents() Contents {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Contents{Usage: s.index.usage(), Limit: s.index.limit, Needs: []Need{}}
	for owner, hashes := range s.index.owners {
		n := Need{Owner: owner}
		for h := range hashes {
			if it := s.index.items[h]; it != nil {
				n.Blobs++
				n.Bytes += it.size
			}
		}
		if n.Blobs > 0 {
			c.Needs = append(c.Needs, n)
		}
	}
	slices.SortFunc(c.Needs, func(a, b Need) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Owner, b.Owner))
	})
	return c
}

// Prune implements Keeper. Before eviction starts it is not known what is needed.
func (s *DirStore) Prune() Pruned {
	s.mu.Lock()
	before := s.index.looseSum
	victims := s.index.evict(0)
	p := Pruned{Blobs: len(victims), Bytes: before - s.index.looseSum}
	s.mu.Unlock()
	s.delete(victims)
	s.sweep()
	return p
}

// Verify implements Keeper. It trusts nothing that was found out before.
func (s *DirStore) Verify(ctx context.Context) (Checked, error) {
	s.mu.Lock()
	all := make([]Hash, 0, len(s.index.items))
	for h := range s.index.items {
		all = append(all, h)
	}
	s.mu.Unlock()
	c := Checked{Damaged: []Hash{}}
	var buf []byte
	for _, h := range all {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		var damaged bool
		var err error
		buf, damaged, err = inspect(s, h, buf)
		switch {
		case err != nil:
			return c, fmt.Errorf("verify blobs: %w", err)
		case damaged:
			c.Damaged = append(c.Damaged, h)
		case buf != nil:
			c.Blobs++
			c.Bytes += int64(len(buf))
		}
	}
	return c, nil
}

// inspect compares a blob with its name whatever is known of it, and removes it if it is
// another; one that was evicted meanwhile is neither returned nor damaged.
func inspect(s *DirStore, h Hash, buf []byte) (data []byte, damaged bool, err error) {
	s.claims.take(h)
	defer s.claims.release(h)
	if !s.known(h).held {
		return nil, false, nil
	}
	s.note(func(it *item) {
		it.seen = Stamp{}
		for i := range it.refs {
			it.refs[i].forget()
		}
	}, h)
	data, err = s.getClaimed(h, buf)
	if errors.Is(err, ErrNotFound) {
		return nil, true, nil
	}
	return data, false, err
}
