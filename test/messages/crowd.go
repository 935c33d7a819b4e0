package messages

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"antipode/test/rest"
)

const (
	// answerWait is how long a client waits for an answer before it gives it up as lost.
	answerWait = 40 * time.Second
	backoff    = 20 * time.Millisecond
	// drainHide is for how long a drain hides what it takes: longer than it takes to delete it.
	drainHide  = time.Minute
	messageMax = 32
)

// Crowd is producers and consumers of one queue.
type Crowd struct {
	History
	Queue                string
	Producers, Consumers int
	// Hide is for how long a consumer hides what it gets, in whole seconds.
	Hide time.Duration
	// Pause is the pause of each client between two requests.
	Pause time.Duration
	Seed  uint64
}

// Run has producers and consumers work through all clients in turn until ctx ends, and returns when every request under way
// has its answer.
func (c *Crowd) Run(ctx context.Context, through ...*rest.Client) {
	var wg sync.WaitGroup
	for i := range c.Producers {
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				c.put(through[n%len(through)], i)
				pause(ctx, c.Pause)
			}
		})
	}
	for i := range c.Consumers {
		rng := rand.New(rand.NewPCG(c.Seed, uint64(i)))
		wg.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				if c.consume(through[n%len(through)], rng, i) == 0 {
					pause(ctx, backoff)
				}
				pause(ctx, c.Pause)
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

// fateOf is what an answer says of a request: of the errors of the server only those of the 400s refuse for sure.
func fateOf(a rest.Answer, err error) fate {
	switch {
	case err != nil && rest.NeverSent(err):
		return refused
	case err != nil || a.Status >= http.StatusInternalServerError:
		return unknown
	case a.OK():
		return acked
	}
	return refused
}

func waiting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), answerWait)
}

func (c *Crowd) put(client *rest.Client, producer int) {
	ctx, cancel := waiting()
	defer cancel()
	key, text := c.begin(producer, time.Now())
	m, a, err := client.PutMessage(ctx, c.Queue, text)
	c.putEnded(key, fateOf(a, err), m.ID, time.Now())
	if !a.OK() {
		pause(ctx, backoff)
	}
}

// consume gets some messages and does with each what its chance says: most are deleted, some are hidden again first, and
// some are left to come back.
func (c *Crowd) consume(client *rest.Client, rng *rand.Rand, consumer int) (got int) {
	ctx, cancel := waiting()
	defer cancel()
	sent := time.Now()
	list, _, err := client.GetMessages(ctx, c.Queue, 1+rng.IntN(8), c.Hide)
	if err != nil {
		return 0
	}
	ended := time.Now()
	for _, m := range list {
		h := c.got(m.ID, m.Text, hold{count: m.DequeueCount, sent: sent, ended: ended, until: sent.Add(c.Hide), byWhom: consumer})
		switch chance := rng.IntN(10); {
		case h == nil || chance == 0:
		case chance == 1:
			c.hideAndDelete(client, m, h)
		default:
			c.delete(client, m)
		}
	}
	return len(list)
}

// hideAndDelete hides a message again, and deletes it by the new receipt; the old one must not work any more.
func (c *Crowd) hideAndDelete(client *rest.Client, m rest.Message, h *hold) {
	ctx, cancel := waiting()
	defer cancel()
	until := time.Now().Add(c.Hide)
	receipt, a, err := client.HideMessage(ctx, c.Queue, m, c.Hide)
	f := fateOf(a, err)
	c.hidden(h, f, until)
	if f != acked {
		return
	}
	c.deleteBegins(m.Text) // If the old receipt works it is gone.
	a, err = client.DeleteMessage(ctx, c.Queue, m)
	c.stale(m.Text, fateOf(a, err))
	m.Receipt = receipt
	c.delete(client, m)
}

func (c *Crowd) delete(client *rest.Client, m rest.Message) {
	ctx, cancel := waiting()
	defer cancel()
	c.deleteBegins(m.Text)
	sent := time.Now()
	a, err := client.DeleteMessage(ctx, c.Queue, m)
	c.deleteEnded(m.Text, fateOf(a, err), sent, time.Now())
}

// Drain reads how many messages the queue has, and takes them all out of it, while nobody else works. It repeats what is
// refused until ctx ends.
func (c *Crowd) Drain(ctx context.Context, client *rest.Client) error {
	for counted := false; ; pause(ctx, backoff) {
		n, a, err := client.CountMessages(ctx, c.Queue)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("messages: %d left of %s: %v, %w, %w", n, c.Queue, a, err, ctx.Err())
		case err != nil || !a.OK():
			continue
		case !counted:
			counted = true
			c.counts(n)
		}
		if n == 0 {
			return nil
		}
		sent := time.Now()
		list, _, _ := client.GetMessages(ctx, c.Queue, messageMax, drainHide)
		for _, m := range list {
			c.got(m.ID, m.Text, hold{count: m.DequeueCount, sent: sent, ended: time.Now(), until: sent.Add(drainHide), byWhom: c.Consumers})
			c.leaves(m.Text)
			for ctx.Err() == nil {
				if a, err := client.DeleteMessage(ctx, c.Queue, m); fateOf(a, err) == acked || a.Status == http.StatusNotFound {
					break
				}
				pause(ctx, backoff)
			}
		}
	}
}
