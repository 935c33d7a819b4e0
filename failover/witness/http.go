package witness

import (
	"encoding/json"
	"errors"
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

// errForeign: a caller names another location than the one in its certificate.
var errForeign = errors.New("witness: a node claims for its own location only")

// errMalformed: a claim that would never end.
var errMalformed = errors.New("witness: a claim is of an account and of an epoch")

// Handler answers the nodes of the locations, which their certificates name: a node renews and claims for its own location
// alone. The listener must ask for certificates (Keyring.LocationsServerConfig).
func Handler(w *Witness) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathRenew, answering(w, func(l geo.Location, q renewal) (Grant, error) { return w.Renew(l, q.After) }))
	mux.HandleFunc("POST "+pathClaim, answering(w, func(l geo.Location, q claims) (out claimed, err error) {
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
	mux.HandleFunc("POST "+pathWithdraw, answering(w, func(l geo.Location, q withdrawal) (struct{}, error) {
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
func answering[Q, A any](w *Witness, f func(geo.Location, Q) (A, error)) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		reply := func(status int, v any) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			_ = json.NewEncoder(rw).Encode(v) // The caller sees a broken answer.
		}
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
			reply(http.StatusForbidden, refusal{Error: "a certificate of a node is needed"})
			return
		}
		id, err := identity.Of(r.TLS.PeerCertificates[0])
		if err != nil || id.Location == "" {
			reply(http.StatusForbidden, refusal{Error: "a certificate of a node is needed"})
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, BodyMax))
		var q Q
		if err == nil {
			err = json.Unmarshal(body, &q)
		}
		if err != nil {
			reply(http.StatusBadRequest, refusal{Error: err.Error()})
			return
		}
		a, err := f(id.Location, q)
		switch {
		case err == nil:
			reply(http.StatusOK, a)
		case errors.Is(err, ErrPassed):
			reply(http.StatusConflict, refusal{Error: err.Error()})
		case errors.Is(err, ErrLate):
			reply(http.StatusPreconditionFailed, refusal{err.Error(), w.Position()})
		case errors.Is(err, errMalformed):
			reply(http.StatusBadRequest, refusal{Error: err.Error()})
		case errors.Is(err, ErrLocation), errors.Is(err, errForeign):
			reply(http.StatusForbidden, refusal{Error: err.Error()})
		default:
			reply(http.StatusServiceUnavailable, refusal{Error: err.Error()})
		}
	}
}
