package verify

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/stamp/extent"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Bounds of a scan.
const (
	// nodesMax is how many nodes a scan is asked for at most.
	nodesMax = 1024
	// resultMax bounds the result of a scan, in bytes.
	resultMax = 32 << 20
	// damagesMax is how many damaged chunks a scan lists. It counts the others.
	damagesMax = 500
	// paceBytes is how much is read between two looks at the clock.
	paceBytes = 1 << 20
	// checkBytes is how much of a chunk is read at a time.
	checkBytes = 1 << 20
	// bytesPerSecond is the rate at which a scan reads where none is asked for.
	bytesPerSecond = 64 << 20
)

// Want is what a scan returns.
type Want string

// The results of a scan.
const (
	// WantSums: the tallies of the nodes.
	WantSums Want = "sums"
	// WantParts: the tallies of the parts of the nodes, one level deeper.
	WantParts Want = "parts"
	// WantRows: the rows of the nodes.
	WantRows Want = "rows"
)

// Payload is how the payload chunks that rows name are examined.
type Payload string

// Ways to examine payload.
const (
	PayloadIgnored Payload = ""
	// PayloadPresent: each chunk has to be durable.
	PayloadPresent Payload = "present"
	// PayloadRead: each chunk is read too, and its checksums compared.
	PayloadRead Payload = "read"
)

// Scan asks for a walk over the rows of a snapshot.
type Scan struct {
	// Number is greater for each scan of a session. The same number names the same scan.
	Number  uint64
	Want    Want
	Nodes   []Node
	Payload Payload `json:",omitempty"`
	// BytesPerSecond bounds what is read. Zero means 64 MiB/s.
	BytesPerSecond uint64 `json:",omitempty"`
}

// Damage is a payload chunk that a row names and that is not intact.
type Damage struct {
	Key   []byte
	Chunk string
	// Reason is missing, or the error of the read.
	Reason string
}

// ReasonMissing is the reason of a chunk that is not there.
const ReasonMissing = "missing"

// Chunks are the payload chunks of one node.
type Chunks interface {
	// Durable reports whether the chunk is durable at the node.
	Durable(id extent.ChunkID) bool
	// Read fills p from offset off of the chunk and compares checksums.
	Read(ref extent.Ref, off int64, p []byte) (int, error)
}

// progress is how far a scan is.
type progress struct{ rows, bytes, chunks, chunkBytes uint64 }

// walk is one scan of a snapshot.
type walk struct {
	scan      *Scan
	from      kv.Reader
	prefixes  [][]byte
	rowChunks func(key, value []byte) ([]extent.Ref, error)
	chunks    Chunks
	// latest reads the newest state, to look again at a row whose payload is damaged.
	latest func(ctx context.Context, key []byte) (value []byte, ok bool, err error)
	pace   *pace
	// report is called now and then with how far the walk is.
	report func(progress)

	wanted  map[Node]bool
	depths  []uint8
	at      progress
	tallies map[Node]Tally
	rows    []byte
	damages []Damage
	damaged uint64
	buf     []byte
	// partition is the prefix of the partition of the last row, lane its lane.
	partition []byte
	lane      geo.Lane
}

// errTooLarge: the result of a scan would not fit.
var errTooLarge = errors.New("verify: the result of a scan is too large")

// run walks all rows and returns the encoded result.
func (w *walk) run(ctx context.Context) ([]byte, error) {
	w.wanted, w.tallies = map[Node]bool{}, map[Node]Tally{}
	for _, n := range w.scan.Nodes {
		w.wanted[n] = true
		if !slices.Contains(w.depths, n.Depth) {
			w.depths = append(w.depths, n.Depth)
		}
	}
	for _, prefix := range w.prefixes {
		if err := w.span(ctx, prefix); err != nil {
			return nil, err
		}
	}
	w.report(w.at)
	if w.scan.Want == WantRows {
		return w.rows, nil
	}
	nodes := make([]Node, 0, len(w.tallies))
	for n := range w.tallies {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, Node.compare)
	var out []byte
	for _, n := range nodes {
		out = appendTally(out, n, w.tallies[n])
	}
	if len(out) > resultMax {
		return nil, errTooLarge
	}
	return out, nil
}

