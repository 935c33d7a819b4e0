package catalog

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

const goldenLocationPath = "testdata/location.golden"

func goldenLocation() *LocationMove {
	return &LocationMove{
		From: "northcentralus", To: "southcentralus", Unplanned: true, WithoutWitness: true, Phase: LocationOver, Begun: 0x1122334455667788,
		Over: 0x1122334455667799, Within: 30 * time.Second, Round: 2, After: "pictures", RefusedCount: 1,
		Refused: []LocationRefused{{"music", "it is busy"}}, Reason: "an operator ended it",
	}
}

// R19: the row of the failover of a location never changes: that written today equals the golden file, which still reads.
func TestR19RowOfALocation(t *testing.T) {
	op, err := LocationMoveOp(goldenLocation())
	require.NoError(t, err)
	require.Empty(t, op.Row)
	if *rewrite {
		require.NoError(t, os.WriteFile(goldenLocationPath, append(op.Value, '\n'), 0o644))
	}
	want, err := os.ReadFile(goldenLocationPath)
	require.NoError(t, err)
	require.Equal(t, string(want), string(op.Value)+"\n")
	m, err := parseLocationMove(want)
	require.NoError(t, err)
	m.Version = 0
	require.Equal(t, goldenLocation(), m)
	for _, bad := range []string{"", "[]", `{"v":2}`} {
		_, err := parseLocationMove([]byte(bad))
		require.Error(t, err, bad)
	}

	// A row of a later version has how it ended. One without it is read as above.
	ended := goldenLocation()
	ended.Ended = &LocationMoveEnded{Waiting: 1, Moved: 9, Alone: 2}
	op, err = LocationMoveOp(ended)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(string(want), "}\n")+`,"ended":{"waiting":1,"moved":9,"alone":2}}`, string(op.Value))
	m, err = parseLocationMove(op.Value)
	require.NoError(t, err)
	require.Equal(t, ended, m)
	require.False(t, LocationPartition().Account.Valid(), "no account has its partition")
}

// The accounts that a row names are bounded; it counts all.
func TestLocationRefusedIsBounded(t *testing.T) {
	m := &LocationMove{}
	for i := range LocationRefusedMax + 5 {
		m.Refuse(geo.Account(fmt.Sprint("acct", i)), "busy")
	}
	require.Len(t, m.Refused, LocationRefusedMax)
	require.Equal(t, LocationRefusedMax+5, m.RefusedCount)
}
