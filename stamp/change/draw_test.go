package change

import (
	"encoding/binary"

	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/internal/crc"
	"antipode/stamp/extent"
	"antipode/stamp/feature"
)

// Generators of every value that has a durable form. Slices are non-nil where a
// decoder gives them non-nil, so that values compare as they are.

func drawNumber(t *rapid.T, label string) uint64 {
	return rapid.OneOf(rapid.SampledFrom([]uint64{0, 1, 127, 128, 1 << 14, 1<<63 - 1, ^uint64(0)}), rapid.Uint64()).Draw(t, label)
}

func drawBytes(t *rapid.T, max int, label string) []byte {
	b := rapid.SliceOfN(rapid.Byte(), 0, max).Draw(t, label)
	if b == nil {
		b = []byte{}
	}
	return b
}

func drawName(t *rapid.T, min int, label string) string {
	n := rapid.OneOf(rapid.IntRange(min, 24), rapid.SampledFrom([]int{min, 255})).Draw(t, label+" length")
	return string(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, label))
}

func drawEpoch(t *rapid.T) geo.Epoch {
	return geo.Epoch{Number: geo.EpochNumber(drawNumber(t, "epoch")), Location: geo.Location(drawName(t, 0, "location"))}
}

func drawLane(t *rapid.T) geo.Lane {
	return geo.Lane(rapid.IntRange(0, geo.LaneCount-1).Draw(t, "lane"))
}

func drawRange(t *rapid.T) geo.RangeID { return geo.RangeID(rapid.Uint32().Draw(t, "range")) }

