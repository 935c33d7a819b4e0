package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"

	"antipode/api/wire"
	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/test/rest"
)

const (
	// rows are what transactions write in a partition. The last is written by each of them, so that a
	// snapshot shows which one was the last.
	rows = 5
	head = rows - 1
	// partitions are used at a time, and others after so many operations.
	partitions       = 2
	partitionsRenews = 120
)

// Step is what a transaction does to one row: Put, Insert, Swap or Delete.
type Step struct {
	Verb Verb
	Row  int
	// Value is written; Expect is what a swap replaces, Tag its ETag.
	Value, Expect, Tag string
}

// Transaction is an entity group transaction. Without steps it is a query of the partition.
type Transaction struct {
	Partition string
	Steps     []Step
}

// Outcome is what the client knows of a transaction.
type Outcome struct {
	// Unknown is set if no answer came.
	Unknown bool
	// Failed is the step that could not be done, which undid the rest; -1 if all were.
	Failed int
	// Rows are what a query found, "" for nothing, and Tags their ETags.
	Rows, Tags [rows]string
}

// partition is a partition as one client after the other would see it: a transaction takes effect whole or not at
// all, and a query sees all rows at one moment.
func partition() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			return apart(history, func(input any) string { return input.(Transaction).Partition })
		},
		Init: func() any { return [rows]string{} },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.([rows]string), input.(Transaction), output.(Outcome)
			if len(in.Steps) == 0 {
				return out.Unknown || out.Rows == now, now
			}
			next, failed := in.apply(now)
			return out.Unknown || out.Failed == failed, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// apply returns the rows after the transaction, and the step that could not be done, or -1.
func (t Transaction) apply(now [rows]string) (next [rows]string, failed int) {
	next = now
	for i, s := range t.Steps {
		at := now[s.Row]
		does, value := true, s.Value
		switch s.Verb {
		case Insert:
			does = at == ""
		case Swap:
			does = at == s.Expect
		case Delete:
			does, value = at != "", ""
		}
		if !does {
			return now, i
		}
		next[s.Row] = value
	}
	return next, -1
}

// Transactor makes transactions and queries one after the other, each at one of the endpoints, while more says so.
func (h *History) Transactor(ctx context.Context, id int, rng *rand.Rand, endpoints []*rest.Client, more func(done int) bool) error {
	seen := map[string]Outcome{} // by partition, what was read last
	for i := 0; more(i); i++ {
		t := Transaction{Partition: h.partition(rng)}
		if last, known := seen[t.Partition]; known && rng.IntN(3) > 0 {
			t.Steps = steps(rng, fmt.Sprintf("c%d-%d", id, i), last)
		}
		out, happened, err := h.transact(ctx, id, endpoints[rng.IntN(len(endpoints))], t)
		if err != nil {
			return err
		}
		if !happened {
			refused(ctx)
		} else if len(t.Steps) == 0 && !out.Unknown {
			seen[t.Partition] = out
		}
	}
	return nil
}

// Follower reads partitions at -secondary while more says so. What it sees may be old, and never goes back. Of
// what it sees again and again the first time is kept, which says most of when it was.
func (h *History) Follower(ctx context.Context, id int, rng *rand.Rand, c *rest.Client, more func(done int) bool) error {
	newest := map[string]geo.Timestamp{} // by partition, when the last row was written
	kept := map[string]Outcome{}
	for i := 0; more(i); i++ {
		t := Transaction{Partition: h.partition(rng)}
		out, happened, err := sendQuery(ctx, c, t.Partition)
		switch {
		case err != nil:
			return err
		case !happened || out.Unknown:
			refused(ctx)
			continue
		case out == kept[t.Partition]:
			continue
		}
		kept[t.Partition] = out
		h.sawOld(id, t, out)
		written, _ := wire.ParseTableETag(out.Tags[head])
		if was := newest[t.Partition]; written < was {
			return fmt.Errorf("%w: the follower of %s read what was written at %v after %v", ErrNotLinearizable, t.Partition, written, was)
		}
		newest[t.Partition] = written
	}
	return nil
}

// partition draws one of those in use.
func (h *History) partition(rng *rand.Rand) string {
	ops, _, _ := h.Counts()
	return fmt.Sprintf("t%d-%d", ops/partitionsRenews, rng.IntN(partitions))
}

