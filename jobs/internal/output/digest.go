package output

import "encoding/binary"

// Digest writes down the size and the checksum of a file.
func Digest(size int64, sum uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(size)), sum)
}
