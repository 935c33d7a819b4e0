package check

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/client/admin"
)

// Errors that servers pass on are one line in plain words, however many errors, calls and libraries they come through.
func TestErrorsAreInPlainWords(t *testing.T) {
	for raw, want := range map[string]string{
		"refused": "refused",
		"directory.Adopt: link between the locations is cut\nits claim waits: witness: dial tcp 127.0.0.1:9: refused\n": "link between the locations is cut; its claim waits: witness: dial tcp 127.0.0.1:9: refused",
		"link.Acknowledge: north: link.Acknowledge: no node takes it: 127.0.0.1:7: refused":                             "north: no node takes it: 127.0.0.1:7: refused",
		"north: directory.Announce at 127.0.0.1:7: no answer in time; it may have happened: EOF":                        "north: at 127.0.0.1:7: no answer in time; it may have happened: EOF",
		"admin.flow: stamp.survey: confirm.Epochs: refused":                                                             "refused",
		"see docs/admin.md: it has more":                                                                                     "see docs/admin.md: it has more",
		"transport: authentication handshake failed: context deadline exceeded":                                              "transport: no answer in time",
		"node 2: context deadline exceeded":                                                                                  "node 2: no answer in time",
		"ServerBusy: The server is currently unable to receive requests. Please retry your request.":                         "it is busy, and is asked again",
		"ServerBusy: the account has changes that have not arrived":                                                          "the account has changes that have not arrived",
		"rpc error: code = Unavailable desc = connection error: desc = \"transport: Error\n\twhile dialing: refused\"; gone": "refused; gone",
	} {
		require.Equal(t, want, OneLine(raw), raw)
	}
	s := well()
	s.Accounts[1].Operation, s.Accounts[1].OperationWaits = "a failover", "directory.Adopt: it is cut\nits claim waits"
	require.Equal(t, "account acct1 cannot go on with a failover: it is cut; its claim waits", Status(s)[0].What)
	l := admin.Location{Name: "north", Nodes: s.Locations[0].Nodes, Epochs: &admin.Epochs{Witness: true, Waiting: "context deadline exceeded"}}
	require.Equal(t, "the witness does not answer north (no answer in time)", SilentWitness(l))
}

// A number of things has the word for one where it is one, and the verb goes with it.
func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 accounts are": Count(0, "account") + " " + Are(0), "1 account is": Count(1, "account") + " " + Are(1), "2 accounts are": Count(uint64(2), "account") + " " + Are(2),
		"1 entry": Count(1, "entry"), "3 entries": Count(int64(3), "entry"), "2 keys": Count(2, "key"),
	} {
		require.Equal(t, want, got)
	}
}
