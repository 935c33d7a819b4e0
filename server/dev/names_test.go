package dev

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	msg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"

	"antipode/failover/dns"
)

// The name server of a cluster answers with the account's location once its creation has ended, over UDP and TCP, while
// one location is stopped, and after a restart before either runs.
//
// Capability: Names: A name server of accounts.
func TestNameServer(t *testing.T) {
	t.Parallel()
	o := ClusterOptions{
		Dir: t.TempDir(), Host: "127.0.0.1", PortBase: freeBase(t), DNSZone: "antipode.test", Tick: testTick, Logger: slog.New(slog.DiscardHandler),
	}
	c, err := Open(o)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	ask := func(network, name string) string {
		m := new(msg.Msg)
		r, _, err := (&msg.Client{Net: network, Timeout: time.Minute}).Exchange(m.SetQuestion(name+".antipode.test.", msg.TypeCNAME), c.NameServer())
		require.NoError(t, err)
		if len(r.Answer) == 0 {
			return msg.RcodeToString[r.Rcode]
		}
		return r.Answer[0].(*msg.CNAME).Target
	}
	require.Equal(t, "SERVFAIL", ask("udp", "acct.blob"), "nothing is known, and nothing denied")
	require.NoError(t, c.Start(t.Context()))
	require.NoError(t, c.EnsureAccount(t.Context(), North, "acct", key64, key64))
	const want = "blob.northcentralus.store.antipode.test."
	require.Eventually(t, func() bool { return ask("udp", "acct.blob") == want }, time.Minute, 10*time.Millisecond)
	require.Equal(t, want, ask("tcp", "acct.blob"))
	require.Equal(t, "blob.southcentralus.store.antipode.test.", ask("udp", "acct-secondary.blob"))
	require.Equal(t, "NXDOMAIN", ask("udp", "nobody.blob"))

	require.NoError(t, c.servers[North].Stop())
	require.Equal(t, want, ask("udp", "acct.blob"))
	require.NoError(t, c.Close())

	c, err = Open(o)
	require.NoError(t, err)
	require.Equal(t, want, ask("udp", "acct.blob"))
}

// Names follow a planned failover, and the one back: each answer has the epoch of the last one or a higher one (R19).
//
// Capability: Two locations: Clients of a gateway leave a former primary that does not know it (R20).
// Capability: Names: A name server of accounts.
func TestNameServerFollowsAFailover(t *testing.T) {
	t.Parallel()
	c := startWith(t, ClusterOptions{DNSZone: "antipode.test"})
	ask := func(name string) *msg.Msg {
		m := new(msg.Msg)
		r, _, err := (&msg.Client{Timeout: time.Minute}).Exchange(m.SetQuestion("_epoch."+name+".blob.antipode.test.", msg.TypeTXT), c.NameServer())
		require.NoError(t, err)
		return r
	}
	text := func(name string) dns.Text {
		r := ask(name)
		require.Len(t, r.Answer, 1, r.String())
		out, err := dns.ParseText(strings.Join(r.Answer[0].(*msg.TXT).Txt, ""))
		require.NoError(t, err)
		return out
	}
	eventually(t, "the name server knows the account", func() bool { return len(ask("northacct").Answer) == 1 })
	last := text("northacct").Epoch
	for from, to := North, South; last.Number < 3; from, to = to, from {
		require.Equal(t, from, last.Location)
		require.Equal(t, to, text("northacct-secondary").Location)
		moveTo(t, c, "northacct", from, to)
		eventually(t, "the names lead to the new primary", func() bool {
			now := text("northacct")
			require.GreaterOrEqual(t, now.Epoch.Compare(last), 0, "%s after %s", now.Epoch, last)
			last = now.Epoch
			return now.Location == to
		})
		require.Equal(t, from, text("northacct-secondary").Location)
		_, err := c.WaitLive(t.Context(), "northacct")
		require.NoError(t, err)
	}
}
