package keys

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
)

// text draws strings out of few code points, so that two of them often share a
// prefix: zero bytes, both sides of the surrogates, all planes.
func text() *rapid.Generator[string] {
	unit := rapid.OneOf(
		rapid.SampledFrom([]rune{0, 0, 1, 2, 'a', 'a', 'b', 0x7f, 0xff, 0x7ff, 0x800, 0xd000, 0xd7ff, 0xe000, 0xfffe, 0xffff, 0x10000, 0x10001, 0x103ff, 0x10400, 0x1f600, 0x10ffff}),
		rapid.Int32Range(0xe000, 0xffff),
		rapid.Int32Range(0x10000, 0x10ffff),
		rapid.Int32Range(0, 0xd7ff),
	)
	return rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(unit, 0, 6).Draw(t, "units")) })
}

func number() *rapid.Generator[uint64] {
	return rapid.OneOf(rapid.SampledFrom([]uint64{0, 1, 255, 256, 1 << 32, 1<<63 - 1, 1 << 63, ^uint64(0)}), rapid.Uint64())
}

// A tuple is the plain form of a key: strings and numbers.
type tuple []any

func compareText(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func (a tuple) compare(b tuple) int {
	for i := range min(len(a), len(b)) {
		var c int
		switch x := a[i].(type) {
		case string:
			c = compareText(x, b[i].(string))
		case uint64:
			c = cmp.Compare(x, b[i].(uint64))
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

// shapes draw a key of each tuple shape with its plain form.
var shapes = map[string]func(t *rapid.T) ([]byte, tuple){
	"string": func(t *rapid.T) ([]byte, tuple) {
		s := text().Draw(t, "string")
		return AppendString(nil, s), tuple{s}
	},
	"partition": func(t *rapid.T) ([]byte, tuple) {
		p := drawPartition(t)
		return p.Append(nil), tuple{
			uint64(p.Service), string(p.Account), p.Container, uint64(p.Generation.Epoch), uint64(p.Generation.Created), p.Object,
		}
	},
	"row": func(t *rapid.T) ([]byte, tuple) {
		p := drawPartition(t)
		row := text().Draw(t, "row")
		return AppendString(p.Append(nil), row), tuple{
			uint64(p.Service), string(p.Account), p.Container, uint64(p.Generation.Epoch), uint64(p.Generation.Created), p.Object, row,
		}
	},
	"gate": func(t *rapid.T) ([]byte, tuple) {
		r, a := drawRange(t), text().Draw(t, "account")
		return Gate(r, geo.Account(a)), tuple{uint64(r), a}
	},
	"head":    func(t *rapid.T) ([]byte, tuple) { r, s, tu := drawStream(t); return Head(r, s), tu },
	"trimmed": func(t *rapid.T) ([]byte, tuple) { r, s, tu := drawStream(t); return Trimmed(r, s), tu },
	"cursor":  func(t *rapid.T) ([]byte, tuple) { r, s, tu := drawStream(t); return Cursor(r, s), tu },
	"outbox": func(t *rapid.T) ([]byte, tuple) {
		r, s, tu := drawStream(t)
		n := number().Draw(t, "seq")
		return Outbox(r, s, geo.Seq(n)), append(tu, n)
	},
	"received": func(t *rapid.T) ([]byte, tuple) {
		r, origin, source := drawRange(t), text().Draw(t, "origin"), drawRange(t)
		return Received(r, geo.Location(origin), source), tuple{uint64(r), origin, uint64(source)}
	},
	"generation": func(t *rapid.T) ([]byte, tuple) {
		r, p := drawRange(t), drawPartition(t)
		return ClosedGeneration(r, p.Service, p.Account, p.Container, p.Generation), tuple{
			uint64(r), uint64(p.Service), string(p.Account), p.Container, uint64(p.Generation.Epoch), uint64(p.Generation.Created),
		}
	},
}

func drawRange(t *rapid.T) geo.RangeID {
	return rapid.SampledFrom([]geo.RangeID{0, 1, 4, 256, 1 << 31, ^geo.RangeID(0)}).Draw(t, "range")
}

func drawPartition(t *rapid.T) Partition {
	return Partition{
		Service:    rapid.SampledFrom([]geo.Service{1, 2, 3, 4, 255}).Draw(t, "service"),
		Account:    geo.Account(text().Draw(t, "account")),
		Container:  text().Draw(t, "container"),
		Generation: Generation{geo.EpochNumber(number().Draw(t, "epoch")), geo.Timestamp(number().Draw(t, "created"))},
		Object:     text().Draw(t, "object"),
	}
}

func drawStream(t *rapid.T) (geo.RangeID, geo.Stream, tuple) {
	r := drawRange(t)
	s := geo.Stream{
		Account: geo.Account(text().Draw(t, "account")),
		Epoch:   geo.Epoch{Number: geo.EpochNumber(number().Draw(t, "epoch")), Location: geo.Location(text().Draw(t, "location"))},
		Range:   drawRange(t),
		Lane:    geo.Lane(rapid.IntRange(0, geo.LaneCount-1).Draw(t, "lane")),
	}
	return r, s, tuple{
		uint64(r), string(s.Account), uint64(s.Epoch.Number), string(s.Epoch.Location), uint64(s.Range), uint64(s.Lane),
	}
}

// The byte order of two keys of one shape is the order of their tuples, with strings as UTF-16 code
// units. Neither is a prefix of the other unless they are equal (protocol/table.md 4.5; property
// over every shape).
func TestOrder(t *testing.T) {
	for name, draw := range shapes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a, ta := draw(t)
				b, tb := draw(t)
				require.Equal(t, ta.compare(tb), bytes.Compare(a, b), "%q %q", ta, tb)
				if !bytes.Equal(a, b) {
					require.False(t, bytes.HasPrefix(a, b) || bytes.HasPrefix(b, a), "%q %q", ta, tb)
				}
			})
		})
	}
}

