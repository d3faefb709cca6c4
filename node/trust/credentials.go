package trust

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"zorilla/vicinity"
)

var (
	// ErrStranger is wrapped by the error of a handshake with a node that
	// has another network's certificate, or none.
	ErrStranger = errors.New("belongs to another network (different secret)")
	// ErrWrongNode is wrapped by the error of a handshake with a member that
	// is not the expected one: its address has a new owner.
	ErrWrongNode = errors.New("is another node than expected")
	// ErrVersion is wrapped by the error of a handshake with a node that
	// speaks none of the application protocols of this one.
	ErrVersion = errors.New("speaks another version of the protocol: let all nodes be of one release")
)

// Credentials are what a node shows to others and what it accepts of them.
type Credentials struct {
	id       *Identity
	networks []*Network
	leaf     hidden[tls.Certificate]
	roots    *x509.CertPool
}

// NewCredentials makes credentials for a node that shows itself as a member
// of the first network and accepts members of all of them.
func NewCredentials(id *Identity, networks ...*Network) (*Credentials, error) {
	if len(networks) == 0 {
		return nil, errors.New("make credentials: no network")
	}
	der, err := networks[0].sign(id.public(), string(id.id))
	if err != nil {
		return nil, fmt.Errorf("make node certificate: %w", err)
	}
	c := &Credentials{
		id:       id,
		networks: append([]*Network(nil), networks...),
		leaf:     hide(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: id.key()}),
		roots:    x509.NewCertPool(),
	}
	for _, n := range networks {
		c.roots.AddCert(n.ca)
	}
	return c, nil
}

// ID returns the node's ID.
func (c *Credentials) ID() vicinity.ID { return c.id.id }

// Networks returns the accepted networks; the first is the node's own.
func (c *Credentials) Networks() []*Network { return append([]*Network(nil), c.networks...) }

// Sign is Identity.Sign.
func (c *Credentials) Sign(domain string, msg []byte) []byte { return c.id.Sign(domain, msg) }

// ServerTLS returns the configuration of a listener for members that ask for
// one of the application protocols. A client without one of them is refused.
func (c *Credentials) ServerTLS(protos ...string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{c.leaf()},
		NextProtos:             protos,
		ClientAuth:             tls.RequireAnyClientCert, // verified below, on every connection
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(protos) > 0 && s.NegotiatedProtocol == "" {
				return fmt.Errorf("no application protocol: want one of %s", strings.Join(protos, ", "))
			}
			return c.verify(s, "")
		},
	}
}

// ClientTLS returns the configuration for a connection to the node expect, or
// to any member if expect is empty, that speaks one of the application protocols.
func (c *Credentials) ClientTLS(expect vicinity.ID, protos ...string) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{c.leaf()},
		NextProtos:             append(slices.Clip(protos), c.networks[0].proof()),
		SessionTicketsDisabled: true,
		InsecureSkipVerify:     true, // no host names, no system authorities: VerifyConnection decides
		VerifyConnection: func(s tls.ConnectionState) error {
			if !slices.Contains(protos, s.NegotiatedProtocol) {
				return fmt.Errorf("application protocol %q: want %s", s.NegotiatedProtocol, strings.Join(protos, " or "))
			}
			return c.verify(s, expect)
		},
	}
}

// verify is the one place that decides who is a member.
func (c *Credentials) verify(s tls.ConnectionState, expect vicinity.ID) error {
	if len(s.PeerCertificates) != 1 {
		return fmt.Errorf("peer shows %d certificates, want 1: %w", len(s.PeerCertificates), ErrStranger)
	}
	leaf := s.PeerCertificates[0]
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots:     c.roots,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return fmt.Errorf("peer %w", ErrStranger)
	}
	id, err := PeerID(s)
	if err != nil {
		return err
	}
	if expect != "" && id != expect {
		return fmt.Errorf("peer %s %w (%s)", id.Short(), ErrWrongNode, expect.Short())
	}
	return nil
}

// PeerID returns the ID of the node at the other end. Its handshake must have
// been made with one of the configurations of this package.
func PeerID(s tls.ConnectionState) (vicinity.ID, error) {
	if len(s.PeerCertificates) == 0 {
		return "", fmt.Errorf("peer shows no certificate: %w", ErrStranger)
	}
	key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok {
		return "", fmt.Errorf("peer's key is a %T, want Ed25519: %w", s.PeerCertificates[0].PublicKey, ErrStranger)
	}
	return vicinity.IDFromKey(key), nil
}

// HandshakeError returns the error of a failed handshake so that it wraps
// ErrVersion or ErrStranger also if it was the other side that refused this
// one: which of the two notices first is a matter of the protocol.
func HandshakeError(err error) error {
	// crypto/tls has no exported types for these two.
	if err != nil && (strings.Contains(err.Error(), "no application protocol") || strings.Contains(err.Error(), "unsupported application protocols")) {
		return fmt.Errorf("peer %w (%w)", ErrVersion, err)
	}
	var op *net.OpError
	if err == nil || errors.Is(err, ErrStranger) || !errors.As(err, &op) || op.Op != "remote error" {
		return err
	}
	if !strings.Contains(op.Err.Error(), "bad certificate") { // crypto/tls has no exported type for it
		return err
	}
	return fmt.Errorf("peer refuses this node: it %w", ErrStranger)
}
