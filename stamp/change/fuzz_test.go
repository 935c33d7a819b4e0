package change

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/test/golden"
)

// addGolden seeds a fuzz target with every value of every golden file. It adds each value again
// with one byte changed and a fresh checksum, so that the fuzzer starts behind the check of the
// checksum.
func addGolden(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{formatVersion})
	for _, name := range []string{"record", "group", "frame", "closed", "cursor", "gate", "head", "applied", "lost"} {
		for _, text := range golden.Read(f, "testdata/"+name+".golden") {
			b, err := hex.DecodeString(text)
			require.NoError(f, err)
			f.Add(b)
			if len(b) > recHeader+crcLen {
				f.Add(edit(b, setByte(recHeader, 0xff)))
			}
		}
	}
}

// requireError checks that err is one of this package's errors.
func requireError(t *testing.T, err error) {
	t.Helper()
	for _, want := range []error{ErrMalformed, ErrChecksum, ErrVersion} {
		if errors.Is(err, want) {
			return
		}
	}
	t.Fatalf("foreign error %v", err)
}

// Any bytes give a record or an error, with their own checksum and with a right one;
// what is read encodes back to the same bytes, and its header alone is the same.
func FuzzParseRecord(f *testing.F) {
	addGolden(f)
	check := func(t *testing.T, b []byte) {
		// The header of anything may be looked at: a value or an error.
		h, headerErr := ParseHeader(b)
		r, err := ParseRecord(b)
		if err != nil {
			requireError(t, err)
			return
		}
		require.NoError(t, headerErr)
		require.Equal(t, Header{r.Stream(), r.Seq, r.Prev, r.CommitTime, r.Incarnation}, h)
		out, err := AppendRecord(nil, &r)
		require.NoError(t, err)
		require.Equal(t, b, out)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b)
		check(t, sealed(b))
	})
}

// Any bytes give a frame or an error; what is read encodes back to the same bytes.
func FuzzParseFrame(f *testing.F) {
	addGolden(f)
	check := func(t *testing.T, b []byte) {
		fr, err := ParseFrame(b)
		if err != nil {
			requireError(t, err)
			return
		}
		require.Equal(t, b, AppendFrame(nil, &fr))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b)
		check(t, sealed(b))
	})
}

// Any bytes give a group whose parts can be walked or an error; what is read encodes
// back to the same bytes, and every part gives a value or an error.
func FuzzParseGroup(f *testing.F) {
	addGolden(f)
	check := func(t *testing.T, b []byte) {
		g, err := ParseGroup(b)
		if err != nil {
			requireError(t, err)
			return
		}
		var twin Builder
		err = g.Parts(func(kind PartKind, body []byte) error {
			twin.Raw(kind, body)
			parsePart(t, kind, body)
			return nil
		})
		if err != nil {
			requireError(t, err)
			return
		}
		twin.chunks = NamesChunks(b)
		require.Equal(t, b, twin.Finish(g.ID, g.Pred, g.Answered))
		if _, err := GroupChunks(b); err != nil {
			requireError(t, err)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		check(t, b)
		check(t, sealed(b))
	})
}

// parsePart reads a part as apply does; what is read encodes back to the same bytes.
func parsePart(t *testing.T, kind PartKind, body []byte) {
	var b Builder
	var err error
	switch kind {
	case PartChange:
		var r Record
		if r, err = ParseRecord(body); err == nil {
			_, err = b.Record(&r)
			require.NoError(t, err)
		}
	case PartReceived, PartReceivedCursor:
		var r Record
		if r, err = ParseRecord(body); err == nil {
			b.Received(body, &r, kind == PartReceived)
		}
	case PartClosed:
		ts, e := ParseClosedTime(body)
		b.Closed(ts)
		err = e
	case PartReceivedClosed:
		c, e := ParseClosed(body)
		b.ReceivedClosed(&c)
		err = e
	case PartGate, PartGateAgreed:
		a, gate, e := ParseGatePart(body)
		b.Gate(a, gate)
		err = e
	case PartTrim:
		s, to, e := ParseTrim(body)
		b.Trim(s, to)
		err = e
	case PartWipe:
		lower, upper, e := ParseWipe(body)
		b.Wipe(lower, upper)
		err = e
	case PartCompared:
		as, e := ParseCompared(body)
		b.Compared(as)
		err = e
	case PartLevels:
		l, e := ParseLevels(body)
		b.Levels(l)
		err = e
	default:
		return
	}
	if err != nil {
		requireError(t, err)
		return
	}
	require.Equal(t, body, b.buf[groupHeader+partHeader:])
}

// Any bytes give a closed record or an error; what is read encodes back to the same
// bytes.
func FuzzParseClosed(f *testing.F) { fuzzCanonical(f, reencodeClosed) }

// Any bytes give a cursor or an error; what is read encodes back to the same bytes.
func FuzzParseCursor(f *testing.F) { fuzzCanonical(f, reencodeCursor) }

// Any bytes give a gate, a head and an applied state, or an error for each; what is
// read encodes back to the same bytes.
func FuzzParseState(f *testing.F) {
	fuzzCanonical(f, reencodeGate, reencodeHead, reencodeStop, reencodeImage, reencodeApplied)
}

// Any bytes give answers, a lost change and a claim, or an error for each; what is read encodes back to the same bytes.
func FuzzParseLost(f *testing.F) {
	fuzzCanonical(f, func(b []byte) ([]byte, error) {
		a, err := ParseAnswers(b)
		return AppendAnswers(nil, &a), err
	}, func(b []byte) ([]byte, error) {
		l, err := ParseLost(b)
		return AppendLost(nil, l), err
	}, func(b []byte) ([]byte, error) {
		if c, err := ParseLostClaim(b); err == nil {
			again, err := ParseLostClaim(AppendLostClaim(nil, c))
			if err != nil || !reflect.DeepEqual(c, again) {
				return nil, fmt.Errorf("claim %+v is read again as %+v: %w", c, again, err)
			}
		} else {
			return nil, err
		}
		return b, nil
	})
}

func fuzzCanonical(f *testing.F, reencode ...func([]byte) ([]byte, error)) {
	addGolden(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, again := range reencode {
			out, err := again(b)
			if err != nil {
				requireError(t, err)
				continue
			}
			require.Equal(t, b, out)
		}
	})
}
