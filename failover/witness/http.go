package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"antipode/geo"
	"antipode/internal/identity"
)

// Paths of the calls, all POST with JSON both ways. They are on the wire: never rename one.
const (
	pathRenew    = "/v1/renew"
	pathClaim    = "/v1/claim"
	pathWithdraw = "/v1/withdraw"
)

// BodyMax bounds a question: some thousand claims.
const BodyMax = 1 << 20

type renewal struct {
	After uint64 `json:"after"`
}

type claims struct {
	Claims []Claim `json:"claims"`
	// Sent is the position that the sender knew: see Witness.Claim.
	Sent Position `json:"sent"`
}

type claimed struct {
	// Wait is how long the promotion has to wait, in nanoseconds.
	Wait time.Duration `json:"wait"`
}

type withdrawal struct {
	Account geo.Account     `json:"account"`
	Number  geo.EpochNumber `json:"number"`
}

// refusal is the answer to a call that failed.
type refusal struct {
	Error string `json:"error"`
	// Now is where the witness is, in the answer to a call that was late.
	Now Position `json:"now,omitzero"`
}

// Calls that are refused.
var (
	// errNoNode: the caller shows no certificate of a node.
	errNoNode = errors.New("witness: a certificate of a node is needed")
	errUnread = errors.New("witness: the question cannot be read")
	// errForeign: a caller names another location than the one in its certificate.
	errForeign = errors.New("witness: a node claims for its own location only")
	// errMalformed: a claim that would never end.
	errMalformed = errors.New("witness: a claim is of an account and of an epoch")
)

// Handler answers the nodes of the locations, which their certificates name: a node renews and claims for its own location
// alone. The listener must ask for certificates (Keyring.LocationsServerConfig).
func Handler(w *Witness) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathRenew, answering(w, kindRenew, func(l geo.Location, q renewal) (Grant, error) { return w.Renew(l, q.After) }))
	mux.HandleFunc("POST "+pathClaim, answering(w, kindClaim, func(l geo.Location, q claims) (out claimed, err error) {
		for _, c := range q.Claims {
			switch {
			case c.Location != l:
				return out, errForeign
			case !wellFormed(c.Account, c.Number):
				return out, errMalformed
			}
		}
		out.Wait, err = w.Claim(q.Claims, q.Sent)
		return out, err
	}))
	mux.HandleFunc("POST "+pathWithdraw, answering(w, kindWithdraw, func(l geo.Location, q withdrawal) (struct{}, error) {
		if !wellFormed(q.Account, q.Number) {
			return struct{}{}, errMalformed
		}
		return struct{}{}, w.Withdraw(q.Account, geo.Epoch{Number: q.Number, Location: l})
	}))
	return mux
}

// wellFormed reports whether a claim, or its withdrawal, can be one: what is kept of another would never end.
func wellFormed(a geo.Account, n geo.EpochNumber) bool { return a.Valid() && n != 0 }

// answering decodes a question, calls f with the location of the caller's certificate, and encodes the answer.
func answering[Q, A any](w *Witness, kind string, f func(geo.Location, Q) (A, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var q Q
		var a A
		l, err := caller(r)
		if err == nil {
			err = read(rw, r, &q)
		}
		if err == nil {
			a, err = f(l, q)
		}
		outcome, status := ending(err)
		w.answered(l, kind, outcome)
		var answer any = a
		switch {
		case errors.Is(err, ErrLate):
			answer = refusal{err.Error(), w.Position()}
		case err != nil:
			answer = refusal{Error: err.Error()}
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		_ = json.NewEncoder(rw).Encode(answer) // The caller sees a broken answer.
	}
}

// caller returns the location of the caller's certificate.
func caller(r *http.Request) (geo.Location, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "", errNoNode
	}
	id, err := identity.Of(r.TLS.PeerCertificates[0])
	if err != nil || id.Location == "" {
		return "", errNoNode
	}
	return id.Location, nil
}

// read decodes a question.
func read(rw http.ResponseWriter, r *http.Request, q any) error {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, BodyMax))
	if err == nil {
		err = json.Unmarshal(body, q)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	return nil
}

// ending returns how a call ended with err, and the status of its answer.
func ending(err error) (outcome string, status int) {
	switch {
	case err == nil:
		return outcomeDone, http.StatusOK
	case errors.Is(err, ErrPassed):
		return outcomePassed, http.StatusConflict
	case errors.Is(err, ErrLate):
		return outcomeLate, http.StatusPreconditionFailed
	case errors.Is(err, errMalformed), errors.Is(err, errUnread):
		return outcomeRefused, http.StatusBadRequest
	case errors.Is(err, ErrLocation), errors.Is(err, errForeign), errors.Is(err, errNoNode):
		return outcomeRefused, http.StatusForbidden
	default:
		return outcomeFailed, http.StatusServiceUnavailable
	}
}
