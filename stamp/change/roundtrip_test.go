package change

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
)

// requireRefused checks that b with any one bit flipped, and b cut short anywhere, is
// refused with one of this package's errors.
func requireRefused(t *rapid.T, b []byte, parse func([]byte) error) {
	refused := func(err error) bool {
		return errors.Is(err, ErrMalformed) || errors.Is(err, ErrChecksum) || errors.Is(err, ErrVersion)
	}
	bit := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
	flipped := bytes.Clone(b)
	flipped[bit/8] ^= 1 << (bit % 8)
	require.True(t, refused(parse(flipped)), "bit %d flipped", bit)
	n := rapid.IntRange(0, len(b)-1).Draw(t, "length")
	require.True(t, refused(parse(b[:n:n])), "cut to %d of %d", n, len(b))
	require.True(t, refused(parse(append(bytes.Clone(b), 0))), "one byte longer")
}

// A record comes back as it went in, its header alone too; one bit flipped, or one
// byte less or more, and it is refused (R11; property).
func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRecord(t)
		prefix := drawBytes(t, 5, "prefix")
		b, err := AppendRecord(bytes.Clone(prefix), &want)
		require.NoError(t, err)
		require.Equal(t, prefix, b[:len(prefix)])
		b = b[len(prefix):]
		got, err := ParseRecord(b)
		require.NoError(t, err)
		require.Equal(t, want, got)
		h, err := ParseHeader(b)
		require.NoError(t, err)
		require.Equal(t, Header{want.Stream(), want.Seq, want.Prev, want.CommitTime, want.Incarnation}, h)
		n, err := recordLen(append(bytes.Clone(b), 1, 2, 3))
		require.NoError(t, err)
		require.Len(t, b, n)
		requireRefused(t, b, func(b []byte) error { _, err := ParseRecord(b); return err })
	})
}

// The hash that the next record carries depends on every bit of the record, its own
// Prev included, so it stands for the whole chain (R11, R16; property).
func TestHashChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t)
		a, err := AppendRecord(nil, &r)
		require.NoError(t, err)
		r.Prev ^= geo.Hash(1) << rapid.IntRange(0, 63).Draw(t, "bit")
		b, err := AppendRecord(nil, &r)
		require.NoError(t, err)
		require.NotEqual(t, HashOf(a), HashOf(b))
	})
}

// A frame comes back as it went in; one bit flipped, or one byte less or more, and it
// is refused (R11, R12; property).
func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawFrame(t)
		b := AppendFrame(nil, &want)
		got, err := ParseFrame(b)
		require.NoError(t, err)
		require.Equal(t, want, got)
		requireRefused(t, b, func(b []byte) error { _, err := ParseFrame(b); return err })
	})
}

// A group gives back its parts in order, and the chunks its records name; one bit
// flipped, or one byte less or more, and it is refused whole (R1, R3; property).
func TestGroupRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Builder
		want, chunks := drawParts(t, &b)
		require.Equal(t, len(want), b.Count())
		id := GroupID{drawNumber(t, "term"), drawNumber(t, "number")}
		pred := GroupID{drawNumber(t, "pred term"), drawNumber(t, "pred number")}
		answered := drawNumber(t, "answered")
		group := b.Finish(id, pred, answered)
		require.Zero(t, b.Len())
		require.Zero(t, b.Count())

		g, err := ParseGroup(group)
		require.NoError(t, err)
		require.Equal(t, id, g.ID)
		require.Equal(t, pred, g.Pred)
		require.Equal(t, answered, g.Answered)
		var got []part
		require.NoError(t, g.Parts(func(kind PartKind, body []byte) error {
			got = append(got, part{kind, body})
			return nil
		}))
		require.Equal(t, want, got)
		refs, err := GroupChunks(group)
		require.NoError(t, err)
		require.Equal(t, chunks, refs)
		require.Equal(t, len(chunks) > 0, NamesChunks(group))
		requireRefused(t, group, func(b []byte) error { _, err := ParseGroup(b); return err })
	})
}

// Rolling back leaves the group as if what was rolled back had never been staged,
// bytes and chunk flag included (R1; property against a builder that never saw it).
func TestRollback(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b, twin Builder
		kept, _ := drawParts(t, &b)
		for _, p := range kept {
			twin.Raw(p.kind, p.body)
		}
		twin.chunks = b.chunks
		mark := b.Mark()
		drawParts(t, &b)
		b.Rollback(mark)
		require.Equal(t, mark, b.Mark())
		require.Equal(t, twin.Finish(GroupID{1, 2}, GroupID{1, 1}, 3), b.Finish(GroupID{1, 2}, GroupID{1, 1}, 3))
	})
}

