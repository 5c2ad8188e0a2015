package policy

import "time"

// Guests is what an organization asks of people of other organizations who act in it. How they sign in is decided by
// their own organization; only organizations have it.
type Guests struct {
	// how old the proof of who they are may be; 0: as old as their session
	GuestProofSeconds int64 `json:"guestProofSeconds,omitempty"`
}

// GuestProof is how old the proof of a guest may be; 0: as old as the session.
func (g Guests) GuestProof() time.Duration { return seconds(g.GuestProofSeconds) }

// GuestsDiff is what differs between two of them.
type GuestsDiff struct {
	GuestProofSeconds *int64 `json:"guestProofSeconds,omitempty"`
}

// guestsVersion is the version of facts from which on nodes know guests.
const guestsVersion = 4

func (g Guests) diffTo(next Guests) GuestsDiff {
	return GuestsDiff{GuestProofSeconds: changed(g.GuestProofSeconds, next.GuestProofSeconds)}
}

func (d GuestsDiff) apply(g *Guests) { set(&g.GuestProofSeconds, d.GuestProofSeconds) }
