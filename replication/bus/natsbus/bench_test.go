package natsbus

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/replication/bus"
	"antipode/replication/bus/bustest"
)

// newBench is a server, a connection, a publisher and the consumer, as one process
// of `antipode dev` has them.
func newBench(b *testing.B) (bus.Publisher, bus.Consumer) {
	srv, err := OpenServer(b.Context(), ServerOptions{Dir: b.TempDir()})
	require.NoError(b, err)
	conn, err := Connect(ConnOptions{Server: srv})
	require.NoError(b, err)
	o := Options{Source: bustest.Source}
	_, err = Ensure(b.Context(), conn, o)
	require.NoError(b, err)
	p, err := OpenPublisher(conn, o)
	require.NoError(b, err)
	q, err := OpenConsumer(conn, o)
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, p.Close())
		require.NoError(b, q.Close())
		require.NoError(b, conn.Close())
		require.NoError(b, srv.Close())
	})
	return p, q
}

// cpu is what the process has used so far.
func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// One op is one 64 KiB message published, stored, delivered and acknowledged, with
// a full window.
func BenchmarkFrames64KiB(b *testing.B) {
	p, q := newBench(b)
	frame := make([]byte, 64<<10)
	room := make(chan struct{}, 64)
	received := make(chan error, 1)
	go func() {
		for n := 0; n < b.N; {
			err := q.Wait(b.Context())
			got, _ := q.Poll(64)
			if len(got) > 0 {
				n += len(got)
				err = q.Ack(got[len(got)-1])
			}
			if err != nil {
				received <- err
				return
			}
		}
		received <- nil
	}()
	b.SetBytes(int64(len(frame)))
	before := cpu()
	b.ResetTimer()
	for range b.N {
		room <- struct{}{}
		require.NoError(b, p.Publish(bustest.Subject(0), frame, func(err error) {
			if err != nil {
				b.Error(err)
			}
			<-room
		}))
	}
	require.NoError(b, <-received)
	b.StopTimer()
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// One op is one second of an embedded server, a connection, a publisher and a
// consumer that have nothing to do.
func BenchmarkIdle(b *testing.B) {
	newBench(b)
	time.Sleep(time.Second) // the start is not idle
	before := cpu()
	b.ResetTimer()
	for range b.N {
		time.Sleep(time.Second)
	}
	b.StopTimer()
	b.ReportMetric(float64((cpu()-before).Microseconds())/1000/float64(b.N), "cpu-ms/s")
}