// A closed record, gate, trim, cursor, head, outbox head and row, stop and applied state come back as they went
// in. They carry no checksum, so a flipped bit may give another value, but
// never a panic, and never one that would be written in another form (property).
func TestSmallRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		closed := drawClosed(t)
		b := AppendClosed(nil, &closed)
		gotClosed, err := ParseClosed(b)
		require.NoError(t, err)
		require.Equal(t, closed, gotClosed)
		requireCanonical(t, b, reencodeClosed)

		cursor := drawCursor(t)
		b = AppendCursor(nil, &cursor)
		gotCursor, err := ParseCursor(b)
		require.NoError(t, err)
		require.Equal(t, cursor, gotCursor)
		requireCanonical(t, b, reencodeCursor)

		gate := drawGate(t)
		b = AppendGate(nil, gate)
		gotGate, err := ParseGate(b)
		require.NoError(t, err)
		require.Equal(t, gate, gotGate)
		requireCanonical(t, b, reencodeGate)

		head := cursor.Applied
		b = AppendHead(nil, head)
		gotHead, err := ParseHead(b)
		require.NoError(t, err)
		require.Equal(t, head, gotHead)
		requireCanonical(t, b, reencodeHead)

		place := drawOutboxHead(t)
		b = AppendOutboxHead(nil, place)
		gotPlace, err := ParseOutboxHead(b)
		require.NoError(t, err)
		require.Equal(t, place, gotPlace)
		requireCanonical(t, b, reencodeOutboxHead)

		b = AppendOutboxRow(nil, place.Volume, b)
		before, encoded, err := ParseOutboxRow(b)
		require.NoError(t, err)
		require.Equal(t, place.Volume, before)
		require.Equal(t, b[outboxRowHeader:], encoded)
		_, _, err = ParseOutboxRow(b[:outboxRowHeader-1])
		require.ErrorIs(t, err, ErrMalformed)

		stop := drawStop(t)
		b = AppendStop(nil, stop)
		gotStop, err := ParseStop(b)
		require.NoError(t, err)
		require.Equal(t, stop, gotStop)
		requireCanonical(t, b, reencodeStop)

		image := drawImage(t)
		b = AppendImage(nil, image)
		gotImage, err := ParseImage(b)
		require.NoError(t, err)
		require.Equal(t, image, gotImage)
		requireCanonical(t, b, reencodeImage)

		applied := AppliedState{
			geo.EntryID{Index: drawNumber(t, "index"), Term: drawNumber(t, "term")},
			GroupID{drawNumber(t, "group term"), drawNumber(t, "group")},
			geo.Timestamp(drawNumber(t, "last")),
		}
		b = AppendApplied(nil, applied)
		gotApplied, err := ParseApplied(b)
		require.NoError(t, err)
		require.Equal(t, applied, gotApplied)
		requireCanonical(t, b, reencodeApplied)
	})
}

// requireCanonical flips one bit, cuts and lengthens b: what is still read must encode
// back to the same bytes.
func requireCanonical(t *rapid.T, b []byte, reencode func([]byte) ([]byte, error)) {
	check := func(b []byte) {
		out, err := reencode(b)
		if err != nil {
			require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, ErrVersion), err)
			return
		}
		require.Equal(t, b, out)
	}
	bit := rapid.IntRange(0, 8*len(b)-1).Draw(t, "bit")
	flipped := bytes.Clone(b)
	flipped[bit/8] ^= 1 << (bit % 8)
	check(flipped)
	for n := range b {
		_, err := reencode(b[:n:n])
		require.ErrorIs(t, err, ErrMalformed, "cut to %d of %d", n, len(b))
	}
	_, err := reencode(append(bytes.Clone(b), 0))
	require.ErrorIs(t, err, ErrMalformed)
}

func reencodeClosed(b []byte) ([]byte, error) {
	c, err := ParseClosed(b)
	return AppendClosed(nil, &c), err
}

func reencodeCursor(b []byte) ([]byte, error) {
	c, err := ParseCursor(b)
	return AppendCursor(nil, &c), err
}

func reencodeGate(b []byte) ([]byte, error) {
	g, err := ParseGate(b)
	return AppendGate(nil, g), err
}

func reencodeHead(b []byte) ([]byte, error) {
	h, err := ParseHead(b)
	return AppendHead(nil, h), err
}

func reencodeOutboxHead(b []byte) ([]byte, error) {
	h, err := ParseOutboxHead(b)
	return AppendOutboxHead(nil, h), err
}

func reencodeImage(b []byte) ([]byte, error) {
	m, err := ParseImage(b)
	return AppendImage(nil, m), err
}

func reencodeStop(b []byte) ([]byte, error) {
	s, err := ParseStop(b)
	return AppendStop(nil, s), err
}

func reencodeApplied(b []byte) ([]byte, error) {
	a, err := ParseApplied(b)
	return AppendApplied(nil, a), err
}
