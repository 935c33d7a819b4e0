package dev

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/replication/link"
	"antipode/replication/pair"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/extent"
	"antipode/stamp/ranges"
)

var errAnswerLost = errors.New("the answer was lost")

// callWire carries calls between two locations of this process, encoded, and loses some of
// the answers.
type callWire struct {
	handlers map[string]func(ctx context.Context, body []byte) ([]byte, error)
	// loses is one in how many answers; 0 for none.
	loses int

	mu    sync.Mutex
	rng   *rand.Rand
	calls map[string]int
	lost  int
}

func newCallWire(loses int) *callWire {
	return &callWire{
		handlers: map[string]func(ctx context.Context, body []byte) ([]byte, error){}, loses: loses,
		rng: rand.New(rand.NewPCG(1, 2)), calls: map[string]int{},
	}
}

// Handle implements link.Handlers.
func (w *callWire) Handle(method string, f func(ctx context.Context, body []byte) ([]byte, error)) {
	w.handlers[method] = f
}

// Call implements link.Caller.
func (w *callWire) Call(ctx context.Context, method string, body []byte) ([]byte, error) {
	out, err := w.handlers[method](ctx, append([]byte(nil), body...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[method]++
	if w.loses > 0 && err == nil && w.rng.IntN(w.loses) == 0 {
		w.lost++
		return nil, errAnswerLost
	}
	return out, err
}

// forgetful loses one in three of the frames that it says it stored.
type forgetful struct {
	bus.Publisher
	mu  *sync.Mutex
	rng *rand.Rand
}

func (p forgetful) Publish(subject string, data []byte, done func(error)) error {
	p.mu.Lock()
	lose := p.rng.IntN(3) == 0
	p.mu.Unlock()
	if lose {
		done(nil)
		return nil
	}
	return p.Publisher.Publish(subject, data, done)
}

// Two locations that ask each other by encoded calls, of whose answers one in four is
// lost, replicate as they do directly: frames that the bus lost are pulled, payload
// comes along, outboxes are emptied, and nothing forks.
func TestReplicationOverCalls(t *testing.T) {
	t.Parallel()
	w := map[geo.Location]*callWire{North: newCallWire(4), South: newCallWire(4)}
	var l *link.Link
	c := startWith(t, ClusterOptions{
		adjust: func(o *location.Options) {
			l = o.Link
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(3, 4))
			o.WrapPublisher = func(p bus.Publisher) bus.Publisher { return forgetful{p, &mu, rng} }
		},
		end: func(far *location.Location) pair.End {
			to := w[far.Location()]
			pair.Serve(to, l, direct(far))
			return pair.NewRemote(to)
		},
	})
	createTable(t, c, "northacct")
	north, south := c.locations[North], c.locations[South]
	cont := &catalog.Create{Service: geo.Blob, Account: "northacct", Name: "cont"}
	require.NoError(t, north.Primary.Write(t.Context(), cont))
	var last *blobs.PutBlob
	const n = 30
	for i := range n {
		put(t, c, "northacct", fmt.Sprintf("k%d", i), "x")
		data := blobContent(100<<10, byte(i))
		last = &blobs.PutBlob{
			Command: blobs.Command{Name: blobs.Name{
				Account: "northacct", Container: "cont", Generation: cont.Created.Generation(), Blob: fmt.Sprintf("b%d", i),
			}},
			Blob: blobs.Blob{Length: uint64(len(data)), Chunks: []extent.Ref{extent.NewRef(extent.ChunkID{byte(i)}, data)}},
		}
		require.NoError(t, north.PutChunk(t.Context(), last.Blob.Chunks[0], data))
		require.NoError(t, north.Primary.Write(t.Context(), last))
	}
	for i := range n {
		name := last.Name
		name.Blob = fmt.Sprintf("b%d", i)
		eventually(t, "the value and the blob arrive", func() bool {
			return read(t, c, "northacct", "-secondary", fmt.Sprintf("k%d", i)) == "x" &&
				south.Read(t.Context(), geo.FirstRange(geo.Blob), func(s ranges.State) error {
					_, err := blobs.GetBlob(s, name)
					return err
				}) == nil
		})
		data := make([]byte, 100<<10)
		_, err := south.ReadChunk(extent.NewRef(extent.ChunkID{byte(i)}, blobContent(len(data), byte(i))), 0, data)
		require.NoError(t, err)
		require.Equal(t, blobContent(len(data), byte(i)), data)
	}
	for _, svc := range []geo.Service{geo.Table, geo.Blob} {
		eventually(t, "the outbox is emptied", func() bool {
			b, err := leaderOf(c, North, geo.FirstRange(svc)).Machine.Backlog()
			return err == nil && b.Records == 0
		})
	}
	require.Zero(t, c.meters.Alarms.Counts(South)[receive.AlarmFork])
	for l, method := range map[geo.Location]string{North: "link.Records", South: "link.PutChunk"} {
		w := w[l]
		w.mu.Lock()
		asked := w.calls[method]
		t.Logf("asked of %s: %v, %d answers lost", l, w.calls, w.lost)
		w.mu.Unlock()
		require.Positive(t, asked, method)
	}
}

// A name is reserved over calls as it is directly, errors of the protocol included, also
// when answers get lost and the creation is asked for again; a location reserves nothing
// that is not the other's.
func TestReserveOverCalls(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	north, south := c.locations[North], c.locations[South]
	w := newCallWire(2)
	directory.ServePeer(w, c.link, south.Directory, nil)
	north.Directory.SetPeer(directory.NewRemotePeer(c.link.Caller(w)))
	for i := range 5 {
		name := geo.Account(fmt.Sprintf("overcalls%d", i))
		var a *catalog.Account
		for err := error(storageerr.ServerBusy); err != nil; {
			if a, err = north.Directory.Create(t.Context(), name, nil, nil); err != nil {
				require.ErrorContains(t, err, errAnswerLost.Error())
			}
		}
		eventually(t, "the account is complete at the other location", func() bool {
			got, err := south.Directory.Account(t.Context(), name)
			return err == nil && got.Epoch == a.Epoch && string(got.Key1) == string(a.Key1)
		})
	}
	require.Positive(t, w.lost)

	w.loses = 0
	peer := directory.NewRemotePeer(w)
	err := peer.Reserve(t.Context(), catalog.Account{Name: "southacct", Redundancy: catalog.RAGRS, Primary: North, Secondary: South, Epoch: 9, Created: 1})
	require.ErrorIs(t, err, storageerr.AccountAlreadyExists)
	for _, a := range []catalog.Account{
		{Name: "third", Primary: South, Secondary: North},
		{Name: "third", Primary: "elsewhere", Secondary: South},
		{Name: "Bad Name", Primary: North, Secondary: South},
		{Name: "third", Primary: North, Secondary: South},
	} {
		require.ErrorContains(t, peer.Reserve(t.Context(), a), "may name here")
	}
	there := errors.New("node 2 is to be asked")
	directory.ServePeer(w, c.link, south.Directory, func(geo.RangeID) error { return there })
	a := catalog.Account{Name: "third", Redundancy: catalog.RAGRS, Primary: North, Secondary: South}
	require.ErrorIs(t, peer.Reserve(t.Context(), a), there)
	c.link.Cut()
	require.ErrorIs(t, peer.Reserve(t.Context(), a), link.ErrCut)
}
