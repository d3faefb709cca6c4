package transfer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"zorilla/internal/codec"
)

// These open every encoded manifest; the digit is the version. One with links, and
// one with bundles, is of a version of its own: who does not know of them would make
// empty files of links, and would look for chunks that are nowhere.
const (
	magic        = "zman1"
	magicLinks   = "zman2"
	magicBundles = "zman3"
)

// bundledTree is a manifest of the version magicBundles.
type bundledTree struct {
	Bundles []byte    `json:"bundles"`
	Entries entryList `json:"entries"`
}

// version returns what a manifest begins with.
func (m *Manifest) version() string {
	version := magic
	for i := range m.Entries {
		switch e := &m.Entries[i]; {
		case e.bundle != nil:
			return magicBundles
		case e.Link != "":
			version = magicLinks
		}
	}
	return version
}

// Encode returns the manifest as a blob. It fails if the manifest is invalid
// or too large. The same tree always has the same bytes.
func (m *Manifest) Encode() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	version, all := m.version(), any(entryList(m.Entries))
	if version == magicBundles {
		list, err := encodeBundles(m.Entries)
		if err != nil {
			return nil, err
		}
		all = bundledTree{list, m.Entries}
	}
	b, err := codec.Marshal(all)
	if err != nil {
		return nil, err
	}
	if len(b) > MaxBlob-len(magic) {
		return nil, fmt.Errorf("%w: takes %d bytes, at most %d: pack the files into fewer", ErrManifest, len(b), MaxBlob)
	}
	return append([]byte(version), b...), nil
}

// DecodeManifest reads and validates what Encode wrote. Errors wrap
// ErrManifest.
func DecodeManifest(b []byte) (Manifest, error) {
	if len(b) > MaxBlob {
		return Manifest{}, fmt.Errorf("%w: %d bytes, at most %d", ErrManifest, len(b), MaxBlob)
	}
	var t bundledTree
	version, all := string(b[:min(len(b), len(magic))]), any(&t.Entries)
	switch version {
	case magic, magicLinks:
	case magicBundles:
		all = &t
	default:
		return Manifest{}, fmt.Errorf("%w: does not begin with %s, %s or %s", ErrManifest, magic, magicLinks, magicBundles)
	}
	if err := codec.UnmarshalLarge(b[len(magic):], all, MaxEntries); err != nil {
		return Manifest{}, fmt.Errorf("%w: %v", ErrManifest, err)
	}
	if err := decodeBundles(t.Bundles, t.Entries); err != nil {
		return Manifest{}, err
	}
	m := Manifest{t.Entries}
	if want := m.version(); version != want {
		return Manifest{}, fmt.Errorf("%w: does not begin with %s, as its entries ask for", ErrManifest, want)
	}
	if err := m.Validate(); err != nil {
		return Manifest{}, err
	}
	return m, nil
}

// SaveManifest puts the manifest as a blob and returns its hash.
func SaveManifest(p Putter, m Manifest) (Hash, error) {
	b, err := m.Encode()
	if err != nil {
		return Hash{}, err
	}
	h := HashOf(b)
	return h, putVerified(p, h, b)
}

// LoadManifest gets the manifest that has the hash.
func LoadManifest(g Getter, h Hash) (Manifest, error) {
	b, err := getVerified(g, h, nil)
	if err != nil {
		return Manifest{}, err
	}
	m, err := DecodeManifest(b)
	if err != nil {
		return Manifest{}, fmt.Errorf("manifest %s: %w", h, err)
	}
	return m, nil
}

// PinManifest loads a manifest, none if the hash is zero, and pins it with its chunks
// for the owner. Chunks that are not in the store yet are kept once they come.
func PinManifest(s PinStore, owner string, h Hash) (Manifest, error) {
	if h.IsZero() {
		return Manifest{}, nil
	}
	m, err := LoadManifest(s, h)
	if err != nil {
		return m, err
	}
	m.Pin(s, owner, h)
	return m, nil
}

// entryList travels as the tags of Entry say: written in a fifth of the time that reflection takes,
// and read in half of it.
type entryList []Entry

// EncodeMsgpack implements msgpack.CustomEncoder.
func (l entryList) EncodeMsgpack(enc *msgpack.Encoder) error {
	err := enc.EncodeArrayLen(len(l))
	for i := range l {
		err = cmp.Or(err, l[i].encode(enc))
	}
	return err
}

func (e *Entry) encode(enc *msgpack.Encoder) error {
	fields := 1
	for _, there := range [...]bool{e.Dir, e.Exec, e.Mode != 0, e.Size != 0, len(e.Chunks) > 0, e.Link != ""} {
		if there {
			fields++
		}
	}
	err := cmp.Or(enc.EncodeMapLen(fields), enc.EncodeString("path"), enc.EncodeString(e.Path))
	if e.Dir {
		err = cmp.Or(err, enc.EncodeString("dir"), enc.EncodeBool(true))
	}
	if e.Exec {
		err = cmp.Or(err, enc.EncodeString("exec"), enc.EncodeBool(true))
	}
	if e.Mode != 0 {
		err = cmp.Or(err, enc.EncodeString("mode"), enc.EncodeUint(uint64(e.Mode)))
	}
	if e.Size != 0 {
		err = cmp.Or(err, enc.EncodeString("size"), enc.EncodeInt(e.Size))
	}
	if len(e.Chunks) > 0 {
		err = cmp.Or(err, enc.EncodeString("chunks"), enc.EncodeBytesLen(len(e.Chunks)*len(Hash{})))
		for i := range e.Chunks {
			if err == nil {
				_, err = enc.Writer().Write(e.Chunks[i][:])
			}
		}
	}
	if e.Link != "" {
		err = cmp.Or(err, enc.EncodeString("link"), enc.EncodeString(e.Link))
	}
	return err
}

