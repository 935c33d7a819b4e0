// Package apitest is what the tests of the front ends share: a stamp in memory, and its
// state as one value, so that a test can show that a request changed nothing.
package apitest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/blobs"
	"antipode/stamp"
	"antipode/stamp/change"
	"antipode/stamp/feature"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/memtransport"
	"antipode/stamp/node"
	"antipode/stamp/ranges"
	"antipode/stamp/state"
)

// Quiet is a logger that drops everything.
func Quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// NewStamp starts the stamp "north" of three nodes on fs, in which the account may be
// written in the ranges of the services. It ends with the test.
func NewStamp(t testing.TB, fs vfs.FS, account geo.Account, services ...geo.Service) *stamp.Stamp {
	t.Helper()
	return NewStampAt(t, clock.System{}, fs, account, services...)
}

// NewStampAt is NewStamp with a clock, the same for all nodes.
func NewStampAt(t testing.TB, c clock.Clock, fs vfs.FS, account geo.Account, services ...geo.Service) *stamp.Stamp {
	t.Helper()
	s := stamp.New(node.Options{
		Location: "north", Peers: []geo.NodeID{1, 2, 3}, Dir: "data", Clock: c, Transport: memtransport.New(),
		Tick: 20 * time.Millisecond, Seed: 1, State: state.Options{FS: fs, LogSegmentBytes: 1 << 20, Logger: Quiet()}, Logger: Quiet(),
		RowChunks: blobs.RowChunks, ChunkSpans: blobs.ChunkSpans,
	})
	for _, id := range s.Nodes() {
		require.NoError(t, s.Start(id))
	}
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	submit := func(service geo.Service, c ranges.Command) {
		err := kv.ErrUnknown
		for errors.Is(err, kv.ErrUnknown) { // On a busy machine the first leader may be deposed.
			err = s.Submit(t.Context(), s.Route().Service(service)[0].ID, c)
		}
		require.NoError(t, err)
	}
	for _, service := range services {
		submit(service, openGate{account})
	}
	submit(geo.Catalog, finalize{})
	for _, id := range s.Nodes() { // Each takes it over as it applies it.
		require.Eventually(t, func() bool { return s.Node(id).Range(s.Route().Catalog()).Levels().Active() == feature.Known }, time.Minute, time.Millisecond)
	}
	return s
}

// finalize makes all active that this program may write, as in a location that is made new.
type finalize struct{}

// Evaluate implements ranges.Command.
func (finalize) Evaluate(tx *ranges.Tx) error {
	return tx.RaiseLevels(change.Levels{Floor: feature.Known, Active: feature.Known})
}

// openGate makes an account writable in a range. To do it twice is to do it once.
type openGate struct{ account geo.Account }

// Evaluate implements ranges.Command.
func (g openGate) Evaluate(tx *ranges.Tx) error {
	tx.SetGate(g.account, change.Gate{
		Epoch: geo.Epoch{Number: 1, Location: "north"}, Role: change.RolePrimary, Open: true, Numbered: true,
	})
	return nil
}

// State is what a range holds and what it would send to the other location. Closed
// records, which an idle range writes too, are no part of it.
type State struct {
	// Heads are the last numbers of its streams.
	Heads map[geo.Stream]geo.Head
	// Rows is a hash of every row of data.
	Rows string
}

// States returns the state of the first range of each service.
func States(t testing.TB, s *stamp.Stamp, services ...geo.Service) map[geo.Service]State {
	t.Helper()
	out := map[geo.Service]State{}
	for _, service := range services {
		var state State
		id := s.Route().Service(service)[0].ID
		err := s.Read(t.Context(), id, func(at ranges.State) (err error) {
			state.Rows, err = digest(at, service)
			return err
		})
		require.NoError(t, err)
		state.Heads, _ = s.Leader(id).Machine.Heads()
		out[service] = state
	}
	return out
}

func digest(at ranges.State, service geo.Service) (string, error) {
	snap := at.Snapshot()
	prefix := keys.AppendService(nil, service)
	it, err := snap.Scan(prefix, keys.PrefixEnd(prefix))
	if err != nil {
		return "", errors.Join(err, snap.Close())
	}
	h := sha256.New()
	for it.Next() {
		for _, part := range [][]byte{it.Key(), it.Value()} {
			_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(part)))) // A hash takes everything.
			_, _ = h.Write(part)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), errors.Join(it.Close(), snap.Close())
}

// Raw sends bytes on a connection of its own to a server's URL, and returns all that
// comes back. With closeWrite it announces that no more will come: an upload that breaks off.
func Raw(t testing.TB, url, request string, closeWrite bool) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, request)
	require.NoError(t, err)
	if closeWrite {
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
	}
	b, _ := io.ReadAll(c) // The server may reset what it did not read.
	return string(b)
}
