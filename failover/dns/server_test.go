package dns

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	msg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// listen runs a server of the filled view on loopback.
func listen(t *testing.T, z *Zone, v *View) *Server {
	t.Helper()
	s, err := Listen(ServerOptions{Addr: "127.0.0.1:0", Zone: z, View: v, Observer: counts{}, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// exchange sends a message and returns the answer.
func exchange(t *testing.T, s *Server, network string, m *msg.Msg) *msg.Msg {
	t.Helper()
	r, _, err := (&msg.Client{Net: network, Timeout: time.Minute, UDPSize: msg.MaxMsgSize}).Exchange(m, s.Addr().String())
	require.NoError(t, err)
	return r
}

func query(name string, kind uint16) *msg.Msg {
	m := new(msg.Msg)
	return m.SetQuestion(name, kind)
}

// Over UDP and TCP the answer is the same, authoritative and without recursion, whatever was asked for.
func TestUDPAndTCP(t *testing.T) {
	s := listen(t, newZone(t), filled(t))
	for _, network := range []string{"udp", "tcp"} {
		r := exchange(t, s, network, query("pictures.blob.storage.test.", msg.TypeA))
		require.True(t, r.Response && r.Authoritative && !r.RecursionAvailable && r.RecursionDesired, r.String())
		require.Len(t, r.Answer, 3)
		require.Nil(t, r.IsEdns0(), "the question had none")

		r = exchange(t, s, network, query("elsewhere.example.", msg.TypeA))
		require.Equal(t, msg.RcodeRefused, r.Rcode)
		require.False(t, r.Authoritative)

		r = exchange(t, s, network, query("nobody.blob.storage.test.", msg.TypeA))
		require.Equal(t, msg.RcodeNameError, r.Rcode)
		require.True(t, r.Authoritative)
	}
}

// A question with EDNS is answered with EDNS, of an unknown version with BADVERS (RFC 6891 6.1.3), with the DO bit as it
// came (RFC 3225).
func TestEDNS(t *testing.T) {
	s := listen(t, newZone(t), filled(t))
	r := exchange(t, s, "udp", query("pictures.blob.storage.test.", msg.TypeA).SetEdns0(4096, true))
	require.Equal(t, uint16(udpBytesMax), r.IsEdns0().UDPSize())
	require.True(t, r.IsEdns0().Do())
	require.Len(t, r.Answer, 3)

	m := query("pictures.blob.storage.test.", msg.TypeA).SetEdns0(4096, false)
	m.IsEdns0().SetVersion(1)
	r = exchange(t, s, "udp", m)
	require.Equal(t, msg.RcodeBadVers, r.Rcode)
	require.Zero(t, r.IsEdns0().Version())
	require.Empty(t, r.Answer)

	m = query("pictures.blob.storage.test.", msg.TypeA).SetEdns0(4096, false)
	m.Extra = append(m.Extra, msg.Copy(m.Extra[0]))
	require.Equal(t, msg.RcodeFormatError, exchange(t, s, "tcp", m).Rcode)
}

// An answer above the size that the asker takes is cut, with the bit that makes it ask over TCP: 512 bytes without
// EDNS, and never more than 1232 over UDP (table).
func TestTruncation(t *testing.T) {
	o := zoneOptions()
	var list []netip.Addr
	for i := range 200 {
		list = append(list, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
	}
	o.Locations[0].Addresses = list
	z, err := NewZone(o)
	require.NoError(t, err)
	s := listen(t, z, filled(t))
	for _, c := range []struct {
		network   string
		edns      uint16
		most      int
		truncated bool
	}{{"udp", 0, 512, true}, {"udp", 100, 512, true}, {"udp", 800, 800, true}, {"udp", 4096, udpBytesMax, true}, {"tcp", 0, msg.MaxMsgSize, false}} {
		m := query("pictures.blob.storage.test.", msg.TypeA)
		if c.edns > 0 {
			m.SetEdns0(c.edns, false)
		}
		r := exchange(t, s, c.network, m)
		require.Equal(t, c.truncated, r.Truncated, "%+v", c)
		r.Compress = true
		packed, err := r.Pack()
		require.NoError(t, err)
		require.LessOrEqual(t, len(packed), c.most, "%+v", c)
		if !c.truncated {
			require.Len(t, r.Answer, 201)
		} else {
			require.Greater(t, len(packed), c.most-40, "%+v: room is left", c)
		}
	}
}

// Messages that are no questions: other operations are not implemented, and what is malformed gets FORMERR or nothing
// at all. The server goes on to answer.
func TestNoQuestions(t *testing.T) {
	s := listen(t, newZone(t), filled(t))
	for _, opcode := range []int{msg.OpcodeNotify, msg.OpcodeUpdate, msg.OpcodeStatus} {
		m := query("storage.test.", msg.TypeSOA)
		m.Opcode = opcode
		require.Equal(t, msg.RcodeNotImplemented, exchange(t, s, "udp", m).Rcode, opcode)
	}
	m := query("storage.test.", msg.TypeSOA)
	m.Question = append(m.Question, m.Question[0])
	require.Equal(t, msg.RcodeFormatError, exchange(t, s, "udp", m).Rcode)

	conn, err := net.Dial("udp", s.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	for _, junk := range []string{"", "x", strings.Repeat("\xff", 500), "\x00\x01\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01"} {
		_, err := conn.Write([]byte(junk))
		require.NoError(t, err)
	}
	require.Len(t, exchange(t, s, "udp", query("storage.test.", msg.TypeSOA)).Answer, 1)
}

// One connection takes many questions, and one connection above the limit is closed without harm to the others.
func TestConnectionsAreBounded(t *testing.T) {
	s := listen(t, newZone(t), filled(t))
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range connsMax {
		c, err := net.Dial("tcp", s.Addr().String())
		require.NoError(t, err)
		conns = append(conns, c)
	}
	one := &msg.Conn{Conn: conns[0]}
	for range 10 {
		require.NoError(t, one.WriteMsg(query("storage.test.", msg.TypeSOA)))
		_, err := one.ReadMsg()
		require.NoError(t, err)
	}
	// The last of those that were dialled may still wait to be accepted.
	last := &msg.Conn{Conn: conns[connsMax-1]}
	require.NoError(t, last.WriteMsg(query("storage.test.", msg.TypeSOA)))
	_, err := last.ReadMsg()
	require.NoError(t, err)
	more, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	defer func() { _ = more.Close() }()
	require.NoError(t, more.SetDeadline(time.Now().Add(time.Minute)))
	_, err = more.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, net.ErrClosed)
	var timeout net.Error
	require.False(t, isTimeout(err, &timeout), "it was kept open")
}

// deadlines is a connection that remembers its deadline when it was written to.
type deadlines struct {
	net.Conn
	next, at time.Time
}

func (c *deadlines) SetWriteDeadline(t time.Time) error { c.next = t; return nil }

func (c *deadlines) Write(b []byte) (int, error) { c.at = c.next; return len(b), nil }

// A client that asks over TCP and never reads keeps its connection for no longer than an answer may take: each has a deadline.
func TestAnswersHaveADeadline(t *testing.T) {
	began := time.Now()
	to := &deadlines{}
	_, err := (&boundedConn{Conn: to}).Write([]byte("answer"))
	require.NoError(t, err)
	require.False(t, to.at.Before(began.Add(readMax)))
	require.False(t, to.at.After(time.Now().Add(readMax)))
}

func isTimeout(err error, as *net.Error) bool {
	n, ok := err.(net.Error) //nolint:errorlint // Of this connection alone.
	*as = n
	return ok && n.Timeout()
}

// Many ask while a move is merged: each answer is of one moment, before or after it.
func TestAnswersWhileMerging(t *testing.T) {
	v := filled(t)
	s := listen(t, newZone(t), v)
	var asked sync.WaitGroup
	for range 4 {
		asked.Go(func() {
			c := &msg.Client{Net: "udp", Timeout: time.Minute}
			for range 100 {
				r, _, err := c.Exchange(query("_epoch.pictures.blob.storage.test.", msg.TypeTXT), s.Addr().String())
				if err != nil || len(r.Answer) != 1 {
					t.Errorf("%v: %v", err, r)
					return
				}
				text, err := ParseText(r.Answer[0].(*msg.TXT).Txt[0])
				if err != nil || text.Location != text.Epoch.Location {
					t.Errorf("%v: %+v", err, text)
				}
			}
		})
	}
	for n := range geo.EpochNumber(50) {
		l := []geo.Location{north, south}[n%2]
		require.NoError(t, v.Merge(l, []Entry{in("pictures", 4+n, l, "RA-GRS")}))
	}
	asked.Wait()
}

// dig, a resolver's tool that shares nothing with the library here, sees the same. It is skipped without dig.
func TestDig(t *testing.T) {
	if _, err := exec.LookPath("dig"); err != nil {
		t.Skip("dig is not installed: Debian has it in bind9-dnsutils")
	}
	s := listen(t, newZone(t), filled(t))
	host, port, err := net.SplitHostPort(s.Addr().String())
	require.NoError(t, err)
	dig := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "dig", append([]string{"@" + host, "-p", port, "+tries=1", "+time=60"}, args...)...).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	for _, transport := range []string{"+notcp", "+tcp"} {
		require.Equal(t, "blob.north.store.storage.test.\n192.0.2.1\n192.0.2.2\n", dig(transport, "+short", "pictures.blob.storage.test"))
		require.Equal(t, "\"v=antipode1 epoch=3@north location=north role=primary secondary=south\"\n", dig(transport, "+short", "TXT", "_epoch.pictures.blob.storage.test"))
		out := dig(transport, "nobody.blob.storage.test")
		require.Contains(t, out, "status: NXDOMAIN")
		require.Contains(t, out, "flags: qr aa rd;")
		require.NotContains(t, strings.ToLower(out), "malformed")
		require.Contains(t, dig(transport, "example.org"), "status: REFUSED")
	}
}

// The port is taken: the error names it.
func TestPortIsTaken(t *testing.T) {
	s := listen(t, newZone(t), filled(t))
	_, err := Listen(ServerOptions{Addr: s.Addr().String(), Zone: newZone(t), View: filled(t), Observer: counts{}, Logger: quiet})
	require.ErrorContains(t, err, fmt.Sprintf("cannot listen on %s (TCP)", s.Addr()))
}