// DecodeMsgpack implements msgpack.CustomDecoder.
func (l *entryList) DecodeMsgpack(dec *msgpack.Decoder) error {
	n, err := dec.DecodeArrayLen()
	if err != nil || n < 0 {
		return err
	}
	*l = make(entryList, n) // which are there: the codec has looked
	key := make([]byte, len("chunks"))
	for i := range *l {
		if err := (*l)[i].decode(dec, key); err != nil {
			return err
		}
	}
	return nil
}

// decode reads an entry, a map, with the memory of key for names of fields. A map in an extension
// would be read as well, but the codec has not looked into that.
func (e *Entry) decode(dec *msgpack.Decoder, key []byte) error {
	switch code, err := dec.PeekCode(); {
	case err != nil:
		return err
	case msgpcode.IsExt(code):
		return errors.New("an extension for an entry")
	}
	fields, err := dec.DecodeMapLen()
	if err != nil {
		return err
	}
	for range fields {
		n, err := lengthOf(dec)
		if err != nil {
			return err
		}
		name := slices.Grow(key[:0], max(n, 0))[:max(n, 0)]
		if err := dec.ReadFull(name); err != nil {
			return err
		}
		switch string(name) {
		case "path":
			e.Path, err = dec.DecodeString()
		case "dir":
			e.Dir, err = dec.DecodeBool()
		case "exec":
			e.Exec, err = dec.DecodeBool()
		case "mode":
			e.Mode, err = dec.DecodeUint32()
		case "size":
			e.Size, err = dec.DecodeInt64()
		case "chunks":
			err = e.Chunks.decode(dec)
		case "link":
			e.Link, err = dec.DecodeString()
		default:
			err = dec.Skip()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lengthOf reads how long bytes or a text is, of which there is no more than in a blob; -1 = nil.
func lengthOf(dec *msgpack.Decoder) (int, error) {
	n, err := dec.DecodeBytesLen()
	if err == nil && n > MaxBlob {
		err = fmt.Errorf("%d bytes in one piece", n)
	}
	return n, err
}

func (l *HashList) decode(dec *msgpack.Decoder) error {
	const size = len(Hash{})
	n, err := lengthOf(dec)
	if err != nil || n < 0 {
		return err
	}
	if n%size != 0 {
		return fmt.Errorf("%d bytes are no list of hashes", n)
	}
	*l = make(HashList, n/size)
	for i := range *l {
		if err := dec.ReadFull((*l)[i][:]); err != nil {
			return err
		}
	}
	return nil
}

// encodeBundles describes the bundles of a tree; doc.go has the layout. Entries of
// several trees that were put together have none that can be described.
func encodeBundles(entries []Entry) ([]byte, error) {
	var out []byte
	var now *bundle // that the last small file was in
	alone, files, at := 0, 0, 0
	end := func() error {
		if now == nil {
			return nil
		}
		if files < 2 || at != now.size {
			return fmt.Errorf("%w: not all files of bundle %s are there", ErrManifest, now.hash)
		}
		out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(alone)), uint64(files))
		out = append(out, now.hash[:]...)
		alone, now = 0, nil
		return nil
	}
	for i := range entries {
		e := &entries[i]
		if !e.small() {
			continue
		}
		if e.bundle != now {
			if err := end(); err != nil {
				return nil, err
			}
			now, files, at = e.bundle, 0, 0
		}
		if now == nil {
			alone++
			continue
		}
		if e.at != at {
			return nil, fmt.Errorf("%w: %.100q is at %d of its bundle, want %d", ErrManifest, e.Path, e.at, at)
		}
		files, at = files+1, at+int(e.Size)
	}
	return out, end()
}

// decodeBundles reads what encodeBundles wrote and puts the entries in their bundles.
func decodeBundles(b []byte, entries []Entry) error {
	small := 0 // where to look for the next one
	next := func() *Entry {
		for small < len(entries) {
			if small++; entries[small-1].small() {
				return &entries[small-1]
			}
		}
		return nil
	}
	for len(b) > 0 {
		alone, n := binary.Uvarint(b)
		files, m := binary.Uvarint(b[max(n, 0):])
		if n <= 0 || m <= 0 || len(b) < n+m+len(Hash{}) {
			return fmt.Errorf("%w: bundles are cut short", ErrManifest)
		}
		in := &bundle{hash: Hash(b[n+m : n+m+len(Hash{})])}
		if b = b[n+m+len(Hash{}):]; files < 2 {
			return fmt.Errorf("%w: bundle %s is of %d files", ErrManifest, in.hash, files)
		}
		for ; alone > 0; alone-- {
			if next() == nil {
				return fmt.Errorf("%w: bundle %s is behind all files", ErrManifest, in.hash)
			}
		}
		for ; files > 0; files-- {
			e := next()
			if e == nil || in.size+int(e.Size) > ChunkSize {
				return fmt.Errorf("%w: bundle %s has more files than there are, or more than %d bytes", ErrManifest, in.hash, ChunkSize)
			}
			e.bundle, e.at = in, in.size
			in.size += int(e.Size)
		}
	}
	return nil
}
