package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
	"antipode/internal/crc"
)

// Header opens a stream of fragments.
type Header struct {
	Range geo.RangeID
	// Message is the leader's MsgSnap. Its snapshot holds no data; its metadata describe the
	// state that the fragments hold.
	Message *pb.Message
	// Source is a number that the sender drew for its view of the state. A receiver that has rows of it already goes on
	// behind them. Zero: a sender of an earlier version, which begins again.
	Source uint64
}

// Fragment is one part of a range snapshot.
type Fragment struct {
	// Number counts the fragments of a stream from 0.
	Number uint32
	// Last: no fragment follows.
	Last bool
	// Rows are the next rows of the range's spans, ascending: at most Options.FragmentBytes
	// together, or one row that is longer. docs/format/snapshot.md.
	Rows []byte
	// CRC is the CRC32C of all fields above.
	CRC uint32
}

// fragmentBytesMax is Options.FragmentBytes by default.
const fragmentBytesMax = 1 << 20

// ErrFragment: a fragment of a snapshot is damaged, or not the next one.
var ErrFragment = errors.New("snapshot: a fragment does not fit")

func (f *Fragment) sum() uint32 {
	var head [5]byte
	binary.LittleEndian.PutUint32(head[:], f.Number)
	if f.Last {
		head[4] = 1
	}
	return crc.Join(crc.Of(head[:]), f.Rows)
}

// check refuses a fragment that is damaged or whose number is not next.
func (f *Fragment) check(next uint32) error {
	if f.Number != next {
		return fmt.Errorf("%w: number %d, want %d", ErrFragment, f.Number, next)
	}
	if f.CRC != f.sum() {
		return fmt.Errorf("%w: number %d does not fit its CRC32C", ErrFragment, f.Number)
	}
	return nil
}

func appendRow(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = append(dst, key...)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// eachRow calls f with every row of a fragment.
func eachRow(rows []byte, f func(key, value []byte) error) error {
	for len(rows) > 0 {
		var field [2][]byte
		for i := range field {
			n, size := binary.Uvarint(rows)
			if size <= 0 || n > uint64(len(rows)-size) {
				return fmt.Errorf("%w: a row ends early", ErrFragment)
			}
			field[i], rows = rows[size:size+int(n)], rows[size+int(n):]
		}
		if err := f(field[0], field[1]); err != nil {
			return err
		}
	}
	return nil
}
