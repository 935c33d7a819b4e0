package load

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/internal/clock"
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

// ErrContradiction means that a write was answered as if an acknowledged write
// before it had not happened, or with a status that it cannot have.
var ErrContradiction = errors.New("answer contradicts an acknowledged write")

// Options configures how much to write. The zero value of each field has a meaning.
type Options struct {
	// Clients is the number of concurrent writers. Zero means 32.
	Clients int
	// EntitiesEach, GroupsEach, BlobsEach and BlocksEach are the keys of each
	// client. Zero means 24 entities, 2 groups, 3 blobs and 2 blobs in blocks; more
	// keys cost more reads after each restart.
	EntitiesEach, GroupsEach, BlobsEach, BlocksEach int
	// BigClients is the number of clients that also own a blob of 4 MiB and one of
	// blocks of 1 to 4 MiB. Zero means 4.
	BigClients int
	// BigWritesMax bounds the writes of those in one Run: each costs six times its
	// size on disk. Zero means 24.
	BigWritesMax int
	// Logs is the number of append blobs that clients append to at a time, three to each. Zero means none.
	Logs int
	// Taken is the number of clients that also own blobs of which snapshots are taken. Zero means none.
	Taken int
	// Long is the number of clients that also own a list that is too long to be copied by one change. For each of them three copy
	// these and other blobs. Zero means none.
	Long int
	// Pause is how long a client waits after each write. Zero means that it writes at once.
	Pause time.Duration
	// OnWrite is called after each write, from any goroutine, with how long it took and how it ended;
	// nil is not called.
	OnWrite func(took time.Duration, a rest.Answer, err error)
	// Seed determines the choice of writes. Their interleaving depends on the machine.
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
	set(&o.GroupsEach, 2)
	set(&o.BlobsEach, 3)
	set(&o.BlocksEach, 2)
	set(&o.BigClients, 4)
	set(&o.BigWritesMax, 24)
	return o
}

// Load writes at Primary and reports to Oracle. Its methods may follow each other in
// any order, with restarts of the server in between.
type Load struct {
	Primary, Secondary *rest.Client
	Oracle             *oracle.Oracle
	Clock              clock.Clock
	opts               Options
	clients            []*client
	lister             *lister
	slots              []*slot
	taken              []*takenOf
	snapshots          *oracle.Snapshots
	long               []*longList
	copies             *oracle.Copies
	// beside run beside clients and lister.
	beside  []runner
	bigLeft atomic.Int64

	mu sync.Mutex
	// done counts what was checked to have gone as it must, by kind.
	done map[Kind]int
}

// runner is what runs until its context ends.
type runner interface {
	run(ctx context.Context) error
}

// Kind is what a test may want to know to have been played.
type Kind string

// The kinds: acknowledged writes, and below them writes refused as they must be and
// listings made while others wrote.
const (
	Entities      Kind = "entities"
	Transactions  Kind = "transactions"
	SmallBlobs    Kind = "small blobs"
	BigBlobs      Kind = "blobs of 4 MiB"
	Metadata      Kind = "metadata"
	BlockLists    Kind = "block lists"
	BigBlockLists Kind = "block lists of 1-4 MiB"
	Resumed       Kind = "resumed uploads"

	Refused   Kind = "conditions refused"
	BlobLists Kind = "listings of blobs"
	Queries   Kind = "queries"

	// With Options.Logs.
	Appends  Kind = "appends"
	LogReads Kind = "reads of append blobs"
	// With Options.Taken.
	SnapshotsTaken   Kind = "snapshots"
	SnapshotsRead    Kind = "reads of snapshots"
	SnapshotsDeleted Kind = "deletions of snapshots"
	SnapshotLists    Kind = "listings with snapshots"
	// With Options.Long. CopiesCut are copies in steps without an answer, of which there are none if nothing fails.
	LongLists     Kind = "long block lists"
	Copies        Kind = "copies"
	CopiesInSteps Kind = "copies in steps"
	CopiesRead    Kind = "reads of copies"
	CopiesCut     Kind = "copies in steps without an answer"
)

