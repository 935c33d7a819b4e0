package rolling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"antipode/internal/clock"
	"antipode/test/faults/rig"
	"antipode/test/rest"
)

const (
	table     = "rolling"
	container = "rolling"
	// blobBytes is above the size that is kept in the log, so that blobs have chunks.
	blobBytes = 256 << 10
	// think lies between two requests of a client.
	think = 2 * time.Millisecond
	// backOff lies between the two tries of a request that was answered as busy or in doubt, as clients of the service wait
	// too: an election on a starved machine takes longer than the two tries. Where -pause is set the second one is at once.
	backOff = 3 * time.Second
)

// clients write, each its own keys, and read what they wrote. A request that fails is tried once more, at the other gateway.
type clients struct {
	gateways []*rest.Client
	next     atomic.Uint64

	mu sync.Mutex
	// acked are the keys that were acknowledged, by client.
	acked map[int][]int
	// retried are requests of which the first try failed, failed those of which both did, by the process that was restarted
	// then, and by what failed.
	retried, failed map[string]int
	requests        int
	// longest is how long a write took from its begin to its acknowledgement, its second try included. pause is the longest
	// time in which no write at all was acknowledged, pauses that of each process that was restarted; at is the one now.
	longest, pause time.Duration
	pauses         map[string]time.Duration
	at             string
	ackedAt        time.Duration
}

func newClients(r *rig.Rig) *clients {
	return &clients{
		gateways: []*rest.Client{r.Client(rig.Gateway, false), r.Client(rig.SecondGateway, false)},
		acked:    map[int][]int{}, retried: map[string]int{}, failed: map[string]int{}, pauses: map[string]time.Duration{}, ackedAt: clock.System{}.Mono(),
	}
}

// restarting records which process is restarted now.
func (c *clients) restarting(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = name
}

func (c *clients) setup(ctx context.Context) error {
	if err := c.gateways[0].CreateTable(ctx, table); err != nil {
		return err
	}
	return c.gateways[0].CreateContainer(ctx, container)
}

// run is one client until ctx ends.
func (c *clients) run(ctx context.Context, id int) {
	for n := 0; ctx.Err() == nil; n++ {
		if c.write(id, n) && n%4 == 3 {
			c.read(id, n)
		}
		rig.Pause(ctx, think)
	}
}

// try sends a request, and once more to another gateway if that fails. done reports whether an answer is a success.
// Requests outlive the context of the run: what was begun is to be answered.
func (c *clients) try(what string, send func(context.Context, *rest.Client) (rest.Answer, error), done func(a rest.Answer, again bool) bool) bool {
	first := c.next.Add(1)
	for again := range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		a, err := send(ctx, c.gateways[(first+uint64(again))%uint64(len(c.gateways))])
		cancel()
		if err == nil && done(a, again == 1) {
			return true
		}
		why := fmt.Sprintf("%s: %d %s", what, a.Status, a.Code)
		var whole *url.Error
		if errors.As(err, &whole) {
			err = whole.Err // Its URL names the row.
		}
		if err != nil {
			why = fmt.Sprintf("%s: %.150v", what, err)
		}
		c.mu.Lock()
		why = c.at + ": " + why
		if again == 0 {
			c.retried[why]++
		} else {
			c.failed[why]++
		}
		c.mu.Unlock()
		if again == 0 && a.Status >= http.StatusInternalServerError && *pauseMax == 0 {
			rig.Pause(context.Background(), backOff)
		}
	}
	return false
}

func partition(id int) string { return fmt.Sprintf("client-%d", id) }

func row(n int) string { return fmt.Sprintf("row-%08d", n) }

// isBlob reports whether the client writes blobs.
func isBlob(id int) bool { return id%4 == 3 }

func content(n int) []byte { return bytes.Repeat([]byte(row(n)), blobBytes/len(row(n))) }

// write reports whether the write was acknowledged.
func (c *clients) write(id, n int) (acked bool) {
	began := clock.System{}.Mono()
	acked = c.try("write", func(ctx context.Context, to *rest.Client) (rest.Answer, error) {
		if isBlob(id) {
			return to.PutBlob(ctx, container, partition(id)+"/"+row(n), content(n))
		}
		return to.Insert(ctx, table, rest.Entity{"PartitionKey": partition(id), "RowKey": row(n), "N": n})
	}, func(a rest.Answer, again bool) bool {
		return a.OK() || again && a.Code == "EntityAlreadyExists" // The first try had an effect.
	})
	now := clock.System{}.Mono()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if acked {
		c.acked[id] = append(c.acked[id], n)
		c.longest, c.pause = max(c.longest, now-began), max(c.pause, now-c.ackedAt)
		c.pauses[c.at], c.ackedAt = max(c.pauses[c.at], now-c.ackedAt), now
	}
	return acked
}

func (c *clients) read(id, n int) {
	c.try("read", func(ctx context.Context, from *rest.Client) (rest.Answer, error) { return get(ctx, from, id, n) },
		func(a rest.Answer, _ bool) bool { return a.OK() })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
}

// get reads what a client wrote.
func get(ctx context.Context, from *rest.Client, id, n int) (rest.Answer, error) {
	if isBlob(id) {
		return from.GetBlob(ctx, container, partition(id)+"/"+row(n))
	}
	_, a, err := from.GetEntity(ctx, table, partition(id), row(n))
	return a, err
}

// lost returns how many acknowledged writes cannot be read, or not as they were written.
func (c *clients) lost(ctx context.Context) (lost []string, checked int) {
	for id, keys := range c.acked {
		for _, n := range keys {
			a, err := get(ctx, c.gateways[0], id, n)
			if err != nil || !a.OK() || isBlob(id) && !bytes.Equal(a.Body, content(n)) {
				lost = append(lost, fmt.Sprintf("%s %s: %v %v", partition(id), row(n), a, err))
			}
			checked++
		}
	}
	return lost, checked
}
