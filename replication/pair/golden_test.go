package pair

import (
	"context"
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/replication/link"
	"antipode/replication/ship"
	"antipode/stamp/change"
	"antipode/stamp/extent"
	"antipode/stamp/skew"
	"antipode/test/golden"
)

var _ = flag.Bool("rewrite", false, "add missing lines to the golden files")

// scripted is an End that remembers what it was asked, and gives the answers that a test sets.
type scripted struct {
	asked    any
	records  [][]byte
	closed   *change.Closed
	mismatch []ship.Mismatch
	received geo.Timestamp
	data     []byte
	missing  []bool
}

func (s *scripted) Records(_ context.Context, st geo.Stream, from geo.Seq, bytesMax int) ([][]byte, error) {
	s.asked = []any{st, from, bytesMax}
	return s.records, nil
}

func (s *scripted) Closed(_ context.Context, id geo.RangeID) (*change.Closed, error) {
	s.asked = id
	return s.closed, nil
}

func (s *scripted) Rest(_ context.Context, id geo.RangeID, look bool) (geo.Incarnation, geo.Timestamp, error) {
	s.asked = []any{id, look}
	return 1, s.received, nil
}

func (s *scripted) Acknowledge(_ context.Context, id geo.RangeID, a ship.Acknowledgement) ([]ship.Mismatch, error) {
	s.asked = []any{id, a}
	return s.mismatch, nil
}

func (s *scripted) Received(_ context.Context, src geo.SourceRange) (geo.Timestamp, error) {
	s.asked = src
	return s.received, nil
}

func (s *scripted) Clock(context.Context) (skew.Own, error) {
	s.asked = "clock"
	return skew.Own{Wall: 17, Unsure: true, Leapt: -18}, nil
}

func (s *scripted) ReadChunk(_ context.Context, ref extent.Ref, p []byte) error {
	s.asked = ref
	copy(p, s.data)
	return nil
}

func (s *scripted) PutChunk(_ context.Context, ref extent.Ref, data []byte) error {
	s.asked = []any{ref, string(data)}
	return nil
}

func (s *scripted) MissingChunks(_ context.Context, refs []extent.Ref) ([]bool, error) {
	s.asked = refs
	return s.missing, nil
}

func (s *scripted) Verify(_ context.Context, r geo.RangeID, question []byte) ([]byte, error) {
	s.asked = []any{r, string(question)}
	return s.data, nil
}

// canned is a Caller that answers with kept bytes, and keeps what it was asked.
type canned struct {
	far            link.Caller
	method         string
	request, reply []byte
}

func (c *canned) Call(ctx context.Context, method string, body []byte) (_ []byte, err error) {
	c.method, c.request = method, append([]byte(nil), body...)
	if c.far != nil {
		c.reply, err = c.far.Call(ctx, method, body)
	}
	return c.reply, err
}

// goldenCall is a call with what it asks for and what it answers.
type goldenCall struct {
	name, method string
	ask          func(End) (any, error)
	asked        any
	answer       scripted
	answered     any
}

