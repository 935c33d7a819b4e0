package queues

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// plainText is how long the part of a receipt is that names the row, in characters: its seal follows.
const plainText = 40

// forged is a receipt whose plain part was changed, with the check sum that it would have, and the seal of before.
func forged(t *testing.T, receipt string, change func(b []byte)) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(receipt[:plainText])
	require.NoError(t, err)
	change(b)
	sum := len(b) - 4
	binary.LittleEndian.PutUint32(b[sum:], crc32.Checksum(b[:sum], crc32.MakeTable(crc32.Castagnoli)))
	return base64.StdEncoding.EncodeToString(b) + receipt[plainText:]
}

// Who knows all that a receipt says, and not the key of the account, cannot make one: neither out of an older one of the
// message, nor in the form of the version before, nor by another seal (protocol/queue.md 9.4).
func TestReceiptsAreUnforgeable(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	older := r.put("/first/messages", "a").list(t)[0].PopReceipt
	got := r.do("GET", "/first/messages?visibilitytimeout=600", "").list(t)[0]
	said, err := base64.StdEncoding.DecodeString(got.PopReceipt[:plainText])
	require.NoError(t, err)
	made := forged(t, older, func(b []byte) { copy(b, said) })
	require.Equal(t, got.PopReceipt[:plainText], made[:plainText])
	receipts := []string{made, got.PopReceipt[:plainText]}
	for i := plainText; i < len(got.PopReceipt); i++ {
		other := "A"
		if got.PopReceipt[i] == 'A' {
			other = "B"
		}
		receipts = append(receipts, got.PopReceipt[:i]+other+got.PopReceipt[i+1:])
	}
	for _, receipt := range receipts {
		m := got
		m.PopReceipt = receipt
		r.requireCode(r.do("DELETE", named("first", m, ""), ""), 400, "PopReceiptMismatch")
		r.requireCode(r.do("PUT", named("first", m, "&visibilitytimeout=0"), ""), 400, "PopReceiptMismatch")
	}
	require.Equal(t, 204, r.do("DELETE", named("first", got, ""), "").status)
}

// A receipt that was cut, changed or made up names nothing, whatever it says, and changes nothing: one that is none is refused
// as such, and one whose check sum is right is that of no message (protocol/queue.md 9.4).
//
// Capability: Queues: Hostile clients of queues.
func TestForgedReceipts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("/first/messages", "a")
	got := r.do("GET", "/first/messages?visibilitytimeout=600", "").list(t)[0]
	with := func(receipt string) []string {
		m := got
		m.PopReceipt = receipt
		return []string{"DELETE " + named("first", m, ""), "PUT " + named("first", m, "&visibilitytimeout=0")}
	}
	var cases []refusal
	add := func(receipt string, status int, code, says string) {
		for _, request := range with(receipt) {
			cases = append(cases, refusal{request, "", status, code, says, nil})
		}
	}
	none := func(receipt string) { add(receipt, 400, inval, "<Reason>Invalid pop receipt format</Reason>") }
	whole := got.PopReceipt
	for n := 1; n < len(whole); n++ {
		if n != plainText {
			none(whole[:n])
		}
	}
	for _, receipt := range []string{
		whole + "A", whole + whole, "\n" + whole, whole[:8] + "\r\n" + whole[8:], strings.ToLower(whole), " " + whole, whole + "=",
		strings.Repeat("A", len(whole)), strings.Repeat("=", len(whole)), "\x00", "%", strings.Repeat("é", len(whole)/2), strings.Repeat("A", 4000),
	} {
		none(receipt)
	}
	raw, err := base64.StdEncoding.DecodeString(whole[:plainText])
	require.NoError(t, err)
	for i := range raw {
		b := append([]byte(nil), raw...)
		b[i] ^= 1
		none(base64.StdEncoding.EncodeToString(b) + whole[plainText:])
	}
	none(forged(t, whole, func(b []byte) { b[0]++ }))
	none(forged(t, whole, func(b []byte) { b[1]++ }))
	for _, at := range []int{2, 9, 10, 17} { // Of the subqueue, and of the time.
		for _, bits := range []byte{1, 0x80, 0xff} {
			add(forged(t, whole, func(b []byte) { b[at] ^= bits }), 400, "PopReceiptMismatch", "")
		}
	}
	add(forged(t, whole, func(b []byte) { copy(b[10:18], strings.Repeat("\xff", 8)) }), 400, "PopReceiptMismatch", "")
	add(forged(t, whole, func(b []byte) { copy(b[10:18], make([]byte, 8)) }), 400, "PopReceiptMismatch", "")
	add(forged(t, whole, func(b []byte) { b[18] ^= 1 }), 400, "PopReceiptMismatch", "")
	r.requireRefused(cases)
	require.Equal(t, 204, r.do("DELETE", named("first", got, ""), "").status)
}

