package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/storageerr"
	"antipode/test/oracle"
	"antipode/test/rest"
)

const (
	table     = "crash"
	container = "crash"

	// backoff is how long a client waits after an answer that no write took
	// place: the server is down or busy.
	backoff = 20 * time.Millisecond
	// clockSlack bounds how far a commit time may run ahead of the wall clock.
	clockSlack = 100 * time.Millisecond
	// answerWait is how long a client waits for an answer before it gives it up
	// as lost. The server's own limit for a write is 30 s.
	answerWait = 40 * time.Second
)

// ErrContradiction says that a write was answered as if an acknowledged write
// before it had not happened, or with a status that it cannot have.
var ErrContradiction = errors.New("answer contradicts an acknowledged write")

// Options says how much to write. The zero value of each field has a meaning.
type Options struct {
	// Clients is the number of concurrent writers. Zero means 32.
	Clients int
	// EntitiesEach and BlobsEach are the keys of each client. Zero means 24
	// entities and 3 blobs; more keys cost more reads after each restart.
	EntitiesEach, BlobsEach int
	// BigClients is the number of clients that also own a blob of 4 MiB. Zero
	// means 4.
	BigClients int
	// BigWritesMax bounds the writes of 4 MiB in one Run: each costs six times its
	// size on disk. Zero means 24.
	BigWritesMax int
	// Seed makes the choice of writes. The interleaving is the machine's.
	Seed uint64
}

func (o Options) withDefaults() Options {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&o.Clients, 32)
	set(&o.EntitiesEach, 24)
	set(&o.BlobsEach, 3)
	set(&o.BigClients, 4)
	set(&o.BigWritesMax, 24)
	return o
}

// Load writes at Primary and tells Oracle. Its methods may follow each other in
// any order, with restarts of the server in between.
type Load struct {
	Primary, Secondary *rest.Client
	Oracle             *oracle.Oracle
	Clock              clock.Clock
	opts               Options
	bigLeft            atomic.Int64
	// entities, small and big count acknowledged writes of each kind.
	entities, small, big atomic.Int64
}

// Written returns how many writes of each kind were acknowledged: a test that
// wrote no big blob has not tested them.
func (l *Load) Written() (entities, smallBlobs, bigBlobs int) {
	return int(l.entities.Load()), int(l.small.Load()), int(l.big.Load())
}

// New returns a load over an empty store.
func New(primary, secondary *rest.Client, opts Options) *Load {
	return &Load{
		Primary: primary, Secondary: secondary, Oracle: oracle.New(),
		Clock: clock.System{}, opts: opts.withDefaults(),
	}
}

// Setup creates the table and the container.
func (l *Load) Setup(ctx context.Context) error {
	if err := l.Primary.CreateTable(ctx, table); err != nil {
		return err
	}
	return l.Primary.CreateContainer(ctx, container)
}

// Run writes from all clients until ctx ends or one of them meets a
// contradiction, which it returns.
func (l *Load) Run(ctx context.Context) error {
	l.bigLeft.Store(int64(l.opts.BigWritesMax))
	g, ctx := errgroup.WithContext(ctx)
	for i := range l.opts.Clients {
		rng := rand.New(rand.NewPCG(l.opts.Seed, uint64(i)))
		g.Go(func() error { return l.client(ctx, i, rng) })
	}
	l.opts.Seed++ // the next Run chooses other writes
	return g.Wait()
}

func (l *Load) client(ctx context.Context, id int, rng *rand.Rand) error {
	for ctx.Err() == nil {
		key := l.chooseKey(id, rng)
		if key[0] == kindBig && l.bigLeft.Add(-1) < 0 {
			continue
		}
		took := false
		if state, etag, ok := l.Oracle.Current(key); ok {
			var err error
			if took, err = l.write(ctx, key, state, etag, rng); err != nil {
				return err
			}
		}
		if !took {
			select {
			case <-ctx.Done():
			case <-time.After(backoff):
			}
		}
	}
	return nil
}

// chooseKey draws one of the client's keys. Partitions are shared between
// clients, so that their writes meet in groups.
func (l *Load) chooseKey(id int, rng *rand.Rand) string {
	n := rng.IntN(100)
	switch {
	case n < 2 && id < l.opts.BigClients:
		return fmt.Sprintf("%c/c%02d", kindBig, id)
	case n < 15:
		return fmt.Sprintf("%c/c%02d-%d", kindSmall, id, rng.IntN(l.opts.BlobsEach))
	}
	k := rng.IntN(l.opts.EntitiesEach)
	return fmt.Sprintf("%c/p%d/c%02d-%02d", kindEntity, k%8, id, k)
}

// write makes one write of key and tells the oracle how it went. took is false
// if nothing happened and the server should be given a moment.
func (l *Load) write(ctx context.Context, key string, s oracle.State, etag string, rng *rand.Rand) (took bool, err error) {
	var v oracle.Version
	remove := s.Present && rng.IntN(5) == 0
	merge := !remove && s.Present && key[0] == kindEntity
	switch {
	case remove:
		v = l.Oracle.Delete(key)
	case merge:
		v = l.Oracle.Merge(key)
	default:
		v = l.Oracle.Insert(key)
	}
	match := "*"
	if rng.IntN(2) == 0 && etag != "" {
		match = etag
	}
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	a, err := l.send(ctx, key, v, remove, merge, match)
	switch {
	case err != nil && rest.NeverSent(err), err == nil && a.Status == http.StatusServiceUnavailable && a.Code == storageerr.ServerBusy.Code:
		l.Oracle.Refused(key, v)
		return false, nil
	case err != nil || a.Status >= http.StatusInternalServerError:
		l.Oracle.Lost(key, v)
		return false, nil
	case !a.OK():
		return false, fmt.Errorf("%w: %s, version %d (remove %t, merge %t, If-Match %s) over %v: %v",
			ErrContradiction, key, v, remove, merge, match, s, a)
	}
	at := geo.TimestampOf(l.Clock.Now().Add(clockSlack))
	if !remove {
		var ok bool
		if at, ok = a.CommitTime(); !ok {
			return false, fmt.Errorf("%w: %s, version %d: ETag %q holds no time", ErrContradiction, key, v, a.Header.Get("ETag"))
		}
	}
	l.Oracle.Acked(key, v, tagOf(a, remove), at)
	switch key[0] {
	case kindEntity:
		l.entities.Add(1)
	case kindSmall:
		l.small.Add(1)
	default:
		l.big.Add(1)
	}
	return true, nil
}

// tagOf is the ETag of a write's answer; a delete leaves none, whatever it says.
func tagOf(a rest.Answer, remove bool) string {
	if remove {
		return ""
	}
	return a.Header.Get("ETag")
}

func (l *Load) send(ctx context.Context, key string, v oracle.Version, remove, merge bool, match string) (rest.Answer, error) {
	if key[0] != kindEntity {
		if remove {
			return l.Primary.DeleteBlob(ctx, container, key)
		}
		return l.Primary.PutBlob(ctx, container, key, blobValue(key, v))
	}
	pk, rk := entityKeys(key)
	switch {
	case remove:
		return l.Primary.DeleteEntity(ctx, table, match, pk, rk)
	case merge:
		return l.Primary.Merge(ctx, table, match, entityValue(key, v, true))
	}
	return l.Primary.Insert(ctx, table, entityValue(key, v, false))
}
