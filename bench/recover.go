package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/primary"
	blobrows "antipode/services/blobs"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
)

// workloadRecover loads three nodes that talk over TLS on loopback with --bytes, half in rows of 1
// KiB and half in blobs of 4 MiB. It loses the folder of one node. It measures how long that node
// takes to be a replica of every range again, with all payload, and what it moved.
const workloadRecover = "recover-node"

const (
	// recoverBytes is how much is loaded by default.
	recoverBytes = 2 << 30
	// rowsPerChange and blobBytes shape the load.
	rowsPerChange = 100
	blobBytes     = 4 << 20
	// recoverWait bounds the recovery, and recoverPoll is the time between two looks.
	recoverWait = 20 * time.Minute
	recoverPoll = 20 * time.Millisecond
	// lostNode is the one whose folder is lost.
	lostNode geo.NodeID = 3
)

// recovered is what a recovery came to. Bytes are of one copy.
type recovered struct {
	Workload    string  `json:"workload"`
	Bytes       int64   `json:"bytes"`
	RowBytes    int64   `json:"row_bytes"`
	BlobBytes   int64   `json:"blob_bytes"`
	LoadSeconds float64 `json:"load_seconds"`
	// Seconds from the start of the node on an empty folder until every range counts it in
	// sync and it holds all payload; RangeSeconds the same for each service's range alone.
	Seconds      float64            `json:"seconds"`
	RangeSeconds map[string]float64 `json:"range_seconds"`
	// WireBytes passed the connections between the nodes meanwhile. PayloadBytes of them
	// are payload that the node holds now, LogBytes what its logs hold; RestBytes are the
	// range snapshots, and what framing and TLS add.
	WireBytes    int64 `json:"wire_bytes"`
	PayloadBytes int64 `json:"payload_bytes"`
	LogBytes     int64 `json:"log_bytes"`
	RestBytes    int64 `json:"rest_bytes"`
}

func measureRecovery(ctx context.Context, o Options, clk clock.Clock, out io.Writer) error {
	return inFolder(o, func(dir string) (err error) {
		n, err := startNetwork(ctx, dir)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.Close()) }()
		began := clk.Now()
		l := &loader{nodes: &n.nodes, o: o}
		if err := l.load(ctx); err != nil {
			return fmt.Errorf("loading: %w", err)
		}
		res := recovered{Workload: o.Workload, RowBytes: l.rowBytes, BlobBytes: l.blobBytes, Bytes: l.rowBytes + l.blobBytes}
		res.LoadSeconds = clk.Now().Sub(began).Seconds()
		if err := n.lose(lostNode); err != nil {
			return err
		}
		if err := res.recover(ctx, n, l.refs, clk); err != nil {
			return err
		}
		return res.print(out, o.JSON)
	})
}

// loader fills the nodes.
type loader struct {
	*nodes
	o                   Options
	rowBytes, blobBytes int64

	mu   sync.Mutex
	refs []extent.Ref // of all payload
}