// A partition's lane is one of 32 and the same for every generation of its container. So a name
// that is created again keeps its order on one stream (R10; property).
func TestLaneIgnoresGeneration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPartition(t)
		q := p
		q.Generation = Generation{geo.EpochNumber(number().Draw(t, "epoch")), geo.Timestamp(number().Draw(t, "created"))}
		require.Equal(t, p.Lane(), q.Lane())
		require.Less(t, p.Lane(), geo.Lane(geo.LaneCount))
	})
}

// Q23: all partitions of a queue share a lane, so that the changes of its subqueues and of its dictionary are in one
// order; those of a table or a container do not (protocol/queue.md 27; property).
//
// Capability: Queues: Messages in subqueues.
func TestQ23LaneOfAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPartition(t)
		p.Service = geo.Queue
		q := p
		q.Object = text().Draw(t, "other object")
		require.Equal(t, p.Lane(), q.Lane())
	})
	lanes := map[geo.Lane]bool{}
	for i := range 100 {
		lanes[Partition{Service: geo.Queue, Account: "acct", Container: fmt.Sprintf("queue-%d", i)}.Lane()] = true
	}
	require.Len(t, lanes, int(geo.LaneCount), "queues share the lanes among them")
}

// Keys of two kinds never mix: every key stands under the prefix of its own range and
// kind, and under no other, so that a scan at open sees its own alone (property).
func TestSpansAreDisjoint(t *testing.T) {
	spans := map[string]func(geo.RangeID) []byte{
		"applied": Applied, "gate": Gates, "head": Heads, "outbox": OutboxAll, "trimmed": Trims,
		"closed": Closed, "cursor": Cursors, "received": ReceivedAll,
		"generation": func(r geo.RangeID) []byte { return rangeKey(r, kindGeneration) },
	}
	rapid.Check(t, func(t *rapid.T) {
		for name, draw := range shapes {
			key, tu := draw(t)
			for other, span := range spans {
				r, ok := tu[0].(uint64)
				prefix := span(geo.RangeID(r))
				within := bytes.Compare(key, prefix) >= 0 && bytes.Compare(key, PrefixEnd(prefix)) < 0
				if name == "string" {
					continue // Not a whole key.
				}
				require.Equal(t, ok && other == name, within, "%s key %x in span of %s", name, key, other)
			}
		}
	})
}

// PrefixEnd is the least key above all keys with the prefix (property against the
// definition).
func TestPrefixEnd(t *testing.T) {
	bytesOf := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xfe, 0xff}), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		prefix, key := bytesOf.Draw(t, "prefix"), bytesOf.Draw(t, "key")
		end := PrefixEnd(prefix)
		below := end == nil || bytes.Compare(key, end) < 0
		within := bytes.Compare(key, prefix) >= 0 && below
		require.Equal(t, bytes.HasPrefix(key, prefix), within)
	})
}