// span walks the rows of one prefix.
func (w *walk) span(ctx context.Context, prefix []byte) error {
	it, err := w.from.Scan(prefix, keys.PrefixEnd(prefix))
	if err != nil {
		return err
	}
	for it.Next() {
		if err := w.row(ctx, it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}

func (w *walk) row(ctx context.Context, key, value []byte) error {
	w.at.rows++
	if err := w.read(ctx, len(key)+len(value)); err != nil {
		return err
	}
	lane, err := w.laneOf(key)
	if err != nil {
		return err
	}
	hash := keyHash(key)
	for _, depth := range w.depths {
		n := nodeOf(lane, depth, hash)
		if !w.wanted[n] {
			continue
		}
		s := RowSum(key, value)
		switch w.scan.Want {
		case WantRows:
			if w.rows = appendRow(w.rows, Row{key, s}); len(w.rows) > resultMax {
				return errTooLarge
			}
		case WantParts:
			n = nodeOf(lane, min(depth+1, depthMax), hash)
			fallthrough
		default:
			t := w.tallies[n]
			t.add(s, len(key)+len(value))
			w.tallies[n] = t
		}
		return w.payload(ctx, key, value)
	}
	return nil
}

// laneOf returns the lane of a row. Rows of a partition follow each other, and no partition is a
// prefix of another.
func (w *walk) laneOf(key []byte) (geo.Lane, error) {
	if len(w.partition) > 0 && bytes.HasPrefix(key, w.partition) {
		return w.lane, nil
	}
	p, row, err := keys.ParsePartition(key)
	if err != nil {
		return 0, err
	}
	w.partition = append(w.partition[:0], key[:len(key)-len(row)]...)
	w.lane = p.Lane()
	return w.lane, nil
}

// read counts n bytes and waits where the scan is ahead of its rate.
func (w *walk) read(ctx context.Context, n int) error {
	w.at.bytes += uint64(n)
	if !w.pace.spend(n) {
		return nil
	}
	w.report(w.at)
	return w.pace.hold(ctx)
}

// payload examines the chunks that a row names. A damage counts only if the newest state still has
// the row: chunks of a row that was replaced are collected.
func (w *walk) payload(ctx context.Context, key, value []byte) error {
	if w.scan.Payload == PayloadIgnored || w.rowChunks == nil || w.chunks == nil {
		return nil
	}
	refs, err := w.rowChunks(key, value)
	if err != nil {
		w.damage(key, "", "the row cannot be decoded: "+err.Error())
		return nil
	}
	for _, ref := range refs {
		w.at.chunks++
		why, err := w.chunk(ctx, ref)
		if err != nil {
			return err
		}
		if why == "" {
			continue
		}
		now, ok, err := w.latest(ctx, key)
		if err != nil {
			return err
		}
		if ok && bytes.Equal(now, value) {
			w.damage(key, ref.ID.String(), why)
		}
	}
	return nil
}

func (w *walk) damage(key []byte, chunk, reason string) {
	if w.damaged++; len(w.damages) < damagesMax {
		w.damages = append(w.damages, Damage{bytes.Clone(key), chunk, reason})
	}
}

// chunk returns what is wrong with a chunk, "" for nothing. The error is that of ctx.
func (w *walk) chunk(ctx context.Context, ref extent.Ref) (wrong string, err error) {
	if !w.chunks.Durable(ref.ID) {
		return ReasonMissing, nil
	}
	if w.scan.Payload != PayloadRead {
		return "", nil
	}
	if w.buf == nil {
		w.buf = make([]byte, checkBytes)
	}
	for off := int64(0); off < int64(ref.Length); {
		p := w.buf[:min(int64(len(w.buf)), int64(ref.Length)-off)]
		n, err := w.chunks.Read(ref, off, p)
		if err != nil && n < len(p) {
			return err.Error(), nil
		}
		off += int64(n)
		w.at.chunkBytes += uint64(n)
		if err := w.read(ctx, n); err != nil {
			return "", err
		}
	}
	return "", nil
}

// pace keeps a scan at its rate.
type pace struct {
	clock clock.Clock
	// wait waits for a time, or until ctx ends.
	wait  func(ctx context.Context, d time.Duration) error
	rate  uint64
	began time.Duration
	spent uint64
	// look is the value of spent at which the clock is read again.
	look uint64
}

// spend counts n bytes, and reports about once per paceBytes that hold is due.
func (p *pace) spend(n int) (due bool) {
	if p.spent += uint64(n); p.spent < p.look {
		return false
	}
	p.look = p.spent + paceBytes
	return true
}

// hold waits if more was read than the rate allows.
func (p *pace) hold(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	earliest := p.began + time.Duration(float64(p.spent)/float64(p.rate)*float64(time.Second))
	if early := earliest - p.clock.Mono(); early > 0 {
		return p.wait(ctx, early)
	}
	return nil
}
