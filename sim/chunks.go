package sim

import (
	"context"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/kv"
	"antipode/stamp/node"
)

// errChunkLost: the network lost a chunk.
var errChunkLost = errors.New("sim: the chunk was lost on its way")

// PutChunk puts a chunk from a process that reaches all nodes.
func (l *location) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	return l.putChunk(ref, data, func(*member) bool { return true })
}

// putChunk makes a chunk durable on every node of the blob range that the network and the caller
// reach, two at least. So a node that was away, or whose copy was lost, has to
// fetch it before it persists what names it (R3).
func (l *location) putChunk(ref extent.Ref, data []byte, reach func(*member) bool) error {
	held := 0
	for _, m := range l.holders(geo.FirstRange(geo.Blob)) {
		if reach(m) && m.takeChunk(ref, data) {
			held++
		}
	}
	if held < 2 {
		return kv.ErrBusy
	}
	return nil
}

// takeChunk brings a chunk to the node and reports whether it is durable there.
func (m *member) takeChunk(ref extent.Ref, data []byte) bool {
	s := m.l.s
	if m.n == nil || m.killed != nil {
		return false
	}
	if m.l.net.isolated[m.id] || m.paused || s.chance(s.rates.chunkLose) {
		s.counts.ChunkLost++
		s.event("%s chunk %s lost to %d", m.l.name, ref.ID, m.id)
		return false
	}
	err := m.n.PutChunk(context.Background(), ref, data)
	if s.chance(s.rates.killChunk) {
		m.kill() // With the chunk in the page cache alone.
		m.dirty = true
	}
	if err == nil && m.killed == nil {
		err = m.n.SyncChunks(context.Background())
	}
	if err != nil && !m.failed && !errors.Is(err, kv.ErrBusy) { // A full disk takes none.
		s.fail(fmt.Errorf("%w: %s-%d: %w", ErrStore, m.l.name, m.id, err))
	}
	return err == nil && m.killed == nil
}

// readChunk reads a chunk from the first node that has it, as stamp.Stamp does.
func (l *location) readChunk(ref extent.Ref) ([]byte, error) {
	data, err := make([]byte, ref.Length), errLink
	for _, m := range l.members {
		if m.n == nil || m.killed != nil || m.paused {
			continue
		}
		if _, err = m.n.ReadChunk(ref, 0, data); err == nil {
			return data, nil
		}
	}
	return nil, err
}

// Peer implements node.Transport.
func (t *network) Peer(from, to geo.NodeID) node.ChunkPeer {
	m := t.l.member(to)
	if m.n == nil || m.killed != nil || m.paused || !t.reach(from, to) {
		return nil
	}
	return chunkPeer{m.n, t.l, from}
}

// chunkPeer is the chunk store of a node as a peer reaches it. A lost answer counts as a late
// one: the caller asks again. A peer with bad memory sends other bytes than it holds.
type chunkPeer struct {
	*node.Node
	l  *location
	by geo.NodeID
}

// ReadChunk implements node.ChunkPeer.
func (p chunkPeer) ReadChunk(ref extent.Ref, off int64, data []byte) (int, error) {
	s := p.l.s
	if s.chance(s.rates.chunkLose) {
		s.counts.FetchLost++
		return 0, errChunkLost
	}
	n, err := p.Node.ReadChunk(ref, off, data)
	if err != nil {
		return n, err
	}
	if s.chance(s.rates.chunkWrong) {
		s.counts.ChunkWrong++
		s.event("%s node %d was sent another chunk than %s from %d", p.l.name, p.by, ref.ID, p.ID())
		data[s.rng.IntN(n)] ^= 1
		return n, nil
	}
	s.counts.ChunkFetched++
	s.event("%s node %d fetched chunk %s from %d", p.l.name, p.by, ref.ID, p.ID())
	return n, nil
}

// checkPayload: every chunk that an entry names is durable on the node that leads
// with it or has applied it (R3). At the other location this ensures that no record is
// applied before its payload is there.
func (m *member) checkPayload(what string, entry []byte) {
	if !change.NamesChunks(entry) {
		return
	}
	refs, err := change.GroupChunks(entry)
	if err != nil {
		m.l.s.fail(err)
		return
	}
	m.checkChunks(what, refs)
}

func (m *member) checkChunks(what string, refs []extent.Ref) {
	for _, ref := range refs {
		m.l.s.counts.ChunkChecked++
		if !m.n.Extents().Durable(ref.ID) && !m.isCorrupted(ref) {
			m.l.s.fail(fmt.Errorf("%w: %s-%d: %s names chunk %s", ErrPayload, m.l.name, m.id, what, ref.ID))
			return
		}
	}
}
