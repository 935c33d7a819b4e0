package dev

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/bus"
	"antipode/replication/bus/natsbus"
	"antipode/replication/receive"
	"antipode/server/location"
	"antipode/stamp/change"
)

// sentRecords counts the table records that leave a location: published and pulled.
type sentRecords struct{ published, pulled atomic.Int64 }

// adjust is for ClusterOptions: it counts what north sends to south.
func (c *sentRecords) adjust(o *location.Options) {
	if o.Name == North {
		o.WrapPublisher = func(p bus.Publisher) bus.Publisher { return countedPublisher{p, c} }
	} else {
		o.WrapSource = func(s receive.Source) receive.Source { return countedSource{s, c} }
	}
}

type countedPublisher struct {
	bus.Publisher
	c *sentRecords
}

func (p countedPublisher) Publish(subject string, data []byte, done func(error)) error {
	err := p.Publisher.Publish(subject, data, done)
	if f, parseErr := change.ParseFrame(data); err == nil && parseErr == nil && f.Range == geo.FirstRange(geo.Table) {
		p.c.published.Add(int64(len(f.Records)))
	}
	return err
}

type countedSource struct {
	receive.Source
	c *sentRecords
}

func (s countedSource) Records(st geo.Stream, from geo.Seq, bytesMax int, done func([][]byte, error)) {
	s.Source.Records(st, from, bytesMax, func(records [][]byte, err error) {
		if st.Range == geo.FirstRange(geo.Table) {
			s.c.pulled.Add(int64(len(records)))
		}
		done(records, err)
	})
}

// A stream deleted under load loses, repeats and reorders nothing, raises its alarm, and causes
// only records that were not acknowledged to be sent again: the backlog and those in flight
// (R15).
// It holds invariant 2.
//
// Capability: Two locations: JetStream loses nothing for us.
func TestStreamDeletedUnderLoad(t *testing.T) {
	t.Parallel()
	var sent sentRecords
	c := startAdjusted(t, sent.adjust)
	createTable(t, c, "northacct")
	var writes atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	last := make([]int, 8)
	for w := range last {
		wg.Go(func() {
			for i := 1; ctx.Err() == nil; i++ {
				a, err := try(c.gateway, "northacct", http.MethodPut, entityPath("northacct", "", fmt.Sprintf("w%d", w)), fmt.Sprintf(`{"v":"%d"}`, i))
				if unanswered(a, err) {
					i--
					continue
				}
				if err != nil || a.status != http.StatusNoContent {
					t.Errorf("write: %v %s", err, a.body)
					return
				}
				last[w] = i
				writes.Add(1)
			}
		})
	}
	waiting := func() int64 {
		lead := c.locations[North].Leader(geo.FirstRange(geo.Table))
		if lead == nil {
			return 0
		}
		b, err := lead.Machine.Backlog()
		require.NoError(t, err)
		return b.Records
	}
	var mayResend int64
	for round := range 3 {
		eventually(t, "writes go on", func() bool { return writes.Load() > int64(100*(round+1)) })
		deleteStream(t, c.locations[South], North)
		// What waits now or joins it until the flow is back may be sent again.
		most := waiting()
		at := applied(c)
		eventually(t, "records flow again", func() bool {
			most = max(most, waiting())
			return applied(c) > at+geo.Seq(most)
		})
		mayResend += most
	}
	eventually(t, "writes go on", func() bool { return writes.Load() > 400 })
	stop()
	wg.Wait()
	for w, n := range last {
		eventually(t, "the last value arrives", func() bool {
			return read(t, c, "northacct", "-secondary", fmt.Sprintf("w%d", w)) == strconv.Itoa(n)
		})
	}
	require.Positive(t, c.meters.Alarms.Counts(South)[receive.AlarmIncarnation], "the alarm is counted")
	require.Zero(t, c.meters.Alarms.Counts(South)[receive.AlarmFork])

	all := int64(committed(c))
	again := sent.published.Load() + sent.pulled.Load() - all
	t.Logf("%d records committed, %d published, %d pulled: %d sent again, %d allowed",
		all, sent.published.Load(), sent.pulled.Load(), again, mayResend)
	require.LessOrEqual(t, again, mayResend)
}

// deleteStream deletes the stream from source in the bus of l.
func deleteStream(t *testing.T, l *location.Location, source geo.Location) {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(l))
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	eventually(t, "the stream is there to be deleted", func() bool {
		return js.DeleteStream(t.Context(), natsbus.StreamName(source)) == nil
	})
}

// The folder of the bus is wiped while its location is stopped: the records in it are pulled, and
// the next message raises the alarm (R15).
//
// Capability: Two locations: JetStream loses nothing for us.
// Capability: Two locations: Which stream a location received last is in its catalog (R15).
func TestBusWipedWhileStopped(t *testing.T) {
	t.Parallel()
	c := startFaulty(t)
	createTable(t, c, "northacct")
	put(t, c, "northacct", "before", "x")
	eventually(t, "a value arrives", func() bool { return read(t, c, "northacct", "-secondary", "before") == "x" })

	require.NoError(t, c.servers[South].Stop())
	const n = 100
	for i := range n {
		put(t, c, "northacct", fmt.Sprintf("k%d", i), "x")
	}
	require.NoError(t, os.RemoveAll(filepath.Join(c.o.Dir, string(South), "nats")))
	require.NoError(t, c.servers[South].Start(t.Context()))
	for i := range n {
		eventually(t, "what was written meanwhile arrives", func() bool {
			return read(t, c, "northacct", "-secondary", fmt.Sprintf("k%d", i)) == "x"
		})
	}
	eventually(t, "the alarm is counted", func() bool { return c.meters.Alarms.Counts(South)[receive.AlarmIncarnation] > 0 })
	require.Zero(t, c.meters.Alarms.Counts(South)[receive.AlarmFork])
}
