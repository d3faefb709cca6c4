package gossip

import (
	"errors"
	"fmt"

	"zorilla/vicinity"
)

// MaxPayload is the most bytes that Send carries: with all headers it fits
// into one packet everywhere.
const MaxPayload = 1300

const (
	packetVersion = 1
	idSize        = 27
	packetHeader  = 2 + idSize
)

var errPacket = errors.New("malformed packet")

func encodePacket(from vicinity.ID, kind byte, payload []byte) []byte {
	b := make([]byte, 0, packetHeader+len(payload))
	b = append(b, packetVersion, kind)
	b = append(b, from...)
	return append(b, payload...)
}

// decodePacket returns a payload of its own.
func decodePacket(b []byte) (from vicinity.ID, kind byte, payload []byte, err error) {
	switch {
	case len(b) < packetHeader:
		return "", 0, nil, fmt.Errorf("%w: %d bytes", errPacket, len(b))
	case len(b) > packetHeader+MaxPayload:
		return "", 0, nil, fmt.Errorf("%w: %d bytes", errPacket, len(b))
	case b[0] != packetVersion:
		return "", 0, nil, fmt.Errorf("%w: version %d", errPacket, b[0])
	case b[1] == 0:
		return "", 0, nil, fmt.Errorf("%w: kind 0", errPacket)
	}
	from = vicinity.ID(b[2:packetHeader])
	if !from.Valid() {
		return "", 0, nil, fmt.Errorf("%w: sender %.30q", errPacket, string(from))
	}
	return from, b[1], append([]byte(nil), b[packetHeader:]...), nil
}
