package hostile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"antipode/internal/clock"
	"antipode/test/rest"
)

// What the honest client uses in its own account.
const (
	honestTable     = "honest"
	honestContainer = "honest"
	honestQueue     = "honest"
	honestBlobBytes = 4 << 10
)

// Honest is a client that writes and reads entities and small blobs, and puts, gets and deletes messages, one at a time.
type Honest struct {
	Client *rest.Client
	turn   int
}

// Prepare makes its table, container and queue.
func (h *Honest) Prepare(ctx context.Context) error {
	if err := h.Client.CreateTable(ctx, honestTable); err != nil {
		return err
	}
	if err := h.Client.CreateContainer(ctx, honestContainer); err != nil {
		return err
	}
	return h.Client.CreateQueue(ctx, honestQueue)
}

// take gets and deletes the one message that is there.
func (h *Honest) take(ctx context.Context, text string) (rest.Answer, error) {
	got, a, err := h.Client.GetMessages(ctx, honestQueue, 1, time.Minute)
	if err != nil || !a.OK() {
		return a, err
	}
	if len(got) != 1 || got[0].Text != text {
		return a, fmt.Errorf("got %+v, want %s", got, text)
	}
	return h.Client.DeleteMessage(ctx, honestQueue, got[0])
}

// Report is what the honest client saw.
type Report struct {
	// Took is how long each operation took, ascending.
	Took []time.Duration
	// Failed is what did not succeed, with the answer.
	Failed []string
}

// Quantile is the time within which a part q of the operations was answered.
func (r Report) Quantile(q float64) time.Duration {
	if len(r.Took) == 0 {
		return 0
	}
	return r.Took[min(int(q*float64(len(r.Took))), len(r.Took)-1)]
}

// String is one line: how many operations, the median and the 99th percentile.
func (r Report) String() string {
	return fmt.Sprintf("%d operations, median %v, p99 %v, most %v, %d failed",
		len(r.Took), r.Quantile(0.5).Round(10*time.Microsecond), r.Quantile(0.99).Round(10*time.Microsecond), r.Quantile(1).Round(10*time.Microsecond), len(r.Failed))
}

// Run works for d, and says what it saw.
func (h *Honest) Run(ctx context.Context, d time.Duration) (Report, error) {
	var rep Report
	body := make([]byte, honestBlobBytes)
	for end := (clock.System{}).Mono() + d; (clock.System{}).Mono() < end; h.turn++ {
		row, blob := fmt.Sprintf("%09d", h.turn), fmt.Sprint("b", h.turn)
		for what, op := range []func() (rest.Answer, error){
			func() (rest.Answer, error) {
				return h.Client.Insert(ctx, honestTable, rest.Entity{"PartitionKey": "p", "RowKey": row, "Value": "honest"})
			},
			func() (rest.Answer, error) {
				_, a, err := h.Client.GetEntity(ctx, honestTable, "p", row)
				return a, err
			},
			func() (rest.Answer, error) { return h.Client.PutBlob(ctx, honestContainer, blob, body) },
			func() (rest.Answer, error) { return h.Client.GetBlob(ctx, honestContainer, blob) },
			func() (rest.Answer, error) {
				_, a, err := h.Client.PutMessage(ctx, honestQueue, row)
				return a, err
			},
			func() (rest.Answer, error) { return h.take(ctx, row) },
		} {
			began := (clock.System{}).Mono()
			a, err := op()
			rep.Took = append(rep.Took, (clock.System{}).Mono()-began)
			switch {
			case err != nil:
				rep.Failed = append(rep.Failed, fmt.Sprintf("operation %d: %v", what, err))
			case !a.OK():
				rep.Failed = append(rep.Failed, fmt.Sprintf("operation %d: %v", what, a))
			}
			if ctx.Err() != nil {
				return rep, ctx.Err()
			}
		}
	}
	slices.Sort(rep.Took)
	return rep, nil
}