func drawRecord(t *rapid.T) Record {
	r := Record{
		Epoch: drawEpoch(t), Range: drawRange(t), Incarnation: geo.Incarnation(drawNumber(t, "incarnation")), Lane: drawLane(t),
		Service: geo.Service(rapid.Byte().Draw(t, "service")), Account: geo.Account(drawName(t, 1, "account")),
		Seq: geo.Seq(drawNumber(t, "seq")), Prev: geo.Hash(drawNumber(t, "prev")),
		CommitTime: geo.Timestamp(drawNumber(t, "time")),
		Partition:  drawBytes(t, 300, "partition"),
	}
	for range rapid.IntRange(0, 4).Draw(t, "ops") {
		op := Op{Delete: rapid.Bool().Draw(t, "delete"), Row: drawBytes(t, 150, "row")}
		if !op.Delete {
			op.Value = drawBytes(t, 150, "value")
		}
		r.Ops = append(r.Ops, op)
	}
	for range rapid.IntRange(0, 2).Draw(t, "chunks") {
		var c extent.Ref
		copy(c.ID[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		c.Length, c.CRC = rapid.Uint32().Draw(t, "length"), rapid.Uint32().Draw(t, "crc")
		r.Chunks = append(r.Chunks, c)
	}
	return r
}

func drawClosed(t *rapid.T) Closed {
	c := Closed{
		Origin: geo.Location(drawName(t, 0, "origin")), Range: drawRange(t), Full: rapid.Bool().Draw(t, "full"),
		T0: geo.Timestamp(drawNumber(t, "T0")), T: geo.Timestamp(drawNumber(t, "T")),
		Incarnation: geo.Incarnation(drawNumber(t, "incarnation")),
	}
	if rapid.Bool().Draw(t, "has wall") {
		c.Wall = geo.Timestamp(max(1, drawNumber(t, "wall")))
	}
	if rapid.Bool().Draw(t, "has span") {
		c.Descriptor = geo.DescriptorVersion(max(1, drawNumber(t, "descriptor")))
		c.Span = geo.Span{Start: string(drawBytes(t, 200, "start")), End: string(drawBytes(t, 200, "end"))}
	}
	for range rapid.IntRange(0, 4).Draw(t, "heads") {
		c.Heads = append(c.Heads, StreamHead{
			Account: geo.Account(drawName(t, 0, "account")), Epoch: drawEpoch(t), Lane: drawLane(t),
			Seq: geo.Seq(drawNumber(t, "seq")), Hash: geo.Hash(drawNumber(t, "hash")),
		})
	}
	return c
}

func drawFrame(t *rapid.T) Frame {
	f := Frame{Origin: geo.Location(drawName(t, 0, "origin")), Range: drawRange(t)}
	for range rapid.IntRange(0, 3).Draw(t, "records") {
		r := drawRecord(t)
		b, err := AppendRecord(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		f.Records = append(f.Records, b)
	}
	if rapid.Bool().Draw(t, "has closed") {
		c := drawClosed(t)
		f.Closed = &c
	}
	return f
}

func drawGate(t *rapid.T) Gate {
	return Gate{
		Epoch: drawEpoch(t), Role: Role(rapid.IntRange(0, 2).Draw(t, "role")),
		Open: rapid.Bool().Draw(t, "open"), Numbered: rapid.Bool().Draw(t, "numbered"),
		Turn: rapid.Uint32().Draw(t, "turn"), Agreed: geo.EpochNumber(rapid.Uint64Range(0, 3).Draw(t, "agreed")),
	}
}

func drawHead(t *rapid.T) geo.Head {
	return geo.Head{Seq: geo.Seq(drawNumber(t, "seq")), Hash: geo.Hash(drawNumber(t, "hash"))}
}

func drawStop(t *rapid.T) Stop {
	return Stop{
		Reason: StopReason(rapid.IntRange(0, int(stopEnd)-1).Draw(t, "reason")), Here: drawHead(t), There: drawHead(t),
		At: geo.Timestamp(drawNumber(t, "at")),
	}
}

func drawStream(t *rapid.T) geo.Stream {
	return geo.Stream{Account: geo.Account(drawName(t, 1, "account")), Epoch: drawEpoch(t), Range: drawRange(t), Lane: drawLane(t)}
}

func drawCursor(t *rapid.T) Cursor {
	c := Cursor{
		Applied: drawHead(t), Time: geo.Timestamp(drawNumber(t, "time")), Incarnation: geo.Incarnation(drawNumber(t, "incarnation")),
	}
	for range rapid.OneOf(rapid.IntRange(0, 3), rapid.Just(PairsMax)).Draw(t, "pairs") {
		c.Pairs = append(c.Pairs, Pair{T: geo.Timestamp(drawNumber(t, "T")), Head: drawHead(t)})
	}
	if len(c.Pairs) > 0 {
		c.Sync = geo.Timestamp(drawNumber(t, "sync"))
	}
	if len(c.Pairs) > 0 && rapid.Bool().Draw(t, "has walls") {
		c.SyncWall = geo.Timestamp(drawNumber(t, "sync wall"))
		c.Pairs[len(c.Pairs)-1].Wall = geo.Timestamp(drawNumber(t, "wall"))
	}
	return c
}

// part is one part of a group in its plain form.
type part struct {
	kind PartKind
	body []byte
}

// drawParts adds random parts to b and returns what they should be read as, and the
// chunks they name.
func drawParts(t *rapid.T, b *Builder) (parts []part, chunks []extent.Ref) {
	for range rapid.IntRange(0, 5).Draw(t, "parts") {
		kind := rapid.SampledFrom([]PartKind{
			PartChange, PartReceived, PartReceivedCursor, PartClosed, PartReceivedClosed, PartGate, PartGeneration, PartTrim,
			PartStop, PartWipe, PartImage, PartReceivedBase, PartCompared, PartLevels,
		}).Draw(t, "kind")
		var body []byte
		switch kind {
		case PartChange, PartReceived, PartReceivedCursor:
			r := drawRecord(t)
			encoded, err := AppendRecord(nil, &r)
			if err != nil {
				t.Fatal(err)
			}
			if kind != PartReceivedCursor {
				chunks = append(chunks, r.Chunks...)
			}
			if body = encoded; kind != PartChange {
				b.Received(encoded, &r, kind == PartReceived)
			} else if _, err := b.Record(&r); err != nil {
				t.Fatal(err)
			}
		case PartReceivedBase:
			r := drawRecord(t)
			encoded, err := AppendRecord(nil, &r)
			if err != nil {
				t.Fatal(err)
			}
			body = encoded
			b.Base(encoded)
		case PartClosed:
			ts := drawNumber(t, "closed")
			b.Closed(geo.Timestamp(ts))
			body = binary.LittleEndian.AppendUint64(nil, ts)
		case PartReceivedClosed:
			c := drawClosed(t)
			b.ReceivedClosed(&c)
			body = AppendClosed(nil, &c)
		case PartGate:
			a, g := drawName(t, 1, "account"), drawGate(t)
			if g.Agreed != 0 {
				kind = PartGateAgreed
			}
			b.Gate(geo.Account(a), g)
			body = AppendGate(appendShort(nil, a), g)
		case PartGeneration:
			body = drawBytes(t, 40, "key")
			b.Generation(body)
		case PartTrim:
			s := drawStream(t)
			to := drawOutboxHead(t)
			b.Trim(s, to)
			body = appendOutboxHead(appendStream(nil, s), to)
		case PartStop:
			s, why := drawStream(t), drawStop(t)
			b.Stop(s, why)
			body = AppendStop(appendStream(nil, s), why)
		case PartWipe:
			lower, upper := drawBytes(t, 200, "lower"), drawBytes(t, 200, "upper")
			b.Wipe(lower, upper)
			body = append(binary.AppendUvarint(nil, uint64(len(lower))), lower...)
			body = append(binary.AppendUvarint(body, uint64(len(upper))), upper...)
		case PartImage:
			a, m := drawName(t, 1, "account"), drawImage(t)
			b.Image(geo.Account(a), m)
			body = AppendImage(appendShort(nil, a), m)
		case PartCompared:
			as := geo.Incarnation(drawNumber(t, "incarnation"))
			b.Compared(as)
			body = AppendCompared(nil, as)
		case PartLevels:
			l := Levels{Floor: feature.Level(rapid.Uint32Range(2, 9).Draw(t, "floor")), Active: feature.Base}
			b.Levels(l)
			body = AppendLevels(nil, l)
		}
		parts = append(parts, part{kind, body})
	}
	return parts, chunks
}

// sealed puts the right CRC32C behind body, so that a test reaches what stands
// behind the check of the checksum.
func sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(append([]byte(nil), body...), crc.Of(body))
}

func drawOutboxHead(t *rapid.T) OutboxHead {
	h := geo.Head{Seq: geo.Seq(drawNumber(t, "seq")), Hash: geo.Hash(drawNumber(t, "hash"))}
	return OutboxHead{h, Volume{drawNumber(t, "bytes"), drawNumber(t, "payload")}}
}

func drawImage(t *rapid.T) Image {
	size := func(label string) ImageSize {
		return ImageSize{drawNumber(t, label), drawNumber(t, label), drawNumber(t, label)}
	}
	m := Image{Epoch: geo.Epoch{Number: 7, Location: "north"}, Copied: size("copied"), Total: size("total")}
	if next := drawBytes(t, 40, "next"); len(next) > 0 {
		m.Next = next
	}
	if rapid.Bool().Draw(t, "done") {
		for range geo.LaneCount {
			m.Done = append(m.Done, geo.Seq(drawNumber(t, "last")))
		}
	}
	return m
}
