package snapshot

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"antipode/stamp/extent"
)

// refLen is a chunk reference in the staged file of a snapshot: id, length, CRC32C. The
// file never outlives its process.
const refLen = 24

func writeRef(w *bufio.Writer, ref extent.Ref) error {
	b := append(make([]byte, 0, refLen), ref.ID[:]...)
	b = binary.LittleEndian.AppendUint32(b, ref.Length)
	b = binary.LittleEndian.AppendUint32(b, ref.CRC)
	_, err := w.Write(b)
	return err
}

func eachRef(r io.Reader, f func(extent.Ref) error) error {
	var b [refLen]byte
	for {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		ref := extent.Ref{Length: binary.LittleEndian.Uint32(b[16:]), CRC: binary.LittleEndian.Uint32(b[20:])}
		copy(ref.ID[:], b[:])
		if err := f(ref); err != nil {
			return err
		}
	}
}
