// Package fastrpc has small requests to other nodes travel as packets, ahead of the connection
// over which they go as well: that takes two round trips to make, those of the handshakes of TCP
// and TLS, and a packet none. It is what early data is in TLS 1.3, for both ends of nodes that
// have just heard of each other.
//
// # Vocabulary
//
// A request is a POST of at most [MaxBody] bytes, to a path that Config.Early names. It is made
// by [Messenger.RoundTrip] over a connection, as any request is; if there is no connection yet it
// is sent as a packet too, and whichever answer comes first is the request's. The receiver has
// it done once, whichever way it comes first: a request has a number, which [Messenger.Once]
// looks at where it comes over the connection. (If its answer is too long for a packet it is done
// again there.) Packets may be lost, doubled, reordered and forged; nothing depends on one.
//
// A key is what packets to a node are sealed with: one key of a node for each minute, told to
// those who may soon have a request for it (Key, Learn), and in each request. Who has recorded
// a packet can neither read it, since the key is forgotten after some minutes, nor have it done
// again: the numbers of requests are kept for longer than their key is.
//
// # Wire
//
// A request is
//
//	1 | signature (96 bytes, domain "zorilla early request 1") of all that follows |
//	msgpack {t: the node that it is for, i: its number (16 bytes), w: the first four bytes of the key,
//	         e: encapsulated key (32 bytes), c: sealed {p: path, b: body, k: a key of the sender}}
//
// and its answer, of at most [MaxAnswer] bytes; a longer one goes over the connection alone:
//
//	2 | number | sealed {s: status of HTTP, b: body}
//
// A request is sealed by HPKE (RFC 9180, base mode) with DHKEM(X25519, HKDF-SHA256), HKDF-SHA256
// and AES-256-GCM, its info being the same domain, and its additional data the sender's ID and the
// number, so that nobody else can send it on as its own; the answer by AES-256-GCM with a key that
// is exported from that for "answer", a nonce of zeros, since there is one answer, and the number as
// additional data. Over a connection a request has its number in the header Zorilla-Once, as
// hexadecimal digits.
//
// # Concurrency
//
// All methods may be called from any goroutine. Receive does not wait. Run waits for all goroutines
// that requests have.
package fastrpc
