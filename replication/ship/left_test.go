package ship

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/stamptest"
)

// leave has an account leave its epoch here: it gets a later one, without numbers, and what the outbox has of the
// former one is dropped. The other location does not know.
type leave struct{ account geo.Account }

func (c leave) Evaluate(tx *ranges.Tx) error {
	tx.SetGate(c.account, change.Gate{Epoch: geo.Epoch{Number: 2, Location: "north"}, Role: change.RolePrimary, Open: true})
	_, err := tx.DropStreams(c.account)
	return err
}

// Records that an account's change to LRS, or a rebuild, drops from the outbox are never promised (R12, R13): as
// TestR12Honest, while accounts leave their epoch one after the other. Until the secondary knows of the new epoch it
// shows what closed records say of the former one.
func TestR13LeftHonest(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(13, 5))
	w := newWorld(t, Options{})
	var accounts []geo.Account
	var parts []keys.Partition
	for i := range 12 {
		accounts = append(accounts, geo.Account(fmt.Sprint("acct", i)))
		parts = append(parts, lanes(accounts[i])[:3]...)
	}
	w.gates(accounts...)
	h := history{}
	for i := range 48 {
		w.open(Options{Bounds: Bounds{
			FrameBytesMax: 300 + rng.IntN(4000), QueueBytesMax: 2000 + rng.IntN(8000), AheadBytesMax: 1 + rng.IntN(8000),
			FlyingMax: 1 + rng.IntN(5), PushesMax: 1 + rng.IntN(3), FullBytesMax: 100 + rng.IntN(3000),
		}})
		for n := range 40 {
			if w.play(rng, h, parts); n == 20 && i%4 == 3 {
				stamptest.Submit(t, w.stamp, geo.FirstRange(geo.Table), leave{accounts[i/4]})
			}
		}
	}
	missing := 0
	for st, times := range h {
		missing += len(times) - int(w.receiver.Applied(st).Seq)
	}
	require.Greater(t, missing, 100)
}