// Kinds returns every kind that is played with the options of l.
func (l *Load) Kinds() []Kind {
	all := []Kind{
		Entities, Transactions, SmallBlobs, BigBlobs, Metadata, BlockLists, BigBlockLists, Resumed,
		Refused, BlobLists, Queries,
	}
	if l.opts.Logs > 0 {
		all = append(all, Appends, LogReads)
	}
	if l.opts.Taken > 0 {
		all = append(all, SnapshotsTaken, SnapshotsRead, SnapshotsDeleted, SnapshotLists)
	}
	if l.opts.Long > 0 {
		all = append(all, LongLists, Copies, CopiesInSteps, CopiesRead)
	}
	return all
}

// Done returns how often each kind was played: a test that wrote no big blob has not
// tested them.
func (l *Load) Done() map[Kind]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.done)
}

func (l *Load) count(k Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[k]++
}

// New returns a load over an empty store.
func New(primary, secondary *rest.Client, opts Options) *Load {
	l := &Load{
		Primary: primary, Secondary: secondary, Oracle: oracle.New(),
		Clock: clock.System{}, opts: opts.withDefaults(), done: map[Kind]int{},
	}
	random := func(stream int) *rand.Rand { return rand.New(rand.NewPCG(opts.Seed, uint64(stream))) }
	for i := range l.opts.Clients {
		l.clients = append(l.clients, &client{Load: l, id: i, rng: random(i), staged: map[string]oracle.Version{}})
	}
	l.lister = &lister{Load: l, rng: random(l.opts.Clients)}
	l.snapshots, l.copies = oracle.NewSnapshots(l.Oracle), oracle.NewCopies(l.Oracle)
	stream := l.opts.Clients
	next := func() *rand.Rand {
		stream++
		return random(stream)
	}
	for i := range l.opts.Logs {
		s := &slot{Load: l, number: i}
		l.slots = append(l.slots, s)
		for range appenders {
			l.beside = append(l.beside, &appender{Load: l, slot: s, rng: next()})
		}
	}
	if l.opts.Logs > 0 {
		l.beside = append(l.beside, &logReader{Load: l, rng: next()})
	}
	for i := range l.opts.Taken {
		l.taken = append(l.taken, &takenOf{client: i})
		l.beside = append(l.beside, &taker{Load: l, of: l.taken[i], rng: next()})
	}
	for i := range l.opts.Long {
		l.long = append(l.long, &longList{client: l.opts.Clients - 1 - i})
		for range copiers {
			l.beside = append(l.beside, &copier{Load: l, rng: next()})
		}
	}
	return l
}

// Setup creates the table and the containers.
func (l *Load) Setup(ctx context.Context) error {
	err := errors.Join(l.Primary.CreateTable(ctx, table), l.Primary.CreateContainer(ctx, container))
	if l.opts.Logs > 0 {
		err = errors.Join(err, l.Primary.CreateContainer(ctx, logContainer))
	}
	if l.opts.Long > 0 {
		err = errors.Join(err, l.Primary.CreateContainer(ctx, copyContainer))
	}
	return err
}

// Run writes from all clients, and lists beside them, until ctx ends or one of them meets a contradiction, which it returns.
// When ctx ends, each client waits for the answer of the write under way, for answerWait at most: one that is given up
// could land after it was looked for.
func (l *Load) Run(ctx context.Context) error {
	l.bigLeft.Store(int64(l.opts.BigWritesMax))
	g, ctx := errgroup.WithContext(ctx)
	for _, c := range l.clients {
		g.Go(func() error { return c.run(ctx) })
	}
	g.Go(func() error { return l.lister.run(ctx) })
	for _, r := range l.beside {
		g.Go(func() error { return r.run(ctx) })
	}
	return g.Wait()
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
