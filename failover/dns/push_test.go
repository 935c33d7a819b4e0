package dns

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	msg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services/catalog"
)

// key is the key of tests.
var key = Key{Name: "antipode", Secret: "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ="}

// outcomes is an Observer that keeps what became of updates.
type outcomes struct {
	counts
	mu   sync.Mutex
	list []string
}

// Pushed implements Observer.
func (o *outcomes) Pushed(_, outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, outcome)
}

// taken returns the outcomes since the last call of taken.
func (o *outcomes) taken() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.list = nil }()
	return o.list
}

// standIn is a server that answers each message with a code, signed unless unsigned is set. Records that answer adds to a
// question are in the reply.
func standIn(t *testing.T, secret string, answer func(m *msg.Msg) (code int, unsigned bool)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	started := make(chan struct{})
	s := &msg.Server{
		Listener: l, TsigSecret: map[string]string{"antipode.": secret}, NotifyStartedFunc: func() { close(started) },
		MsgAcceptFunc: func(msg.Header) msg.MsgAcceptAction { return msg.MsgAccept },
		Handler: msg.HandlerFunc(func(w msg.ResponseWriter, r *msg.Msg) {
			m := new(msg.Msg)
			m.SetReply(r)
			code, unsigned := answer(r)
			if r.Opcode == msg.OpcodeQuery {
				m.Answer = r.Answer
			}
			if m.Rcode = code; w.TsigStatus() != nil {
				m.Rcode, unsigned = msg.RcodeNotAuth, true
			}
			if !unsigned {
				m.SetTsig("antipode.", msg.HmacSHA256, signFudge, time.Now().Unix())
			}
			if err := w.WriteMsg(m); err != nil {
				t.Log(err)
			}
		}),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ActivateAndServe() }()
	<-started
	t.Cleanup(func() {
		require.NoError(t, s.Shutdown())
		require.NoError(t, <-ended)
	})
	return l.Addr().String()
}

func newTestPusher(v *View, z *Zone, server string, k Key) (*Pusher, *outcomes, *bytes.Buffer) {
	var out bytes.Buffer
	seen := &outcomes{}
	return NewPusher(PusherOptions{
		Server: server, Key: k, Zone: z, View: v, Clock: clock.System{}, Observer: seen,
		Logger: slog.New(slog.NewTextHandler(&out, nil)),
	}), seen, &out
}

// A server that refuses, does not know the key, does not sign, or does not answer: nothing counts as pushed, there is one
// line in the log however often it is tried, one more when it works, and a count for each try (table).
func TestPushFails(t *testing.T) {
	for _, c := range []struct {
		want string
		code int
		fail func(m *msg.Msg) (int, bool)
		key  Key
	}{
		{want: outcomeRefused, fail: func(*msg.Msg) (int, bool) { return msg.RcodeRefused, false }},
		{want: outcomeRefused, fail: func(*msg.Msg) (int, bool) { return msg.RcodeNotAuth, false }},
		{want: outcomeRefused, fail: func(m *msg.Msg) (int, bool) {
			return map[int]int{msg.OpcodeUpdate: msg.RcodeNotImplemented}[m.Opcode], false
		}},
		{want: outcomeKey, fail: func(*msg.Msg) (int, bool) { return msg.RcodeSuccess, true }},
		{want: outcomeKey, fail: func(*msg.Msg) (int, bool) { return msg.RcodeSuccess, false }, key: Key{"antipode", "d3Jvbmc="}},
		{want: outcomeKey, fail: func(*msg.Msg) (int, bool) { return msg.RcodeSuccess, false }, key: Key{"other", key.Secret}},
	} {
		if c.key == (Key{}) {
			c.key = key
		}
		p, seen, out := newTestPusher(filled(t), newZone(t), standIn(t, key.Secret, c.fail), c.key)
		for range 3 {
			err := p.step(t.Context())
			require.Error(t, err, c.want)
			p.report(err)
		}
		require.Equal(t, []string{c.want, c.want, c.want}, seen.taken())
		require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
		require.Contains(t, out.String(), "reason="+c.want)
		require.NotContains(t, out.String(), key.Secret)
		require.Equal(t, 3, p.Waiting())
		p.report(nil)
		require.Equal(t, 2, strings.Count(out.String(), "\n"))
		p.peer.close()
	}
	p, seen, _ := newTestPusher(filled(t), newZone(t), "127.0.0.1:1", key) // Nobody listens there.
	p.report(p.step(t.Context()))
	require.Equal(t, []string{outcomeUnreachable}, seen.taken())
}