// Of many clients that ask for one message at once one gets it; of as many that then delete it by one receipt, one has done it
// (Q2).
//
// Capability: Queues: Hostile clients of queues.
func TestQ2OneMessageManyClients(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const clients = 64
	for range 3 {
		require.Equal(t, 201, r.put("/first/messages", "one").status)
		answers := make([]answer, clients)
		all := func(method, path string) {
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() { answers[i] = r.do(method, path, "") })
			}
			wg.Wait()
		}
		all("GET", "/first/messages?numofmessages=32&visibilitytimeout=600")
		var got []message
		for _, a := range answers {
			got = append(got, a.list(t)...)
		}
		require.Len(t, got, 1)
		require.Equal(t, "1", got[0].DequeueCount)
		all("DELETE", named("first", got[0], ""))
		done := 0
		for _, a := range answers {
			if a.status == http.StatusNoContent {
				done++
				continue
			}
			r.requireCode(a, 404, "MessageNotFound")
		}
		require.Equal(t, 1, done)
	}
}

// Gets, updates and deletions of few messages by many clients at once, with each receipt that there ever was: a receipt works
// only until the next one was given (Q4), and the count is right afterwards (Q6).
//
// Capability: Queues: Hostile clients of queues.
func TestQ4ManyReceiptsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const clients, rounds = 16, 20
	var receipts sync.Map // to true
	var put, deleted atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for n := range rounds {
				if n%4 == 0 {
					put.Add(1)
					receipts.Store(r.put("/first/messages", fmt.Sprint(i, "-", n)).list(t)[0], true)
				}
				for _, m := range r.do("GET", "/first/messages?numofmessages=2&visibilitytimeout=1", "").list(t) {
					receipts.Store(m, true)
					if n%2 == 0 && r.do("DELETE", named("first", m, ""), "").status == 204 { // Its receipt stays for others to try.
						deleted.Add(1)
					}
				}
				tried := 0
				receipts.Range(func(k, _ any) bool { // In no order, so that many clients try the same ones.
					m, _ := k.(message)
					if tried++; (tried+i)%3 == 0 {
						if r.do("PUT", named("first", m, "&visibilitytimeout=0"), "").status == 204 {
							receipts.Delete(m)
						}
					} else if r.do("DELETE", named("first", m, ""), "").status == 204 {
						deleted.Add(1)
						receipts.Delete(m)
					}
					return tried < 3
				})
			}
		})
	}
	wg.Wait()
	require.Positive(t, deleted.Load())
	left := fmt.Sprint(put.Load() - deleted.Load())
	require.Equal(t, left, r.do("GET", "/first?comp=metadata", "").header.Get("x-ms-approximate-messages-count"))
}

// Queries that are no numbers, or that have names twice, are refused or read as the first one, and never fail the server.
func TestOddParameters(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.put("/first/messages", "a")
	for _, query := range []string{
		"numofmessages=%00", "numofmessages=1e1", "numofmessages=0x10", "numofmessages=١", "numofmessages=1_0", "numofmessages=+1+",
		"visibilitytimeout=NaN", "visibilitytimeout=--1", "visibilitytimeout=9223372036854775808", "numofmessages=-9223372036854775809",
	} {
		a := r.do("GET", "/first/messages?"+strings.ReplaceAll(query, "١", url.QueryEscape("١")), "")
		require.Equal(t, 400, a.status, query)
	}
	require.Equal(t, "0", r.do("GET", "/first/messages?peekonly=true", "").list(t)[0].DequeueCount, "nothing was got")
}

// stalled is a client that takes nothing of its answer.
type stalled struct {
	*httptest.ResponseRecorder
	writes, goOn chan struct{}
}

func (s stalled) Write(b []byte) (int, error) {
	s.writes <- struct{}{}
	<-s.goOn
	return s.ResponseRecorder.Write(b)
}

// A client that takes nothing of its answer keeps no more room from others than what it got fills, whatever it asked for.
func TestSlowReaderHoldsWhatItGot(t *testing.T) {
	t.Parallel()
	const ofOne = messagesMax*textMax + windowMax
	r := newRig(t, func(o *Options) { o.AnswersBytesMax = 2 * (ofOne + ofOne/2) })
	require.Equal(t, 201, r.put("/first/messages", "x").status)
	hr := httptest.NewRequest(http.MethodGet, r.url+"/acct/first/messages?numofmessages=32", http.NoBody)
	hr.RequestURI = "/acct/first/messages?numofmessages=32"
	hr.Header.Set("x-ms-version", testVersion)
	slow := stalled{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() { r.serve().ServeHTTP(slow, hr) })
	<-slow.writes
	require.Empty(t, r.do("GET", "/first/messages?numofmessages=32&limit=5s", "").list(t))
	close(slow.goOn)
	reading.Wait()
	require.Equal(t, http.StatusOK, slow.Code)
	require.Contains(t, slow.Body.String(), "<MessageText>x</MessageText>")
}

// What the body of a put has held is given back with its answer, also of one that is refused.
func TestBodiesGiveBackRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *Options) { o.InFlightBytesMax = 4 << 20 })
	text := strings.Repeat("x", textMax)
	for range 24 { // Some 200 KiB each, and 2 MiB of them is the account's.
		require.Equal(t, 201, r.put("/first/messages?limit=5s", text).status)
		require.Equal(t, 400, r.put("/first/messages?limit=5s", "<"+text).status)
	}
}
