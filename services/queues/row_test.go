package queues

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/services/storageerr"
	"antipode/stamp/keys"
	"antipode/test/golden"
)

var _ = flag.Bool("rewrite", false, "add missing lines to the golden file")

const goldenPath = "testdata/queue.golden"

func goldenQueue() Queue {
	return Queue{Account: "acct", Name: "jobs", Generation: keys.Generation{Epoch: 1, Created: 17_000_000_000_000_000}}
}

var (
	goldenHead    = head{StateAllExceptPut, 1, 17_000_000_000_000_002, 258, 17_000_000_000_000_004}
	goldenPlace   = place{17_000_000_000_000_008, MessageID{0xc9, 0xda, 0x64, 0x55, 15: 0xff}}
	goldenInline  = message{inserted: 2, expires: 4, dequeues: 3, text: []byte("hello")}
	goldenApart   = message{inserted: 2, dequeues: 1, apart: true}
	goldenReceipt = receipt{1, 0x1122334455667788, 17_000_000_000_000_008}
)

func goldenDictionary() *Dictionary {
	return &Dictionary{Version: 1, Number: 3, Changed: 9, Subqueues: []Entry{
		{0, 1, StateToBeDeleted, 5}, {0x1122334455667788, 1, StateAll, 7},
	}}
}

// The stored form never changes: rows and receipts of today equal the golden file. docs/format/queue.md spells it out.
func TestGolden(t *testing.T) {
	t.Parallel()
	dictionary, err := json.Marshal(goldenDictionary())
	require.NoError(t, err)
	sub := Subqueue{goldenQueue(), 0x1122334455667788}
	golden.Require(t, goldenPath, []golden.Case{
		golden.Hex("partition of a subqueue", sub.Partition().Append(nil)),
		golden.Hex("partition of the dictionary", sub.DictionaryPartition().Append(nil)),
		golden.Hex("head", goldenHead.append(nil)),
		golden.Hex("row of a message", goldenPlace.append(nil)),
		golden.Hex("row of a text", textRow(goldenPlace.id)),
		golden.Hex("message", goldenInline.append(nil)),
		golden.Hex("message with its text apart", goldenApart.append(nil)),
		golden.Hex("dictionary", dictionary),
		{Name: "receipt", Value: goldenReceipt.encode(goldenQueue(), goldenPlace.id)},
		{Name: "receipt with its seal", Value: sealed(NewSecret([]byte("key")), goldenQueue(), goldenPlace.id)},
	})
}

// The golden file is still read, as what was written.
func TestGoldenIsRead(t *testing.T) {
	t.Parallel()
	lines := golden.Read(t, goldenPath)
	h, err := parseHead(golden.Bytes(t, lines["head"]))
	require.NoError(t, err)
	require.Equal(t, goldenHead, h)
	p, err := parsePlace(golden.Bytes(t, lines["row of a message"]))
	require.NoError(t, err)
	require.Equal(t, goldenPlace, p)
	for name, want := range map[string]message{"message": goldenInline, "message with its text apart": goldenApart} {
		m, err := parseMessage(golden.Bytes(t, lines[name]))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want.text, m.text))
		m.text, want.text = nil, nil
		require.Equal(t, want, m)
	}
	d, err := ParseDictionary(golden.Bytes(t, lines["dictionary"]))
	require.NoError(t, err)
	require.Equal(t, goldenDictionary(), d)
	r, err := parseReceipt(lines["receipt"], goldenQueue(), goldenPlace.id)
	require.NoError(t, err)
	require.Equal(t, goldenReceipt, r)
}

// What a receipt is compared with (protocol/queue.md 9.4): the text, the message and the queue.
func TestReceipts(t *testing.T) {
	t.Parallel()
	q, id := goldenQueue(), goldenPlace.id
	text := goldenReceipt.encode(q, id)
	other := q
	other.Name = "others"
	_, err := parseReceipt(text, other, id)
	require.ErrorIs(t, err, storageerr.PopReceiptMismatch)
	_, err = parseReceipt(text, q, MessageID{1})
	require.ErrorIs(t, err, storageerr.PopReceiptMismatch)
	again := q
	again.Generation.Created++
	_, err = parseReceipt(text, again, id)
	require.NoError(t, err, "the message is not found, which is no mismatch")

	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	for i := range raw {
		damaged := bytes.Clone(raw)
		damaged[i] ^= 1
		_, err := parseReceipt(base64.StdEncoding.EncodeToString(damaged), q, id)
		require.ErrorIs(t, err, storageerr.InvalidQueryParameter, "byte %d", i)
	}
	for _, none := range []string{"", "AgAAAA==", text + "A", strings.ToLower(text), text + "\n"} {
		_, err := parseReceipt(none, q, id)
		require.ErrorIs(t, err, storageerr.InvalidQueryParameter, "%q", none)
		e, _ := storageerr.Of(err)
		require.Equal(t, []storageerr.Detail{
			{Name: "QueryParameterName", Value: "popreceipt"},
			{Name: "QueryParameterValue", Value: none},
			{Name: "Reason", Value: "Invalid pop receipt format"},
		}, e.Details)
	}
}

