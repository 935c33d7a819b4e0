package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/anishathalye/porcupine"

	"antipode/test/rest"
)

const (
	// leasedBlobs are used at a time, and others after so many operations.
	leasedBlobs       = 2
	leasedBlobsRenews = 150
	// One more is used for slowEvery, by one operation of so many, and is left by those that lease it: so leases end there.
	slowEvery = 40 * time.Second
	slowShare = 12
)

// holder is a client that leases blobs.
type holder struct {
	*History
	id  int
	rng *rand.Rand
	// held has, by key, the id of the lease that the client takes for its own, and last the one before that.
	held, last map[string]string
	ids        int
}

// Holder leases blobs and writes them, with the lease and without, one after the other, each at one of the endpoints, while
// more says so. Clients differ in id, which is below 1000. An answer that no state explains ends it with an error.
func (h *History) Holder(ctx context.Context, id int, rng *rand.Rand, endpoints []*rest.Client, more func(done int) bool) error {
	c := &holder{History: h, id: id, rng: rng, held: map[string]string{}, last: map[string]string{}}
	for i := 0; more(i); i++ {
		key, slow := c.drawKey()
		op := c.draw(key, slow, fmt.Sprintf("c%d-%d", id, i))
		out, happened, err := h.lease(ctx, id, endpoints[rng.IntN(len(endpoints))], op)
		if err != nil {
			return err
		}
		if !happened {
			refused(ctx)
			continue
		}
		c.learn(op, out, slow)
	}
	return nil
}

// drawKey draws a blob.
func (c *holder) drawKey() (key string, slow bool) {
	if c.rng.IntN(slowShare) == 0 {
		return fmt.Sprintf("slow-%d", c.now()/int64(slowEvery)), true
	}
	ops, _, _ := c.Counts()
	return fmt.Sprintf("leased-%d-%d", ops/leasedBlobsRenews, c.rng.IntN(leasedBlobs)), false
}

// draw draws what is done to a blob.
func (c *holder) draw(key string, slow bool, value string) LeaseOp {
	op := LeaseOp{Key: key, ID: c.held[key]}
	n := c.rng.IntN(20)
	switch {
	case n < 3:
		op.Verb, op.ID = Look, ""
	case n < 6:
		op.Verb, op.ID, op.Value = Write, "", value
	case n < 7 && !slow:
		op.Verb, op.ID, op.Seconds = Break, "", c.rng.IntN(3)
	case op.ID == "" && n < 15:
		c.ids++
		op.Verb, op.ID, op.Seconds = Acquire, fmt.Sprintf("00000000-0000-0000-%04d-%012d", c.id, c.ids), leaseSeconds
		if !slow && c.rng.IntN(2) == 0 {
			op.Seconds = -1
		}
	default:
		if op.ID == "" {
			op.ID = c.last[key] // It is given back, or lost.
		}
		switch op.Verb = []LeaseVerb{Write, Write, Renew, Release}[c.rng.IntN(4)]; {
		case op.ID == "":
			op.Verb = Look
		case op.Verb == Write:
			op.Value = value
		}
	}
	return op
}

// learn takes what an operation says of the client's own lease.
func (c *holder) learn(op LeaseOp, out LeaseResult, slow bool) {
	switch {
	case op.Verb == Acquire && (out.Done || out.Unknown):
		c.held[op.Key], c.last[op.Key] = op.ID, op.ID
		if slow && c.rng.IntN(4) > 0 {
			delete(c.held, op.Key)
			delete(c.last, op.Key)
		}
	case op.ID != "" && op.ID == c.held[op.Key] && !out.Unknown && (op.Verb == Release || !out.Done):
		delete(c.held, op.Key)
	}
}

// lease sends one operation and records it.
func (h *History) lease(ctx context.Context, client int, c *rest.Client, op LeaseOp) (out LeaseResult, happened bool, err error) {
	op.Call = h.now()
	out, happened, err = sendLease(ctx, c, op)
	if out.Return = h.now(); out.Unknown {
		out.Return = ever
	}
	err = h.record(porcupine.Operation{ClientId: client, Input: op, Call: op.Call, Output: out}, happened, out.Unknown, err)
	return out, happened, err
}

// Leases returns how often each operation was done, and how often it was refused by the state of the blob.
func (h *History) Leases() (done map[string]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	done = map[string]int{}
	for _, o := range h.ops {
		in, out := o.Input.(LeaseOp), o.Output.(LeaseResult)
		name := in.Verb.String()
		if in.Verb == Write && in.ID != "" {
			name += " under a lease"
		}
		switch {
		case out.Unknown:
			name += ", no answer"
		case !out.Done:
			name += ", refused"
		}
		done[name]++
	}
	return done
}

// sendLease sends one operation. happened is false where it is certain that nothing did. An error is an answer that the
// operation cannot have.
func sendLease(ctx context.Context, c *rest.Client, op LeaseOp) (out LeaseResult, happened bool, err error) {
	var a rest.Answer
	switch op.Verb {
	case Look:
		a, err = c.GetBlob(ctx, Container, op.Key)
	case Write:
		a, err = c.PutBlobWith(ctx, Container, op.Key, []byte(op.Value), rest.BlobWrite{LeaseID: op.ID})
	default:
		a, err = c.Lease(ctx, Container, op.Key, rest.Lease{Action: op.Verb.String(), ID: op.ID, Seconds: op.Seconds})
	}
	if err != nil {
		return LeaseResult{Unknown: true}, !rest.NeverSent(err), nil
	}
	if op.Verb == Look && a.Status == http.StatusOK {
		return LeaseResult{Done: true, Value: string(a.Body), Locked: a.Header.Get("x-ms-lease-status") == "locked"}, true, nil
	}
	out.Done, out.Unknown, happened, err = concluded(op, a)
	return out, happened, err
}
