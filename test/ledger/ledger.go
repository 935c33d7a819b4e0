package ledger

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/test/rest"
)

// Name is the table and the container that a ledger writes.
const Name = "ledger"

// Fate is what the client knows of a write.
type Fate string

// The fates.
const (
	// Acked: it was acknowledged.
	Acked Fate = "acknowledged"
	// Unknown: there was no answer, or one that leaves it open.
	Unknown Fate = "unknown"
	// Refused: it certainly did not happen.
	Refused Fate = "refused"
)

// Entry is one write: an entity with Key as both of its keys, or a blob of that name.
type Entry struct {
	Service geo.Service
	Key     string
	// Began and Ended are when the client sent it and had its answer.
	Began, Ended time.Time
	Fate         Fate
	// At is its commit time as its answer says it, zero for one that was not acknowledged.
	At geo.Timestamp
	// Bytes is the size of what was written.
	Bytes int
	// Status is that of the answer, zero for none.
	Status int
}

func (e Entry) String() string {
	return fmt.Sprintf("%s %s, %s (%d), committed at %s, answered at %s", e.Service, e.Key, e.Fate, e.Status, e.At, e.Ended.UTC().Format(timeForm))
}

const timeForm = "15:04:05.000000"

// Ledger is what was written. The zero value is empty. Methods may be called concurrently.
type Ledger struct {
	// Prefix begins every key, so that two ledgers may write one account.
	Prefix string

	mu      sync.Mutex
	begun   int
	entries []Entry
	acked   int
}

// Setup creates the table and the container.
func Setup(ctx context.Context, c *rest.Client) error {
	if err := c.CreateTable(ctx, Name); err != nil {
		return err
	}
	return c.CreateContainer(ctx, Name)
}

// Times of a client.
const (
	// backoff is the pause after a write that was not acknowledged.
	backoff = 20 * time.Millisecond
	// answerWait is how long a client waits for an answer before it gives it up as lost.
	answerWait = 40 * time.Second
	readPause  = 50 * time.Millisecond
	readers    = 16
)

// PayloadBytes is the least size of a blob whose bytes travel apart from its record. Other writes have some valueBytes.
const (
	PayloadBytes = 20 << 10
	valueBytes   = 200
)

// Run has clients write through c, each one after the other with a pause, until ctx ends. Every write under way then has its
// answer, or has waited for it for answerWait: none is given up by its client.
func (l *Ledger) Run(ctx context.Context, c *rest.Client, clients int, rest time.Duration) {
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				if e := l.write(c, n); e.Fate != Acked {
					pause(ctx, backoff)
				}
				pause(ctx, rest)
			}
		})
	}
	wg.Wait()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// write makes one write.
