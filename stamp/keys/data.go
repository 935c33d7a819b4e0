package keys

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"

	"antipode/geo"
)

// Spaces of a node's state store, the first byte of every key.
const (
	spaceRange byte = 0x01 // what belongs to one range: gates, heads, outbox, cursors
	spaceData  byte = 0x02 // what clients stored; independent of ranges, so a split moves nothing
)

// Generation distinguishes two lives of one table, container or queue name: the
// epoch and the commit timestamp of its creation (R8). It is never a counter.
type Generation struct {
	Epoch   geo.EpochNumber
	Created geo.Timestamp
}

// Before reports whether g is an earlier generation of a name than other.
func (g Generation) Before(other Generation) bool {
	return g.Epoch < other.Epoch || g.Epoch == other.Epoch && g.Created < other.Created
}

// Partition is the unit of ordering and of atomicity. Object is the blob name,
// the PartitionKey, the subqueue, or the catalog name; Container is a table name in lower case,
// a container or a queue, and empty in the catalog.
type Partition struct {
	Service    geo.Service
	Account    geo.Account
	Container  string
	Generation Generation
	Object     string
}

// Lane is the lane of the partition: xxhash64 of the encoded partition without
// its generation, modulo LaneCount. The object of a queue's partition, which is one of its
// subqueues, is left out too: a queue is in one order (protocol/queue.md 27). Frozen by a
// golden file: it may never change within a stamp.
func (p Partition) Lane() geo.Lane {
	object := p.Object
	if p.Service == geo.Queue {
		object = ""
	}
	var buf [256]byte
	b := append(buf[:0], byte(p.Service))
	b = AppendString(b, string(p.Account))
	b = AppendString(b, p.Container)
	b = AppendString(b, object)
	return geo.Lane(xxhash.Sum64(b) % geo.LaneCount)
}

// LostAndFound stands in the place of an account, whose name it cannot be, in the keys of rows that the settlement of
// a fork has overwritten or deleted (R16).
const LostAndFound geo.Account = "lost-and-found"

// Found is the partition that keeps rows of a stream in the lost-and-found, for the settlement with a base. The
// key of the row that was kept follows it.
func Found(s geo.Service, of geo.Stream, base geo.Seq) Partition {
	return Partition{Service: s, Account: LostAndFound, Container: string(of.Account), Object: fmt.Sprintf("%s#%d", of, base)}
}

// WrittenSince stands in the place of an account like LostAndFound, in the keys that say what clients have written
// since a settlement began that keeps the receiver's rows (R16).
const WrittenSince geo.Account = "written-since"

// Written is the partition of these keys of a stream. The number of the base follows it, and the unit: see Unit.
func Written(s geo.Service, of geo.Stream) Partition {
	return Partition{Service: s, Account: WrittenSince, Container: string(of.Account), Object: of.String()}
}

// LostChanges stands in the place of an account like LostAndFound, in the keys of rows for lost changes. A former
// primary had committed those changes, and the other location, which became the primary without it, does not have
// them (R22).
const LostChanges geo.Account = "lost-changes"

// Lost is the partition of the lost changes of a stream. The number of a change follows it, in 8 bytes, big-endian.
func Lost(s geo.Service, of geo.Stream) Partition {
	return Partition{Service: s, Account: LostChanges, Container: string(of.Account), Object: of.String()}
}

// LostClaims is the partition of what a range claims about the lost changes of an account. The epoch follows it that
// the other location began: see ClaimRow. Its object is no stream's.
func LostClaims(s geo.Service, a geo.Account) Partition {
	return Partition{Service: s, Account: LostChanges, Container: string(a)}
}

// ClaimRow is the row of a claim within its partition.
func ClaimRow(of geo.Epoch) []byte {
	return AppendString(AppendUint64(nil, uint64(of.Number)), string(of.Location))
}

// Unit is the prefix of the rows that go together with a row of the partition: an entity is one row, a blob has all
// rows of its partition, which name each other.
func (p Partition) Unit(row []byte) []byte {
	if p.Service == geo.Table {
		return append(p.Append(nil), row...)
	}
	return p.Append(nil)
}