// The pauses between tries double, up to a minute; a success begins again with the first.
func TestPushBacksOff(t *testing.T) {
	var failing atomic.Bool
	failing.Store(true)
	server := standIn(t, key.Secret, func(*msg.Msg) (int, bool) {
		if failing.Load() {
			return msg.RcodeRefused, false
		}
		return msg.RcodeSuccess, false
	})
	p, _, _ := newTestPusher(filled(t), newZone(t), server, key)
	ctx, cancel := context.WithCancel(t.Context())
	var pauses []time.Duration
	p.o.Wait = func(ctx context.Context, d time.Duration) error {
		if d == checkEvery {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		pauses = append(pauses, d)
		failing.Store(len(pauses) < 9)
		return nil
	}
	require.NoError(t, p.Run(ctx))
	s := time.Second
	require.Equal(t, []time.Duration{s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s, 60 * s}, pauses)
	require.Zero(t, p.Waiting())
}

// The text at the server decides what is pushed for an account (table).
func TestPushDecides(t *testing.T) {
	p, _, _ := newTestPusher(filled(t), newZone(t), "", key)
	here := held{in("pictures", 3, north, catalog.RAGRS), true}
	other := held{in("pictures", 3, north, catalog.GRS), false}
	for _, c := range []struct {
		e      held
		former string
		said   string
		update bool
	}{
		{here, "", outcomeDone, true},
		{here, here.Text(false), "", false},
		{here, in("pictures", 2, south, catalog.RAGRS).Text(false), outcomeDone, true},
		{here, in("pictures", 4, south, catalog.RAGRS).Text(false), outcomeStale, false},
		{here, in("pictures", 3, south, catalog.RAGRS).Text(false), outcomeStale, false},
		{here, in("pictures", 3, north, catalog.GRS).Text(false), outcomeDone, true},
		{other, here.Text(false), outcomeStale, false},
		{here, "v=spf1 -all", outcomeForeign, false},
		{here, notOurs, outcomeForeign, false},
	} {
		said, update := p.decide(c.e, c.former)
		require.Equal(t, fmt.Sprint(c.said, c.update), fmt.Sprint(said, update), "%+v at %q", c.e, c.former)
	}
}

// An update has the former text as its prerequisite, or that there is none; names that were not written before must be
// free; what cannot be read any more is removed.
func TestUpdateMessage(t *testing.T) {
	z := newZone(t)
	show := func(m *msg.Msg) (prerequisites, changes string) {
		lines := func(list []msg.RR) string {
			var out []string
			for _, rr := range list {
				if strings.Contains(rr.Header().Name, ".blob.") {
					out = append(out, strings.Join(strings.Fields(rr.String()), " "))
				}
			}
			return strings.Join(out, "\n")
		}
		return lines(m.Answer), lines(m.Ns)
	}
	e := in("pictures", 3, north, catalog.RAGRS)
	prerequisites, changes := show(z.update(e, ""))
	require.Equal(t, `_epoch.pictures.blob.storage.test. 0 NONE TXT
pictures.blob.storage.test. 0 NONE ANY
pictures-secondary.blob.storage.test. 0 NONE ANY`, prerequisites)
	require.Equal(t, `pictures.blob.storage.test. 5 IN CNAME blob.north.store.storage.test.
_epoch.pictures.blob.storage.test. 5 IN TXT "v=antipode1 epoch=3@north location=north role=primary secondary=south"
pictures-secondary.blob.storage.test. 5 IN CNAME blob.south.store.storage.test.
_epoch.pictures-secondary.blob.storage.test. 5 IN TXT "v=antipode1 epoch=3@north location=south role=secondary"`, changes)

	prerequisites, changes = show(z.update(in("pictures", 4, south, catalog.LRS), e.Text(false)))
	require.Equal(t, `_epoch.pictures.blob.storage.test. 0 IN TXT "v=antipode1 epoch=3@north location=north role=primary secondary=south"`, prerequisites)
	require.Equal(t, `pictures.blob.storage.test. 0 CLASS255 CNAME
_epoch.pictures.blob.storage.test. 0 CLASS255 TXT
pictures.blob.storage.test. 5 IN CNAME blob.south.store.storage.test.
_epoch.pictures.blob.storage.test. 5 IN TXT "v=antipode1 epoch=4@south location=south role=primary"
pictures-secondary.blob.storage.test. 0 CLASS255 CNAME
_epoch.pictures-secondary.blob.storage.test. 0 CLASS255 TXT`, changes)
}

// The end of the context ends an exchange with a server that never answers.
func TestPushEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	p, _, _ := newTestPusher(filled(t), newZone(t), l.Addr().String(), key)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	c, err := l.Accept()
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, c.Close())
}

// A name of a clone that another one of ours writes between the look and the update is no foreign one; one that is in use for
// something else is.
func TestPushOfACloneRaces(t *testing.T) {
	z, e := newZone(t), in("pictures", 3, north, catalog.RAGRS)
	for there, want := range map[string]string{z.placeName(geo.Blob, south): "", "elsewhere.test.": outcomeForeign, "": outcomeForeign} {
		updated := false
		p, _, _ := newTestPusher(filled(t), z, standIn(t, key.Secret, func(m *msg.Msg) (int, bool) {
			switch {
			case m.Opcode == msg.OpcodeUpdate:
				updated = true
				return msg.RcodeYXDomain, false
			case updated && there != "":
				m.Answer = []msg.RR{&msg.CNAME{Hdr: z.header(m.Question[0].Name, msg.TypeCNAME), Target: there}}
			}
			return msg.RcodeSuccess, false
		}), key)
		said, err := p.clone(t.Context(), e)
		require.NoError(t, err)
		require.True(t, updated)
		require.Equal(t, want, said, there)
		p.peer.close()
	}
}
