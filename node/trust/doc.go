// Package trust says who a node is and who may talk to it.
//
// # Vocabulary
//
// A [Secret] is what all nodes of a network share: 32 random bytes, or a
// phrase stretched to 32 bytes. Everything that makes a [Network] is derived
// from it with HKDF-SHA256: the key of its certificate authority (Ed25519),
// the key that encrypts gossip packets (AES-256), the key that seals beacons,
// and a public network ID. An [Identity] is one node's own Ed25519 key, made
// at its first start; the hash of its public half is the node ID. [Credentials]
// are an identity together with the networks it accepts.
//
// # Connections
//
// Every connection between nodes is TLS 1.3 with certificates on both sides. A
// node's certificate holds its own key and is signed by the authority of its
// network, which every member can compute; so whoever knows the secret can make
// one, and nobody else can. The dates of the certificate are fixed and wide:
// membership ends with the secret, not with a clock. Neither host names nor the
// system's authorities play a part. What is checked is one function over the
// list of accepted networks, followed by: is the node ID, the hash of the
// certificate's key, the expected one? There are no session tickets, so every
// connection is checked in full.
//
// # Text forms
//
//	secret file   zors1.<base64url(secret, sum)>, or a phrase of at least 16
//	              characters, or an invite token; one line
//	invite token  zor1.<base64url(length, msgpack{secret, addrs}, sum)>
//
// sum is the first four bytes of the SHA-256 of what stands before it, length
// is the number of bytes of the msgpack part (2 bytes, big endian), so that a
// token that was cut off can be told from one that was mistyped.
//
// # Signatures
//
// A signature is 96 bytes: the signer's public key and an Ed25519 signature of
// the domain and the message. The domain says what the message means and keeps
// a signature for one purpose from being shown for another.
//
// # Concurrency
//
// All values are immutable once made; every function may be called from any
// goroutine. Secrets and keys never appear in what fmt prints of them.
package trust
