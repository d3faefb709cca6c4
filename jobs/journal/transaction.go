package journal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"slices"

	"zorilla/internal/codec"
)

// step is one change that a transaction makes: a key is removed, or gets one more
// entry.
type step struct {
	key    string
	seq    uint64 // of the entry among those of its key, from 1; 0 = the key is removed
	record []byte // of the entry, as it is stored
}

// transaction is what one commit writes to a log. Big-endian:
//
//	4 magic of the head, summary, directory,
//	the records of its entries,
//	directory, summary, 4 magic of the foot
//
// The summary has 4 CRC-32C of the rest of it and of the directory, 8 number of
// the transaction, 4 length of the transaction, 4 length of the directory. The
// directory has for each step 8 number of the entry, 4 length of the record,
// 1 length of the key, key.
//
// The directory is there twice, at both ends: one damaged place never takes both, so that
// the entries that it hit can be named, and what follows can be found.
type transaction struct {
	number uint64 // grows by one with each
	at     int    // where it is in its log
	size   int    // bytes
	steps  []step
}

var (
	headMark = []byte{0x9c, 'z', 'h', 1}
	footMark = []byte{0x9c, 'z', 'f', 1}
)

const (
	markSize    = 4
	summarySize = 4 + 8 + 4 + 4
	stepSize    = 8 + 4 + 1
)

// appendTransaction encodes a transaction at the end of b.
func appendTransaction(b []byte, number uint64, steps []step) []byte {
	var directory []byte
	for _, s := range steps {
		directory = binary.BigEndian.AppendUint64(directory, s.seq)
		directory = binary.BigEndian.AppendUint32(directory, uint32(len(s.record)))
		directory = append(append(directory, byte(len(s.key))), s.key...)
	}
	summary := make([]byte, 4, summarySize)
	summary = binary.BigEndian.AppendUint64(summary, number)
	summary = binary.BigEndian.AppendUint32(summary, uint32(sizeOf(steps)))
	summary = binary.BigEndian.AppendUint32(summary, uint32(len(directory)))
	binary.BigEndian.PutUint32(summary, summarySum(summary, directory))
	b = append(append(append(slices.Grow(b, sizeOf(steps)), headMark...), summary...), directory...)
	for _, s := range steps {
		b = append(b, s.record...)
	}
	return append(append(append(b, directory...), summary...), footMark...)
}

func summarySum(summary, directory []byte) uint32 {
	return crc32.Update(crc32.Checksum(summary[4:], codec.Castagnoli()), codec.Castagnoli(), directory)
}

// sizeOf is how many bytes the transaction takes.
func sizeOf(steps []step) int {
	n := 2 * (markSize + summarySize)
	for _, s := range steps {
		n += 2*(stepSize+len(s.key)) + len(s.record)
	}
	return n
}

// parseSummary reads what both ends of a transaction say; ok is false if they say
// nothing that can be believed.
func parseSummary(summary, directory []byte) (t transaction, ok bool) {
	if summarySum(summary, directory) != binary.BigEndian.Uint32(summary) {
		return t, false
	}
	t.number, t.size = binary.BigEndian.Uint64(summary[4:]), int(binary.BigEndian.Uint32(summary[12:]))
	records := 0
	for d := directory; len(d) > 0; {
		if len(d) < stepSize || len(d) < stepSize+int(d[12]) {
			return t, false
		}
		n := int(binary.BigEndian.Uint32(d[8:]))
		s := step{key: string(d[stepSize : stepSize+int(d[12])]), seq: binary.BigEndian.Uint64(d)}
		if n > recordHeader+MaxKey+MaxData || checkKey(s.key) != nil || s.seq == 0 && n != 0 {
			return t, false
		}
		records += n
		t.steps = append(t.steps, s)
		d = d[stepSize+len(s.key):]
	}
	return t, t.size == 2*(markSize+summarySize+len(directory))+records
}

// headAt reads the head of a transaction at the beginning of b.
func headAt(b []byte) (t transaction, ok bool) {
	if !bytes.HasPrefix(b, headMark) || len(b) < markSize+summarySize {
		return t, false
	}
	summary := b[markSize : markSize+summarySize]
	n := int(binary.BigEndian.Uint32(summary[16:]))
	rest := b[markSize+summarySize:]
	if n > len(rest) {
		return t, false
	}
	if t, ok = parseSummary(summary, rest[:n]); !ok || t.size > len(b) {
		return t, false
	}
	t.fill(b, rest[:n])
	return t, true
}