func goldenCalls(t *testing.T) []goldenCall {
	st := testStream("acct", 31)
	records := [][]byte{testRecord(t, st, 1, 10), testRecord(t, st, 2, 20)}
	closed := &change.Closed{
		Origin: "north", Range: 3, Incarnation: 0x401, Full: true, T: 17_000_000_000_000_004, Span: geo.Span{Start: "\x02\x03", End: "\x02\x04"},
		Descriptor: 1, Heads: []change.StreamHead{{Account: "acct", Epoch: st.Epoch, Lane: 31, Seq: 300, Hash: 0x1122334455667788}},
	}
	cursors := ship.Acknowledgement{Full: true, Cursors: []ship.StreamCursor{
		{Stream: testStream("acct", 1), Head: geo.Head{Seq: 7, Hash: 0x77}},
		{Stream: st, Head: geo.Head{Seq: 9, Hash: 0x99}, Below: 12, Stop: change.StopVersion},
	}}
	mismatches := []ship.Mismatch{{Stream: st, Reason: change.StopLost, Here: geo.Head{Seq: 12, Hash: 0x1122334455667788}, Stopped: true}}
	ref := extent.NewRef(extent.ChunkID{0: 0xc0, 15: 0xff}, []byte("payload"))
	second := extent.Ref{ID: extent.ChunkID{1}, Length: 1 << 20, CRC: 0x11223344}
	return []goldenCall{
		{
			"records", methodRecords, func(e End) (any, error) { return e.Records(t.Context(), st, 5, 1<<18) },
			[]any{st, geo.Seq(5), 1 << 18},
			scripted{records: records},
			records,
		},
		{
			"closed", methodClosed, func(e End) (any, error) { return e.Closed(t.Context(), 3) },
			geo.RangeID(3),
			scripted{closed: closed},
			closed,
		},
		{
			"acknowledge", methodAcknowledge, func(e End) (any, error) { return e.Acknowledge(t.Context(), 3, cursors) },
			[]any{geo.RangeID(3), cursors},
			scripted{mismatch: mismatches},
			mismatches,
		},
		{
			"rest", methodRest, func(e End) (any, error) {
				i, at, err := e.Rest(t.Context(), 3, true)
				return []any{i, at}, err
			},
			[]any{geo.RangeID(3), true},
			scripted{received: 17_000_000_000_000_004},
			[]any{geo.Incarnation(1), geo.Timestamp(17_000_000_000_000_004)},
		},
		{"received", methodReceived, func(e End) (any, error) {
			return e.Received(t.Context(), geo.SourceRange{Origin: "south", Range: 3})
		}, geo.SourceRange{Origin: "south", Range: 3}, scripted{received: 17_000_000_000_000_004}, geo.Timestamp(17_000_000_000_000_004)},
		{
			"clock", methodClock, func(e End) (any, error) { return e.Clock(t.Context()) },
			"clock",
			scripted{},
			skew.Own{Wall: 17, Unsure: true, Leapt: -18},
		},
		{"read chunk", methodReadChunk, func(e End) (any, error) {
			p := make([]byte, ref.Length)
			err := e.ReadChunk(t.Context(), ref, p)
			return string(p), err
		}, ref, scripted{data: []byte("payload")}, "payload"},
		{
			"put chunk", methodPutChunk, func(e End) (any, error) { return nil, e.PutChunk(t.Context(), ref, []byte("payload")) },
			[]any{ref, "payload"},
			scripted{},
			nil,
		},
		{
			"missing chunks", methodMissingChunks, func(e End) (any, error) { return e.MissingChunks(t.Context(), []extent.Ref{ref, second, ref}) },
			[]extent.Ref{ref, second, ref},
			scripted{missing: []bool{false, true, false}},
			[]bool{false, true, false},
		},
		{
			"verify", methodVerify, func(e End) (any, error) { return e.Verify(t.Context(), 3, []byte("question")) },
			[]any{geo.RangeID(3), "question"},
			scripted{data: []byte("answer")},
			[]byte("answer"),
		},
	}
}

// Calls and answers of the version before, acknowledgements among them, are read as what they meant: kept bytes of each
// call are served, and kept bytes of each answer are taken (mixed versions, docs/upgrade.md).
func TestGoldenCallsAreRead(t *testing.T) {
	calls := goldenCalls(t)
	var cases []golden.Case
	for _, c := range calls { // What this version sends, for lines that are missing.
		_, w := remoteOf(t, &c.answer)
		sent := &canned{far: w}
		_, err := c.ask(NewRemote(sent))
		require.NoError(t, err, c.name)
		require.Equal(t, c.method, sent.method, c.name)
		cases = append(cases, golden.Hex(c.name+", call", sent.request), golden.Hex(c.name+", answer", sent.reply))
	}
	lines := golden.Add(t, "testdata/calls.golden", cases)
	for _, c := range calls {
		_, w := remoteOf(t, &c.answer)
		c.answer.asked = nil
		_, err := w.Call(t.Context(), c.method, golden.Bytes(t, lines[c.name+", call"]))
		require.NoError(t, err, c.name)
		require.Equal(t, c.asked, c.answer.asked, c.name)

		got, err := c.ask(NewRemote(&canned{reply: golden.Bytes(t, lines[c.name+", answer"])}))
		require.NoError(t, err, c.name)
		require.Equal(t, c.answered, got, c.name)
	}
}
