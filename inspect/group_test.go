package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
)

// A wipe names what it deletes: the generation, or the account, that its span is in (table).
func TestDescribeWipe(t *testing.T) {
	generation := keys.AppendContainer(nil, geo.Table, "acct", "people", keys.Generation{Epoch: 3, Created: 17_000_000_000_000_000})
	account := keys.AppendAccount(nil, geo.Table, "acct")
	for _, c := range []struct {
		lower, upper []byte
		want         string
	}{
		{generation, keys.PrefixEnd(generation), "wipe  of table acct/people@3.2023-11-14T22:13:20.0000000Z"},
		{account, keys.PrefixEnd(account), "wipe  of table acct"},
		{[]byte{1}, []byte{2}, "wipe  01 up to 02"},
	} {
		var b change.Builder
		b.Wipe(c.lower, c.upper)
		g, err := change.ParseGroup(b.Finish(change.GroupID{}, change.GroupID{}, 0))
		require.NoError(t, err)
		require.NoError(t, g.Parts(func(kind change.PartKind, body []byte) error {
			p, err := describePart(kind, body)
			require.Equal(t, c.want, p.Text())
			return err
		}))
	}
}
