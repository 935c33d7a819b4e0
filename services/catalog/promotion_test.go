package catalog

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/stamp/change"
)

const goldenPromotionPath = "testdata/promotion.golden"

func goldenPromotion() *Promotion {
	return &Promotion{
		Number: 3, Location: "northcentralus", Phase: PromotionThawing, Turn: 1, Begun: 0x1122334455667788,
		Until: 0x1122334455667799, Reason: "an operator ended it",
	}
}

func goldenClaim() *Promotion {
	p := goldenPromotion()
	p.Phase, p.Reason, p.Claim, p.Unwitnessed = PromotionApplying, "", 4, true
	return p
}

func goldenFork() *Fork {
	return &Fork{
		Number: 3, Location: "northcentralus", Range: 4, Closed: 40, Start: []byte{4}, End: []byte{5}, Descriptor: 1,
		Streams: []ForkStream{{Lane: 2, Seq: 7, Hash: 0x1122334455667788, Behind: 9, Sync: 30}, {Lane: 9, Seq: 1, Hash: 2, Stopped: change.StopForked}},
	}
}

// R20: the rows of an unplanned failover never change: those written today equal the golden file, which still reads.
func TestR20RowsOfAPromotion(t *testing.T) {
	promotion, err := PromotionOp(goldenPromotion())
	require.NoError(t, err)
	fork, err := ForkOp(*goldenFork())
	require.NoError(t, err)
	require.Equal(t, "promotion", string(promotion.Row))
	require.Equal(t, "fork/4", string(fork.Row))
	claim, err := PromotionOp(goldenClaim())
	require.NoError(t, err)
	got := string(promotion.Value) + "\n" + string(fork.Value) + "\n" + string(claim.Value) + "\n"
	if *rewrite {
		require.NoError(t, os.WriteFile(goldenPromotionPath, []byte(got), 0o644))
	}
	want, err := os.ReadFile(goldenPromotionPath)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
	lines := strings.Split(strings.TrimSpace(string(want)), "\n")
	p, err := parsePromotion([]byte(lines[0]))
	require.NoError(t, err)
	p.Version = 0
	require.Equal(t, goldenPromotion(), p)
	f, err := ParseFork([]byte(lines[1]))
	require.NoError(t, err)
	f.Version = 0
	require.Equal(t, goldenFork(), f)

	p, err = parsePromotion([]byte(lines[2]))
	require.NoError(t, err)
	p.Version = 0
	require.Equal(t, goldenClaim(), p)

	deleted, err := PromotionOp(nil)
	require.NoError(t, err)
	require.True(t, deleted.Delete)
	_, err = parsePromotion([]byte(`{"v":2}`))
	require.ErrorContains(t, err, "version 2")
	for _, bad := range []string{`{"v":2}`, `{`, `{"v":1,"streams":[{"lane":32}]}`, `{"v":1,"streams":[{"lane":2},{"lane":2}]}`} {
		_, err = ParseFork([]byte(bad))
		require.Error(t, err, bad)
	}
}

// R20: which operations of the primary leave the copy whole, so that it may become the primary.
func TestR20Promotable(t *testing.T) {
	for kind, want := range map[OperationKind]bool{
		OperationAnnounce: false, OperationLeave: false, OperationBootstrap: false, OperationMove: true, OperationTaken: true,
	} {
		require.Equal(t, want, (&Account{Operation: &Operation{Kind: kind}}).Promotable(), kind)
	}
	require.True(t, (&Account{}).Promotable())
	require.True(t, (&Account{Operation: &Operation{Kind: OperationBootstrap, Whole: true}}).Promotable())
}