// Append appends the prefix that all keys of the partition share.
func (p Partition) Append(dst []byte) []byte {
	dst = AppendContainer(dst, p.Service, p.Account, p.Container, p.Generation)
	return AppendString(dst, p.Object)
}

// AppendContainer appends the prefix of all partitions of one generation of a
// table, container or queue.
func AppendContainer(dst []byte, s geo.Service, a geo.Account, container string, g Generation) []byte {
	dst = AppendString(AppendAccount(dst, s, a), container)
	return appendGeneration(dst, g)
}

func appendGeneration(dst []byte, g Generation) []byte {
	return AppendUint64(AppendUint64(dst, uint64(g.Epoch)), uint64(g.Created))
}

func cutGeneration(b []byte) (g Generation, rest []byte, err error) {
	epoch, b, err := CutUint64(b)
	if err != nil {
		return g, nil, err
	}
	created, rest, err := CutUint64(b)
	return Generation{geo.EpochNumber(epoch), geo.Timestamp(created)}, rest, err
}

// AppendService appends the prefix of everything clients stored in a service.
func AppendService(dst []byte, s geo.Service) []byte { return append(dst, spaceData, byte(s)) }

// AppendAccount appends the prefix of everything an account stored in a service.
func AppendAccount(dst []byte, s geo.Service, a geo.Account) []byte {
	return AppendString(AppendService(dst, s), string(a))
}

// ParsePartition decodes the partition at the front of a data key and returns
// what stands within the partition.
func ParsePartition(key []byte) (p Partition, row []byte, err error) {
	if len(key) < 2 || key[0] != spaceData {
		return p, nil, ErrMalformed
	}
	p.Service = geo.Service(key[1])
	account, rest, err := CutString(key[2:])
	if err != nil {
		return p, nil, err
	}
	p.Account = geo.Account(account)
	if p.Container, rest, err = CutString(rest); err != nil {
		return p, nil, err
	}
	if p.Generation, rest, err = cutGeneration(rest); err != nil {
		return p, nil, err
	}
	p.Object, row, err = CutString(rest)
	return p, row, err
}

// ParseGeneration decodes what AppendContainer has made.
func ParseGeneration(prefix []byte) (Partition, error) {
	p, whole, err := ParseSpan(prefix, PrefixEnd(prefix))
	if err == nil && !whole {
		err = ErrMalformed
	}
	return p, err
}

// ParseSpan returns the account in whose keys of a service the span [lower, upper) lies. whole is true if the
// span lies in one generation of one container, which p then names too. ErrMalformed if the span lies in no
// single account, or has no keys.
func ParseSpan(lower, upper []byte) (p Partition, whole bool, err error) {
	if len(lower) < 2 || lower[0] != spaceData {
		return p, false, ErrMalformed
	}
	p.Service = geo.Service(lower[1])
	account, rest, err := CutString(lower[2:])
	if err != nil {
		return p, false, err
	}
	p.Account = geo.Account(account)
	if !spanWithin(lower, upper, AppendAccount(nil, p.Service, p.Account)) {
		return p, false, ErrMalformed
	}
	container, rest, err := CutString(rest)
	if err != nil {
		return p, false, nil
	}
	g, _, err := cutGeneration(rest)
	if err != nil || !spanWithin(lower, upper, AppendContainer(nil, p.Service, p.Account, container, g)) {
		return p, false, nil
	}
	p.Container, p.Generation = container, g
	return p, true, nil
}

// spanWithin reports whether [lower, upper) has keys and all of them start with prefix.
func spanWithin(lower, upper, prefix []byte) bool {
	return bytes.HasPrefix(lower, prefix) && bytes.Compare(lower, upper) < 0 && bytes.Compare(upper, PrefixEnd(prefix)) <= 0
}

// TableContainer is the form in which a table name enters keys: names compare
// without case (protocol/table.md 4.2).
func TableContainer(name string) string { return strings.ToLower(name) }
