package snapshot

import (
	"bytes"
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/replica"
	"antipode/stamp/state"
)

// source reads a range from one view of the state store, fragment by fragment.
type source struct {
	snap   *state.Snapshot
	spans  []state.Span
	it     kv.Iterator
	row    bool // the iterator is at a row that is not in a fragment yet
	number uint32
	header Header
	// bytesMax is Options.FragmentBytes.
	bytesMax int
	// last is the key of the last row that was read.
	last []byte
}

// openSource opens the newest state of a range, which began on nodes, to carry out the MsgSnap
// m. The state may be newer than m: the header has the applied index of the same view, and number as its source.
func openSource(
	store *state.Store, id geo.RangeID, nodes []geo.NodeID, m *pb.Message, number uint64,
) (_ *source, err error) {
	s := &source{snap: store.NewSnapshot(), spans: ranges.Spans(id)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	applied, err := ranges.AppliedIn(s.snap, id)
	if err != nil {
		return nil, err
	}
	if want := m.GetSnapshot().GetMetadata().GetIndex(); applied.Index < want {
		return nil, fmt.Errorf("snapshot of range %d: state at %d, offered at %d", id, applied.Index, want)
	}
	members, err := ranges.MembersIn(s.snap, id, nodes)
	if err != nil {
		return nil, err
	}
	s.header = Header{Range: id, Source: number, Message: &pb.Message{
		Type: m.Type, To: m.To, From: m.From, Term: m.Term, Snapshot: replica.SnapshotOf(applied.EntryID, members),
	}}
	return s, nil
}

// next returns the next fragment; none follows one that is Last.
func (s *source) next() (Fragment, error) {
	f := Fragment{Number: s.number}
	s.number++
	for {
		if !s.row {
			if err := s.advance(); err != nil {
				return f, err
			}
		}
		if !s.row {
			f.Last = true
			break
		}
		size := len(s.it.Key()) + len(s.it.Value())
		if len(f.Rows) > 0 && len(f.Rows)+size > s.bytesMax {
			break
		}
		f.Rows = appendRow(f.Rows, s.it.Key(), s.it.Value())
		s.last = append(s.last[:0], s.it.Key()...)
		s.row = false
	}
	f.CRC = f.sum()
	return f, nil
}

// errRowsGone: the view was closed, since its rows had all been sent, and the receiver lost some of them.
var errRowsGone = errors.New("snapshot: the view of the state is closed, and the receiver lacks rows of it")

// seek begins another stream of the same rows, with those behind a key; nil stands for all.
func (s *source) seek(after []byte) error {
	if s.it != nil {
		it := s.it
		s.it = nil
		if err := it.Close(); err != nil {
			return err
		}
	}
	s.number, s.row, s.spans = 0, false, nil
	if s.snap == nil {
		if len(after) == 0 || !bytes.Equal(after, s.last) {
			return errRowsGone
		}
		return nil
	}
	for _, span := range ranges.Spans(s.header.Range) {
		if bytes.Compare(after, span.Upper) >= 0 {
			continue
		}
		if bytes.Compare(after, span.Lower) >= 0 {
			span.Lower = append(bytes.Clone(after), 0)
		}
		s.spans = append(s.spans, span)
	}
	return nil
}

// advance moves to the next row and sets s.row to whether there is one.
func (s *source) advance() (err error) {
	for {
		if s.it == nil {
			if len(s.spans) == 0 {
				return nil
			}
			if s.it, err = s.snap.Scan(s.spans[0].Lower, s.spans[0].Upper); err != nil {
				return err
			}
			s.spans = s.spans[1:]
		}
		if s.row = s.it.Next(); s.row {
			if plantedbugs.Planted(plantedbugs.SnapshotWithoutCursor) && bytes.HasPrefix(s.it.Key(), keys.Cursors(s.header.Range)) {
				continue
			}
			return nil
		}
		it := s.it
		s.it = nil
		if err := it.Close(); err != nil {
			return err
		}
	}
}

// close releases the view. It may be called again.
func (s *source) close() error {
	var err error
	if s.it != nil {
		err = s.it.Close()
	}
	if s.snap != nil {
		err = errors.Join(err, s.snap.Close())
	}
	s.it, s.snap = nil, nil
	return err
}