// steps draws what a transaction does to one to four rows, which last has shown, and to the last row.
func steps(rng *rand.Rand, value string, last Outcome) (all []Step) {
	for _, row := range rng.Perm(head)[:1+rng.IntN(head)] {
		s := Step{Verb: Put + Verb(rng.IntN(int(verbs-Put))), Row: row, Value: value}
		if s.Verb == Swap {
			if last.Rows[row] == "" {
				s.Verb = Put
			}
			s.Expect, s.Tag = last.Rows[row], last.Tags[row]
		}
		all = append(all, s)
	}
	return append(all, Step{Verb: Put, Row: head, Value: value})
}

// transact sends a transaction or a query and records it.
func (h *History) transact(ctx context.Context, client int, c *rest.Client, t Transaction) (out Outcome, happened bool, err error) {
	call := h.now()
	if len(t.Steps) > 0 {
		h.began(t.Steps[len(t.Steps)-1].Value, call)
		out, happened, err = sendTransaction(ctx, c, t)
	} else {
		out, happened, err = sendQuery(ctx, c, t.Partition)
	}
	err = h.record(porcupine.Operation{ClientId: client, Input: t, Call: call, Output: out}, happened, out.Unknown, err)
	return out, happened, err
}

// sawOld records a query at -secondary: it may show the partition as it was at any time since the call of the
// transaction that it shows last.
func (h *History) sawOld(client int, t Transaction, out Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{
		ClientId: client, Input: t, Call: h.starts[out.Rows[head]], Output: out, Return: h.now(),
	})
}

// began keeps when a transaction was called that writes this value.
func (h *History) began(value string, call int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starts[value] = call
}

// sendTransaction sends one change set. happened is false where it is certain that nothing did. An error is an
// answer that the transaction cannot have.
func sendTransaction(ctx context.Context, c *rest.Client, t Transaction) (out Outcome, happened bool, err error) {
	var ops []rest.Operation
	for _, s := range t.Steps {
		op := rest.Operation{Entity: rest.Entity{"PartitionKey": t.Partition, "RowKey": strconv.Itoa(s.Row), "V": s.Value}}
		switch s.Verb {
		case Put:
			op.Method = http.MethodPut
		case Insert:
			op.Method = http.MethodPost
		case Swap:
			op.Method, op.Match = http.MethodPut, s.Tag
		default:
			op.Method, op.Match = http.MethodDelete, "*"
		}
		ops = append(ops, op)
	}
	parts, a, err := c.Transact(ctx, Table, ops)
	if err != nil {
		return Outcome{Unknown: true}, !rest.NeverSent(err), nil
	}
	if a.Status != http.StatusAccepted {
		return unanswered(t, a)
	}
	if len(parts) == len(ops) && parts[0].OK() {
		return Outcome{Failed: -1}, true, nil
	}
	if len(parts) != 1 {
		return Outcome{}, true, fmt.Errorf("%+v is answered by %d parts", t, len(parts))
	}
	_, text, _ := strings.Cut(string(parts[0].Body), `"value":"`)
	index, _, _ := strings.Cut(text, ":")
	out.Failed, err = strconv.Atoi(index)
	if err != nil || parts[0].Status == http.StatusBadRequest || parts[0].Code == storageerr.TableNotFound.Code {
		return Outcome{}, true, fmt.Errorf("%+v is answered %v", t, parts[0])
	}
	return out, true, nil
}

// sendQuery reads all rows of a partition in one page.
func sendQuery(ctx context.Context, c *rest.Client, key string) (out Outcome, happened bool, err error) {
	page, a, err := c.Query(ctx, Table, rest.Query{Filter: "PartitionKey eq '" + key + "'"})
	if err != nil {
		return Outcome{Unknown: true}, !rest.NeverSent(err), nil
	}
	if a.Status != http.StatusOK {
		return unanswered(key, a)
	}
	for _, e := range page.Entities {
		row, err := strconv.Atoi(e["RowKey"].(string))
		if err != nil || row < 0 || row >= rows {
			return out, true, fmt.Errorf("query of %s: row %v", key, e["RowKey"])
		}
		out.Rows[row], _ = e["V"].(string)
		out.Tags[row], _ = e[rest.ETagProperty].(string)
	}
	if page.Next != (rest.Continuation{}) {
		err = fmt.Errorf("query of %s: more than a page", key)
	}
	return out, true, err
}

// unanswered takes an answer that says nothing of the rows.
func unanswered(what any, a rest.Answer) (out Outcome, happened bool, err error) {
	switch {
	case a.Status == http.StatusServiceUnavailable:
		return Outcome{}, false, nil
	case a.Status == http.StatusInternalServerError && a.Code == storageerr.OperationTimedOut.Code:
		return Outcome{Unknown: true}, true, nil
	}
	return Outcome{}, true, fmt.Errorf("%+v is answered %v", what, a)
}