func (l *loader) load(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	changes := int(l.o.Bytes) / 2 / (rowsPerChange * commitBytes)
	blobs := int(l.o.Bytes) / 2 / blobBytes
	l.rowBytes, l.blobBytes = int64(changes)*rowsPerChange*commitBytes, int64(blobs)*blobBytes
	for i := range l.o.Concurrency {
		g.Go(func() error {
			source := rand.NewChaCha8([32]byte{byte(i), byte(i >> 8)}) // Nothing can be folded.
			for c := i; c < changes; c += l.o.Concurrency {
				if err := l.putRows(ctx, c, source); err != nil {
					return err
				}
			}
			for b := i; b < blobs; b += l.o.Concurrency {
				if err := l.putBlob(ctx, b, source); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (l *loader) putRows(ctx context.Context, number int, source *rand.ChaCha8) error {
	put := &putRows{object: fmt.Sprintf("p%05d", number%l.o.Partitions), ops: make([]change.Op, rowsPerChange)}
	for i := range put.ops {
		value := make([]byte, commitBytes)
		_, _ = source.Read(value)
		row := binary.BigEndian.AppendUint32([]byte("r"), uint32(number*rowsPerChange+i))
		put.ops[i] = change.Op{Row: row, Value: value}
	}
	return l.Submit(ctx, geo.FirstRange(geo.Table), put)
}

func (l *loader) putBlob(ctx context.Context, number int, source *rand.ChaCha8) error {
	put := &blobrows.PutBlob{
		Command: blobrows.Command{Name: blobrows.Name{Account: commitAccount, Container: "c", Blob: fmt.Sprintf("b%06d", number)}},
		Blob:    blobrows.Blob{Length: blobBytes},
	}
	data := make([]byte, extent.ChunkBytesMax)
	for rest := blobBytes; rest > 0; rest -= extent.ChunkBytesMax {
		data = data[:min(rest, extent.ChunkBytesMax)]
		_, _ = source.Read(data)
		var id extent.ChunkID
		_, _ = source.Read(id[:])
		ref := extent.NewRef(id, data)
		if err := l.stamps[0].PutChunk(ctx, ref, data); err != nil {
			return err
		}
		put.Blob.Chunks = append(put.Blob.Chunks, ref)
	}
	l.mu.Lock()
	l.refs = append(l.refs, put.Blob.Chunks...)
	l.mu.Unlock()
	return primary.New(l).Write(ctx, put)
}

// putRows is one change of many rows.
type putRows struct {
	object string
	ops    []change.Op
}

// Evaluate implements ranges.Command.
func (c *putRows) Evaluate(tx *ranges.Tx) error {
	p := keys.Partition{Service: geo.Table, Account: commitAccount, Container: "t", Object: c.object}
	return tx.Change(p, change.Record{CommitTime: tx.Timestamp(0), Partition: p.Append(nil), Ops: c.ops})
}

// recover starts the node and waits until it is whole.
func (res *recovered) recover(ctx context.Context, n *network, refs []extent.Ref, clk clock.Clock) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWait)
	defer cancel()
	res.RangeSeconds = map[string]float64{}
	moved, began := n.moved.Load(), clk.Now()
	if err := n.reopen(lostNode); err != nil {
		return err
	}
	services := append([]geo.Service{geo.Catalog}, geo.Services[:]...)
	for len(res.RangeSeconds) < len(services) {
		for _, s := range services {
			if _, done := res.RangeSeconds[s.String()]; !done && n.holds(geo.FirstRange(s)) {
				res.RangeSeconds[s.String()] = clk.Now().Sub(began).Seconds()
			}
		}
		if pause(ctx, recoverPoll); ctx.Err() != nil {
			return fmt.Errorf("node %d is no replica of every range after %v: in sync %v", lostNode, clk.Now().Sub(began), res.RangeSeconds)
		}
	}
	lost := n.stamps[lostNode-1].Node(lostNode)
	for _, ref := range refs {
		if !lost.Extents().Durable(ref.ID) {
			return fmt.Errorf("node %d is in sync without chunk %s", lostNode, ref.ID)
		}
	}
	res.Seconds = clk.Now().Sub(began).Seconds()
	res.WireBytes = n.moved.Load() - moved
	res.PayloadBytes = lost.Extents().Stats().Bytes
	for _, s := range services {
		res.LogBytes += int64(lost.LogBytes(geo.FirstRange(s)))
	}
	res.RestBytes = res.WireBytes - res.PayloadBytes - res.LogBytes
	return nil
}

// holds reports whether the leader of a range counts the lost node, which has applied what
// it has, in sync. That the leader has not missed it yet does not count: what it applied is
// then nothing.
func (n *network) holds(id geo.RangeID) bool {
	lost := n.stamps[lostNode-1].Node(lostNode)
	if lost == nil {
		return false
	}
	for _, s := range n.stamps {
		if r := s.Leader(id); r != nil {
			applied := lost.Range(id).Machine.AppliedState().Index
			return r.InSync() == replicas && applied > 0 && applied >= r.Machine.AppliedState().Index
		}
	}
	return false
}

// print writes the result for people, or as one line of JSON.
func (res *recovered) print(out io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(res)
	}
	var b strings.Builder
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&b, format+"\n", args...) }
	line("%s: three nodes over TLS on loopback, %v: %v in rows of 1 KiB, %v in blobs of 4 MiB",
		res.Workload, byteSize(res.Bytes), byteSize(res.RowBytes), byteSize(res.BlobBytes))
	line("  loaded    in %.1f s", res.LoadSeconds)
	line("  whole     %.1f s after its start on an empty folder: in sync for every range, all payload there", res.Seconds)
	line("  in sync   table %.1f s, blob %.1f s, queue %.1f s, catalog %.1f s",
		res.RangeSeconds["table"], res.RangeSeconds["blob"], res.RangeSeconds["queue"], res.RangeSeconds["catalog"])
	line("  moved     %v: payload %v, log %v, range snapshots with framing and TLS %v",
		byteSize(res.WireBytes), byteSize(res.PayloadBytes), byteSize(res.LogBytes), byteSize(res.RestBytes))
	_, err := io.WriteString(out, b.String())
	return err
}