func (l *Ledger) write(c *rest.Client, n int) Entry {
	l.mu.Lock()
	l.begun++
	e := Entry{Service: geo.Table, Key: fmt.Sprintf("%s%06d", l.Prefix, l.begun), Began: time.Now()}
	l.mu.Unlock()
	if n%3 == 0 {
		e.Service = geo.Blob
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWait)
	defer cancel()
	var a rest.Answer
	var err error
	body := value(e)
	e.Bytes = len(body)
	if e.Service == geo.Blob {
		a, err = c.PutBlob(ctx, Name, e.Key, []byte(body))
	} else {
		a, err = c.Insert(ctx, Name, rest.Entity{"PartitionKey": e.Key, "RowKey": e.Key, "v": body})
	}
	e.Ended, e.Status, e.Fate = time.Now(), a.Status, fateOf(a, err)
	if e.Fate == Acked {
		e.At, _ = a.CommitTime()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	if e.Fate == Acked {
		l.acked++
	}
	return e
}

// value is what a write writes: some 200 bytes. Each fifth blob is of PayloadBytes.
func value(e Entry) string {
	size := valueBytes
	if last := e.Key[len(e.Key)-1]; e.Service == geo.Blob && (last == '0' || last == '5') {
		size = PayloadBytes
	}
	return fmt.Sprintf("%0*d %s", size, 0, e.Key)
}

// fateOf is what the answer to a write says of it. Of the errors of the server only one of the 400s refuses for sure, but
// for a conflict: the key exists, as after a request that was sent twice on the way.
func fateOf(a rest.Answer, err error) Fate {
	switch {
	case err != nil && rest.NeverSent(err):
		return Refused
	case err != nil:
		return Unknown
	case a.OK():
		return Acked
	case a.Status >= http.StatusInternalServerError || a.Status == http.StatusConflict:
		return Unknown
	}
	return Refused
}

// Acked is how many writes were acknowledged.
func (l *Ledger) Acked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// Entries are the writes that have ended, in the order of their ends.
func (l *Ledger) Entries() []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

// Found is what is left of the writes of a ledger. Each list is in the order of the ledger.
type Found struct {
	// Kept are those that can be read, whatever their fate; Lost those that were acknowledged and are gone, and Absent
	// those of an unknown fate that are not there.
	Kept, Lost, Absent []Entry
}

// ErrWrong means that a value can be read that was not written, or whose write was refused.
var ErrWrong = errors.New("ledger: what is read was not written so")

// Find reads every write of the ledger through c while nobody writes, and waits for each answer until ctx ends.
func (l *Ledger) Find(ctx context.Context, c *rest.Client) (Found, error) {
	entries := l.Entries()
	there := make([]bool, len(entries))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, e := range entries {
		g.Go(func() (err error) {
			there[i], err = find(ctx, c, e)
			return err
		})
	}
	var out Found
	if err := g.Wait(); err != nil {
		return out, err
	}
	for i, e := range entries {
		switch {
		case there[i] && e.Fate == Refused:
			return out, fmt.Errorf("%w: it is there: %s", ErrWrong, e)
		case there[i]:
			out.Kept = append(out.Kept, e)
		case e.Fate == Acked:
			out.Lost = append(out.Lost, e)
		case e.Fate == Unknown:
			out.Absent = append(out.Absent, e)
		}
	}
	return out, nil
}

// There reports whether a write can be read through c now, as it was written. An error is one of the call, and what answers
// neither that it is there nor that it is not.
func There(ctx context.Context, c *rest.Client, e Entry) (bool, error) {
	got, a, err := get(ctx, c, e)
	switch {
	case err != nil:
		return false, err
	case a.OK() && got != value(e):
		return true, fmt.Errorf("%w: %s: found %.250q", ErrWrong, e, got)
	case a.OK() || a.Status == http.StatusNotFound:
		return a.OK(), nil
	}
	return false, fmt.Errorf("ledger: %s is not answered: %v", e, a)
}

// find is There, and waits for the answer until ctx ends.
func find(ctx context.Context, c *rest.Client, e Entry) (bool, error) {
	for {
		there, err := There(ctx, c, e)
		if err == nil || errors.Is(err, ErrWrong) {
			return there, err
		}
		if ctx.Err() != nil {
			return false, errors.Join(err, ctx.Err())
		}
		pause(ctx, readPause)
	}
}

func get(ctx context.Context, c *rest.Client, e Entry) (string, rest.Answer, error) {
	if e.Service == geo.Blob {
		a, err := c.GetBlob(ctx, Name, e.Key)
		return string(a.Body), a, err
	}
	got, a, err := c.GetEntity(ctx, Name, e.Key, e.Key)
	v, _ := got["v"].(string)
	return v, a, err
}

// Of returns the entries of a service.
func Of(list []Entry, s geo.Service) (out []Entry) {
	for _, e := range list {
		if e.Service == s {
			out = append(out, e)
		}
	}
	return out
}

// Through returns those that were committed at or before a time.
func Through(list []Entry, at time.Time) (out []Entry) {
	for _, e := range list {
		if !e.At.Time().After(at) {
			out = append(out, e)
		}
	}
	return out
}
