package node

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	pb "go.etcd.io/raft/v3/raftpb"

	"antipode/geo"
)

// SnapshotHeader opens a stream of pieces.
type SnapshotHeader struct {
	Range geo.RangeID
	// Message is the leader's MsgSnap. Its snapshot holds no data; the metadata are of
	// the state that the pieces hold.
	Message *pb.Message
}

// Piece is one part of a range snapshot.
type Piece struct {
	// Number counts the pieces of a stream from 0.
	Number uint32
	// Last says that no piece follows.
	Last bool
	// Rows are the next rows of the range's spans, ascending: pieceBytesMax together,
	// or one row that is longer. docs/format/snapshot.md.
	Rows []byte
	// CRC is the CRC32C of all above.
	CRC uint32
}

// pieceBytesMax bounds the rows of a piece, so that a few of them in flight are little
// memory.
const pieceBytesMax = 1 << 20

// ErrPiece: a piece of a snapshot is damaged, or not the one that follows.
var ErrPiece = errors.New("node: piece of a range snapshot does not fit")

var castagnoli = crc32.MakeTable(crc32.Castagnoli) //nolint:gochecknoglobals // A table, never written.

func (p *Piece) sum() uint32 {
	var head [5]byte
	binary.LittleEndian.PutUint32(head[:], p.Number)
	if p.Last {
		head[4] = 1
	}
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, p.Rows)
}

// check refuses a piece that is not whole or not number next.
func (p *Piece) check(next uint32) error {
	if p.Number != next {
		return fmt.Errorf("%w: number %d where %d belongs", ErrPiece, p.Number, next)
	}
	if p.CRC != p.sum() {
		return fmt.Errorf("%w: number %d does not fit its CRC32C", ErrPiece, p.Number)
	}
	return nil
}

func appendRow(dst, key, value []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(key)))
	dst = append(dst, key...)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// eachRow calls f with every row of a piece.
func eachRow(rows []byte, f func(key, value []byte) error) error {
	for len(rows) > 0 {
		var field [2][]byte
		for i := range field {
			n, size := binary.Uvarint(rows)
			if size <= 0 || n > uint64(len(rows)-size) {
				return fmt.Errorf("%w: a row ends early", ErrPiece)
			}
			field[i], rows = rows[size:size+int(n)], rows[size+int(n):]
		}
		if err := f(field[0], field[1]); err != nil {
			return err
		}
	}
	return nil
}