// footAt reads the foot of a transaction at the end of b; its at is where in b it
// begins.
func footAt(b []byte) (t transaction, ok bool) {
	if !bytes.HasSuffix(b, footMark) || len(b) < markSize+summarySize {
		return t, false
	}
	rest := b[:len(b)-markSize-summarySize]
	summary := b[len(rest) : len(rest)+summarySize]
	n := int(binary.BigEndian.Uint32(summary[16:]))
	if n > len(rest) {
		return t, false
	}
	directory := rest[len(rest)-n:]
	if t, ok = parseSummary(summary, directory); !ok || t.size > len(b) {
		return t, false
	}
	t.at = len(b) - t.size
	t.fill(b[t.at:], directory)
	return t, true
}

// fill cuts the records of the steps out of the transaction, which begins b.
func (t *transaction) fill(b, directory []byte) {
	from := markSize + summarySize + len(directory)
	for i, d := 0, directory; i < len(t.steps); i++ {
		n := int(binary.BigEndian.Uint32(d[8:]))
		if t.steps[i].seq != 0 {
			t.steps[i].record = b[from : from+n : from+n]
		}
		from += n
		d = d[stepSize+len(t.steps[i].key):]
	}
}

// damaged lists the entries of the transaction that are not what was written.
func (t *transaction) damaged() (bad []step) {
	for _, s := range t.steps {
		if s.seq == 0 {
			continue
		}
		if r, size := parseRecord(s.record); size != len(s.record) || size == 0 || r.key != s.key || r.seq != s.seq || r.stamp != t.number {
			bad = append(bad, s)
		}
	}
	return bad
}

// places lists where a mark is in a log, from a place on.
func places(log, mark []byte, from int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for {
			i := bytes.Index(log[from:], mark)
			if i < 0 || !yield(from+i) {
				return
			}
			from += i + 1
		}
	}
}

// transactionAt reads the transaction at a place of a log, by its head or, if that is
// damaged, by its foot.
func transactionAt(log []byte, at int) (t transaction, ok bool) {
	if t, ok = headAt(log[at:]); ok {
		t.at = at
		return t, true
	}
	for foot := range places(log, footMark, at) {
		if t, ok = footAt(log[:foot+markSize]); ok && t.at == at {
			return t, true
		}
	}
	return t, false
}

// transactionAfter finds the first transaction that begins at a place of the log or
// behind it.
func transactionAfter(log []byte, at int) (found transaction, ok bool) {
	for head := range places(log, headMark, at) {
		if found, ok = headAt(log[head:]); ok {
			found.at = head
			break
		}
	}
	for foot := range places(log, footMark, at) {
		if ok && foot+markSize > found.at {
			break
		}
		if t, whole := footAt(log[:foot+markSize]); whole && t.at >= at {
			return t, true
		}
	}
	return found, ok
}

// logContent is what there is in a log.
type logContent struct {
	transactions []transaction
	end          int // of the last one
	rest         int // bytes behind it that are of none: of one that was not completed, or damaged
}

// readLog reads the bytes of a log, whose unused part is zero.
func readLog(log []byte) (c logContent) {
	used := len(bytes.TrimRight(log, "\x00"))
	for c.end < used {
		t, ok := transactionAt(log, c.end)
		if !ok {
			if t, ok = transactionAfter(log, c.end+1); !ok {
				break
			}
		}
		c.transactions = append(c.transactions, t)
		c.end = t.at + t.size
	}
	c.rest = max(used-c.end, 0)
	return c
}

const sector = 512 // what a disk writes whole, or not

// torn reports whether part of the transaction was never written, where the log was
// zero before: whoever wrote it was stopped.
func (t *transaction) torn(log []byte) bool {
	end := t.at + t.size
	if len(bytes.Trim(log[end-markSize:end], "\x00")) == 0 {
		return true
	}
	for from := t.at; from < end; {
		to := min(from/sector*sector+sector, end)
		if len(bytes.Trim(log[from:to], "\x00")) == 0 {
			return true
		}
		from = to
	}
	return false
}
