package oauth

import (
	"context"
	"errors"
	"strings"

	"github.com/signet-idm/signet/internal/base/errs"
	"github.com/signet-idm/signet/internal/domain/access"
	"github.com/signet-idm/signet/internal/domain/app"
	"github.com/signet-idm/signet/internal/eventlog/event"
	"github.com/signet-idm/signet/internal/oauth/dpop"
	"github.com/signet-idm/signet/internal/oauth/refusal"
)

// Access tokens can be bound to a key of the client (DPoP, RFC 9449). The client proves with every request that it has
// the key. A proof is signed for one request, has a nonce that one of our nodes gave within the last minute, and is
// taken once: where tokens are given and by calls that write, on all nodes; by calls that only read, on each node.

// boundVersion is the version of facts since which nodes know of tokens that are bound.
const boundVersion = 6

// ProvenRequest is a request with proofs as they were sent. One is right.
type ProvenRequest struct {
	Proofs []string
	Method string
	Path   string // as it is encoded
}

// proof checks everything about the proof of a request but whether it was taken before. token is the access token that
// comes with it; empty: none does. Errors: access.InvalidProof; access.NonceNeeded.
func (g *Grants) proof(r ProvenRequest, token string) (*dpop.Proof, error) {
	if len(r.Proofs) != 1 {
		return nil, invalidProof("must be sent in one header DPoP")
	}
	p, err := dpop.Read(r.Proofs[0])
	if err != nil {
		return nil, invalidProof(err.Error())
	}
	err = p.Fits(dpop.Request{Method: r.Method, Address: g.Issuer + r.Path, Token: token, Now: g.Clock()})
	if err != nil {
		return nil, invalidProof(err.Error())
	}
	if !g.nonces().Fresh(p.Nonce) {
		return nil, ErrNonceNeeded
	}
	return p, nil
}

// ErrNonceNeeded refuses a proof without a nonce of the last minute.
var ErrNonceNeeded = errs.New(errs.Unauthenticated, access.NonceNeeded,
	"the DPoP proof must have the nonce that is in the header DPoP-Nonce of this answer: make a new proof")

func invalidProof(why string) *errs.Error {
	return errs.New(errs.Unauthenticated, access.InvalidProof, "the DPoP proof "+why)
}

var errProofUsed = invalidProof("was already used: make a new one with another jti for every request")

// errNodesUnaware refuses to bind a token that some node would take without a proof.
var errNodesUnaware = errs.New(errs.Unavailable, event.OlderNodes,
	"a node of an older version is running and does not know DPoP: upgrade all nodes first")

func (g *Grants) nonces() dpop.Nonces { return dpop.Nonces{Master: g.Master, Clock: g.Clock} }

// Nonce is what a client has to put into its next proofs.
func (g *Grants) Nonce() string { return g.nonces().New() }

// ProveKey notes which key a client has proven to have; a client that needs none and sends no proof goes on without.
// c is nil where an assertion is going to tell who asks. Errors: access.InvalidProof; access.NonceNeeded; ErrKeyNeeded.
func (g *Grants) ProveKey(c *Client, r ProvenRequest) (*Key, error) {
	if len(r.Proofs) == 0 {
		if c != nil && c.App != nil && c.App.Data.DPoPRequired {
			return nil, refusal.About(ErrKeyNeeded.Noting(c.ID()+" sent no DPoP proof"), c.ID(), refusal.ProofMissing)
		}
		return nil, nil
	}
	p, err := g.proof(r, "")
	if err != nil {
		return nil, ofClient(c, err)
	}
	return &Key{Thumbprint: p.Key, proof: p}, nil
}

// ErrKeyNeeded refuses a request for tokens of an application that needs a key for them.
var ErrKeyNeeded = errs.New(errs.InvalidArgument, errs.InvalidRequest,
	"this application gets tokens only for a key: send a proof in the header DPoP")

// ofClient is a refused proof as its people read it. A nonce that has run out is nothing to mend.
func ofClient(c *Client, err error) error {
	e, ours := errors.AsType[*errs.Error](err)
	if c == nil || c.App == nil || !ours || e.Reason != access.InvalidProof {
		return err
	}
	return refusal.About(e.Noting(c.ID()+" sent a proof that "+strings.TrimPrefix(e.Message, "the DPoP proof ")), c.ID(),
		refusal.Proof)
}

// Key is a key that a client has proven to have, for one request. Nil is none.
type Key struct {
	Thumbprint string
	proof      *dpop.Proof
}

// print is the thumbprint; empty for no key.
func (k *Key) print() string {
	if k == nil {
		return ""
	}
	return k.Thumbprint
}

// rows are those that a command declares which uses the proof up.
func (k *Key) rows() []event.RowKey {
	if k == nil {
		return nil
	}
	return []event.RowKey{proofRow(k.proof)}
}

// use uses the proof up inside a command that declared its rows. Errors: access.InvalidProof where it was used before,
// on any node.
func (k *Key) use(tx *event.Tx) error {
	if k == nil {
		return nil
	}
	if !tx.Every(boundVersion) {
		return errNodesUnaware
	}
	return useProof(tx, k.proof)
}

func proofRow(p *dpop.Proof) event.RowKey { return usedRow("dpop", p.Key, p.ID) }

func useProof(tx *event.Tx, p *dpop.Proof) error {
	row := proofRow(p)
	if used, err := tx.Row(row); err != nil || used != nil {
		return orElse(err, errProofUsed)
	}
	tx.PutRow(event.Row{RowKey: row, Value: firstUse(tx.Now()), Expires: tx.Now() + dpop.Life.Microseconds()})
	return nil
}

// ProveToken judges the proof that comes with a bound access token. reads says that the request changes nothing.
// Errors: access.InvalidProof; access.NonceNeeded.
func (g *Grants) ProveToken(ctx context.Context, r ProvenRequest, token, key string, reads bool) error {
	p, err := g.proof(r, token)
	if err != nil {
		return err
	}
	if p.Key != key {
		return invalidProof("is of another key than the one that the access token is bound to")
	}
	if reads {
		first, full := g.seen.First(p, g.Clock())
		if !first {
			return errProofUsed
		}
		if !full {
			return nil
		}
	}
	row := proofRow(p)
	return g.Store.Do(ctx, event.Command{Origin: event.Origin{Actor: event.System}, Rows: []event.RowKey{row},
		Decide: func(tx *event.Tx) error { return useProof(tx, p) }})
}

// refreshesBy tells which key the refresh tokens of a client are bound to. Only those of one without a credential of its own
// are: every other proves anyway who it is.
func (c *Client) refreshesBy(had string) string {
	if had == "" && c.App.Data.AuthMethod == app.NoAuth {
		return c.Key.print()
	}
	return had
}

// TokenType is the type of an access token that is bound to a key, or to none, in the words of OAuth.
func TokenType(key string) string {
	if key != "" {
		return "DPoP"
	}
	return "Bearer"
}

// confirmation is the claim cnf of a token that is bound to a key.
func confirmation(key string) map[string]any { return map[string]any{"jkt": key} }
