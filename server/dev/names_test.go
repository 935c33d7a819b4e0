package dev

import (
	"log/slog"
	"testing"
	"time"

	msg "github.com/miekg/dns"
	"github.com/stretchr/testify/require"
)

// The name server of a cluster answers with the account's location once its creation has ended, over UDP and TCP, while
// one location is stopped, and after a restart before either runs.
func TestNameServer(t *testing.T) {
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
