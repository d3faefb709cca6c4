package journal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"zorilla/internal/codec"
)

// record is an entry as it is stored. It names itself: an entry that was moved
// or whose neighbours are lost is still known for what it is, wherever in the
// file it is found. Big-endian:
//
//	4 magic, 4 CRC-32C of all that follows, 8 number among those of its key
//	(from 1), 8 stamp, 8 stamp of the first of its key, 4 length of the data,
//	1 length of the key, key, data
//
// The stamp grows with each transaction, so that what a key held before it was
// removed is not taken for what it holds now.
type record struct {
	seq, stamp, born uint64
	key              string
	data             []byte
}

var recordMagic = []byte{0x9c, 'z', 'j', 2}

const recordHeader = 4 + 4 + 8 + 8 + 8 + 4 + 1

func (r *record) append(b []byte) []byte {
	start := len(b)
	b = append(b, recordMagic...)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, r.seq)
	b = binary.BigEndian.AppendUint64(b, r.stamp)
	b = binary.BigEndian.AppendUint64(b, r.born)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.data)))
	b = append(b, byte(len(r.key)))
	b = append(b, r.key...)
	b = append(b, r.data...)
	binary.BigEndian.PutUint32(b[start+4:], crc32.Checksum(b[start+8:], codec.Castagnoli()))
	return b
}

// parseRecord reads the record at the beginning of b; size is what it takes, 0 if
// there is none that is whole.
func parseRecord(b []byte) (r record, size int) {
	if len(b) < recordHeader || !bytes.HasPrefix(b, recordMagic) {
		return r, 0
	}
	n, key := int(binary.BigEndian.Uint32(b[32:])), int(b[36])
	if size = recordHeader + key + n; n > MaxData || size > len(b) || crc32.Checksum(b[8:size], codec.Castagnoli()) != binary.BigEndian.Uint32(b[4:]) {
		return r, 0
	}
	r.seq, r.stamp, r.born = binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:]), binary.BigEndian.Uint64(b[24:])
	r.key, r.data = string(b[recordHeader:recordHeader+key]), b[recordHeader+key:size]
	if checkKey(r.key) != nil || r.seq == 0 {
		return r, 0
	}
	return r, size
}

// bornOf returns the stamp of the first entry of the key, as the record tells; 0 if
// it is damaged.
func bornOf(b []byte) uint64 {
	r, _ := parseRecord(b)
	return r.born
}

// findRecords calls f with all records in the bytes of a file, whatever is between
// them.
func findRecords(file []byte, f func(record)) {
	for {
		at := bytes.Index(file, recordMagic)
		if at < 0 {
			return
		}
		r, size := parseRecord(file[at:])
		if size > 0 {
			f(r)
		}
		file = file[at+max(size, 1):]
	}
}
