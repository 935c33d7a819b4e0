package verify

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"antipode/geo"
)

// depthMax is the number of bytes of the hash of a key.
const depthMax = 8

// Node names the rows of a lane whose keys have a hash that begins with the first Depth bytes of
// Prefix. The other bytes of Prefix are zero. Depth 0 is the whole lane.
type Node struct {
	Lane   geo.Lane
	Depth  uint8
	Prefix uint64
}

// keyHash is the hash that nodes divide the keys by. It is the same in both locations.
func keyHash(key []byte) uint64 { return xxhash.Sum64(key) }

// nodeOf returns the node of a depth that holds a key with this hash.
func nodeOf(lane geo.Lane, depth uint8, hash uint64) Node {
	if depth == 0 {
		return Node{Lane: lane}
	}
	return Node{Lane: lane, Depth: depth, Prefix: hash &^ (1<<(64-8*uint(depth)) - 1)}
}

// compare orders nodes.
func (n Node) compare(o Node) int {
	return cmp.Or(cmp.Compare(n.Lane, o.Lane), cmp.Compare(n.Depth, o.Depth), cmp.Compare(n.Prefix, o.Prefix))
}

// valid reports whether n is a node that nodeOf may return.
func (n Node) valid() bool {
	return n.Lane < geo.LaneCount && n.Depth <= depthMax && n == nodeOf(n.Lane, n.Depth, n.Prefix)
}

// Sum is 128 bits: the hash of a row, or the sum of such hashes modulo 2^128. A sum does not depend
// on the order of its rows, and one row that is missing, extra or different always changes it.
type Sum struct{ Hi, Lo uint64 }

// RowSum is the hash of a row: the first 128 bits of the SHA-256 of key length, key and value.
func RowSum(key, value []byte) Sum {
	h := sha256.New()
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(key)))
	_, _ = h.Write(length[:]) // A hash.Hash never fails.
	_, _ = h.Write(key)
	_, _ = h.Write(value)
	var buf [sha256.Size]byte
	b := h.Sum(buf[:0])
	return Sum{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
}

// Tally is what a node holds.
type Tally struct {
	Sum  Sum
	Rows uint64
	// Bytes of keys and values.
	Bytes uint64
}

func (t *Tally) add(s Sum, size int) {
	var carry uint64
	t.Sum.Lo, carry = bits.Add64(t.Sum.Lo, s.Lo, 0)
	t.Sum.Hi, _ = bits.Add64(t.Sum.Hi, s.Hi, carry)
	t.Rows++
	t.Bytes += uint64(size)
}

// Row is a row without its value.
type Row struct {
	Key []byte
	Sum Sum
}

// errMalformed: bytes of the other location that appendTally or appendRow did not write.
var errMalformed = errors.New("verify: malformed answer")

func appendSum(dst []byte, s Sum) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, s.Hi), s.Lo)
}

func appendTally(dst []byte, n Node, t Tally) []byte {
	dst = append(dst, byte(n.Lane), n.Depth)
	dst = binary.BigEndian.AppendUint64(dst, n.Prefix)
	dst = binary.AppendUvarint(binary.AppendUvarint(dst, t.Rows), t.Bytes)
	return appendSum(dst, t.Sum)
}

func appendRow(dst []byte, r Row) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(r.Key))), r.Key...)
	return appendSum(dst, r.Sum)
}

// cutter takes values from the front of b. After a failure all values are zero.
type cutter struct {
	b      []byte
	failed bool
}

func (c *cutter) take(n uint64) []byte {
	if c.failed || uint64(len(c.b)) < n {
		c.failed = true
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cutter) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (c *cutter) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cutter) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.failed = true
		return 0
	}
	c.take(uint64(n))
	return v
}

func (c *cutter) sum() Sum { return Sum{c.uint64(), c.uint64()} }

// parseTallies decodes what appendTally wrote.
func parseTallies(b []byte) (map[Node]Tally, error) {
	out := map[Node]Tally{}
	for c := (cutter{b: b}); len(c.b) > 0; {
		n := Node{Lane: geo.Lane(c.byte()), Depth: c.byte(), Prefix: c.uint64()}
		t := Tally{Rows: c.uvarint(), Bytes: c.uvarint()}
		if t.Sum = c.sum(); c.failed || !n.valid() {
			return nil, fmt.Errorf("%w: sums", errMalformed)
		}
		out[n] = t
	}
	return out, nil
}

// ParseSums decodes what appendRow wrote, by key.
func ParseSums(b []byte) (map[string]Sum, error) {
	out := map[string]Sum{}
	for c := (cutter{b: b}); len(c.b) > 0; {
		key := string(c.take(c.uvarint()))
		s := c.sum()
		if c.failed {
			return nil, fmt.Errorf("%w: rows", errMalformed)
		}
		out[key] = s
	}
	return out, nil
}