// An id is printed as a GUID, and read from one.
func TestMessageID(t *testing.T) {
	t.Parallel()
	const text = "c9da6455-0000-0000-0000-0000000000ff"
	require.Equal(t, text, goldenPlace.id.String())
	for _, s := range []string{text, strings.ToUpper(text)} {
		id, ok := ParseMessageID(s)
		require.True(t, ok)
		require.Equal(t, goldenPlace.id, id)
	}
	for _, s := range []string{"", text[1:], text + "0", strings.Replace(text, "-", "0", 1), strings.Replace(text, "c", "g", 1)} {
		_, ok := ParseMessageID(s)
		require.False(t, ok, s)
	}
}

// Every row is described, also one whose value is not there (table).
func TestDescribeRow(t *testing.T) {
	t.Parallel()
	dictionary, err := json.Marshal(goldenDictionary())
	require.NoError(t, err)
	const id = "c9da6455-0000-0000-0000-0000000000ff"
	for _, c := range []struct {
		row, value []byte
		want       RowInfo
	}{
		{[]byte{rowHead}, goldenHead.append(nil), RowInfo{
			Kind: "head", Detail: "state 2, schema 1, 258 messages, walks from 2023-11-14T22:13:20.0000002Z",
		}},
		{goldenPlace.append(nil), goldenInline.append(nil), RowInfo{
			Kind: "message", Of: id + " visible from 2023-11-14T22:13:20.0000008Z",
			Detail: "inserted 1970-01-01T00:00:00.0000002Z, got 3 times, 5 bytes here",
		}},
		{textRow(goldenPlace.id), []byte("hello"), RowInfo{Kind: "text", Of: id, Detail: "5 bytes"}},
		{[]byte{rowDictionary}, dictionary, RowInfo{Kind: "dictionary", Detail: "change 3, 2 subqueues, 1 of them live"}},
	} {
		i, err := DescribeRow(c.row, c.value)
		require.NoError(t, err)
		require.Equal(t, c.want, i)
		i, _ = DescribeRow(c.row, nil)
		require.Equal(t, c.want.Kind+c.want.Of, i.Kind+i.Of)
	}
	for _, row := range [][]byte{nil, {9}, {rowMessage}, {rowText, 1}} {
		_, err := DescribeRow(row, nil)
		require.ErrorIs(t, err, keys.ErrMalformed)
	}
}

// No bytes make a parser of rows fail otherwise than by an error, and what it reads, it writes again.
func FuzzRows(f *testing.F) {
	for name, v := range golden.Read(f, goldenPath) {
		if strings.HasPrefix(name, "receipt") {
			continue // No row, and in Base64.
		}
		f.Add(golden.Bytes(f, v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := parseHead(b); err == nil {
			require.Equal(t, b, h.append(nil))
		}
		if p, err := parsePlace(b); err == nil {
			require.Equal(t, b, p.append(nil))
		}
		if m, err := parseMessage(b); err == nil {
			require.Equal(t, b, m.append(nil))
		}
		if d, err := ParseDictionary(b); err == nil {
			require.NotEmpty(t, d.with(StateAll))
		}
	})
}

// No text makes the parser of receipts fail otherwise than by an error, and what it takes is what was made.
func FuzzReceipt(f *testing.F) {
	f.Add(goldenReceipt.encode(goldenQueue(), goldenPlace.id))
	f.Add("AgAAAA==")
	key := NewSecret([]byte("key"))
	f.Add(sealed(key, goldenQueue(), goldenPlace.id))
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := key.Open(goldenQueue(), goldenPlace.id, s); err == nil {
			require.Equal(t, r, s[:receiptText])
		}
		if r, err := parseReceipt(s, goldenQueue(), goldenPlace.id); err == nil {
			require.Equal(t, s, r.encode(goldenQueue(), goldenPlace.id))
		}
	})
}
