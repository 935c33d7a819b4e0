package dev

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/replication/bus"
	"antipode/replication/pair"
	"antipode/server/location"
	"antipode/services/blobs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/extent"
)

// whyOf asks through the gateway what holds a service of northacct back.
func whyOf(t *testing.T, c *Cluster, s geo.Service) wire.ServiceWhy {
	t.Helper()
	client, err := wire.New("http://"+c.gateway.Admin(), nil)
	require.NoError(t, err)
	doc, err := client.Why(t.Context(), "northacct", 0)
	if err != nil {
		return wire.ServiceWhy{}
	}
	for _, silent := range doc.Silent {
		t.Logf("%+v", silent)
	}
	for _, w := range doc.Services {
		if w.Service == s.String() {
			return w
		}
	}
	t.Fatalf("%s is missing in %+v", s, doc)
	return wire.ServiceWhy{}
}

// becauseOf waits until a service is held back by a cause, and returns it.
func becauseOf(t *testing.T, c *Cluster, s geo.Service, is func(wire.Cause) bool) (found wire.Cause) {
	t.Helper()
	var last wire.ServiceWhy
	begun := time.Now()
	if !waitFor(func() bool {
		last = whyOf(t, c, s)
		for _, cause := range last.Causes {
			if is(cause) {
				found = cause
				return !last.OK
			}
		}
		return false
	}) {
		t.Fatalf("got %+v", last)
	}
	t.Logf("after %s: %+v", time.Since(begun), found)
	return found
}

func waitFor(ok func() bool) bool {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		if ok() {
			return true
		}
		<-time.After(20 * time.Millisecond)
	}
	return false
}

// All is well, then a link that is cut is named as such, and after it heals all is well.
//
// Capability: Two locations: What holds Last Sync Time back.
func TestWhyLinkCut(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	well := func() bool { return whyOf(t, c, geo.Table).OK }
	eventually(t, "all is well", well)
	require.Empty(t, whyOf(t, c, geo.Table).Causes)
	c.link.Cut()
	becauseOf(t, c, geo.Table, func(w wire.Cause) bool { return w.Stage == wire.StageLink })
	c.link.Heal()
	eventually(t, "all is well again", well)
}

// A primary that does not answer is named too, by the secondary alone.
//
// Capability: Two locations: What holds Last Sync Time back.
func TestWhyPrimaryStopped(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	require.NoError(t, c.servers[North].Stop())
	cause := becauseOf(t, c, geo.Table, func(w wire.Cause) bool { return w.Stage == wire.StageLink })
	require.Equal(t, South, cause.Location)
}

// deaf is a bus that takes what is published and never answers.
type deaf struct {
	bus.Publisher
	on *atomic.Bool
}

func (p deaf) Publish(subject string, data []byte, done func(error)) error {
	if p.on.Load() {
		return nil
	}
	return p.Publisher.Publish(subject, data, done)
}

// Frames that the bus does not confirm are the link's fault, as the primary sees it.
//
// Capability: Two locations: What holds Last Sync Time back.
func TestWhyBusDoesNotConfirm(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	c := startAdjusted(t, func(o *location.Options) {
		if o.Name == North {
			o.WrapPublisher = func(p bus.Publisher) bus.Publisher { return deaf{p, &on} }
		}
	})
	on.Store(true)
	cause := becauseOf(t, c, geo.Table, func(w wire.Cause) bool { return w.Stage == wire.StageLink })
	require.Equal(t, North, cause.Location)
	require.Positive(t, *cause.Seconds)
}

// A stream that may not go on is named, with its lane, and other services are well.
func TestWhyStoppedStream(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	stream := geo.Stream{Account: "northacct", Epoch: geo.Epoch{Number: 1, Location: North}, Range: geo.FirstRange(geo.Table), Lane: 3}
	require.NoError(t, c.locations[South].Submit(t.Context(), stream.Range, stopByHand{stream, change.Stop{Reason: change.StopForked}}))
	cause := becauseOf(t, c, geo.Table, func(w wire.Cause) bool { return w.Stage == wire.StageStopped })
	require.Equal(t, []any{stream.String(), stream.Range, stream.Lane, South}, []any{cause.Stream, cause.Range, *cause.Lane, cause.Location})
	eventually(t, "another service is well", func() bool { return whyOf(t, c, geo.Blob).OK })
}

// A secondary whose ranges have no leader is named as failing.
func TestWhySecondaryWithoutQuorum(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	for id := geo.NodeID(1); id < nodesPerLocation; id++ {
		require.NoError(t, c.stopNode(t.Context(), South, id))
	}
	cause := becauseOf(t, c, geo.Table, func(w wire.Cause) bool { return w.Stage == wire.StageFailing && w.Service == geo.Table.String() })
	require.Equal(t, South, cause.Location)
}

// withoutPayload is an end of the link that takes no chunks and sends none.
type withoutPayload struct {
	pair.End
	on *atomic.Bool
}

var errNoPayload = errors.New("no payload passes")

func (e withoutPayload) PutChunk(ctx context.Context, ref extent.Ref, data []byte) error {
	if e.on.Load() {
		return errNoPayload
	}
	return e.End.PutChunk(ctx, ref, data)
}

func (e withoutPayload) ReadChunk(ctx context.Context, ref extent.Ref, p []byte) error {
	if e.on.Load() {
		return errNoPayload
	}
	return e.End.ReadChunk(ctx, ref, p)
}

// A record whose payload does not come is named with its lane, what it waits for, and the error; the table
// service is well meanwhile. Once payload passes, all is well.
func TestWhyPayloadMissing(t *testing.T) {
	t.Parallel()
	var on atomic.Bool
	c := startWith(t, ClusterOptions{end: func(l *location.Location) pair.End { return withoutPayload{direct(l), &on} }})
	north := c.locations[North]
	create := &catalog.Create{Service: geo.Blob, Account: "northacct", Name: "cont"}
	require.NoError(t, north.Primary.Write(t.Context(), create))
	on.Store(true)
	data := []byte("payload")
	put := &blobs.PutBlob{
		Command: blobs.Command{Name: blobs.Name{Account: "northacct", Container: "cont", Generation: create.Created.Generation(), Blob: "b"}},
		Blob:    blobs.Blob{Length: uint64(len(data)), Chunks: []extent.Ref{extent.NewRef(extent.ChunkID{1}, data)}},
	}
	require.NoError(t, north.PutChunk(t.Context(), put.Blob.Chunks[0], data))
	require.NoError(t, north.Primary.Write(t.Context(), put))
	cause := becauseOf(t, c, geo.Blob, func(w wire.Cause) bool { return w.For == "payload" && w.Error != "" })
	require.Equal(t, wire.StageWaiting, cause.Stage)
	require.Equal(t, put.Name.Partition().Lane(), *cause.Lane)
	require.Contains(t, cause.Error, errNoPayload.Error())
	eventually(t, "another service is well", func() bool { return whyOf(t, c, geo.Table).OK })
	on.Store(false)
	eventually(t, "all is well", func() bool { return whyOf(t, c, geo.Blob).OK })
}
