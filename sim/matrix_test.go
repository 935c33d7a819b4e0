package sim

import (
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
	"antipode/services/catalog"
)

// matrixShare: without -matrix one of so many cells is played, which takes some 10 s at rest.
const matrixShare = 3

var matrix = flag.Bool("matrix", false, "play every step of each failover with the loss of each location")

// failoverStory is a failover that is played under load, and once more for each of its durable steps and each location.
type failoverStory struct {
	begin func(d *directory.Directory, a geo.Account) error
	// end is asked for at the step endAt; empty for a failover that nobody ends.
	end   func(d *directory.Directory, a geo.Account) error
	endAt string
	// unplanned: it is asked for at the secondary, and may lose writes.
	unplanned bool
}

var failoverStories = map[string]failoverStory{
	"planned":  {begin: asksForMove},
	"ended":    {begin: asksForMove, end: asksForItsEnd, endAt: movePrefix + string(catalog.MoveClosing)},
	"promoted": {begin: asksForPromotion, unplanned: true},
	"thawed": {
		begin: asksForPromotion, end: asksForTheThaw, endAt: promotionPrefix + string(catalog.PromotionFreezing), unplanned: true,
	},
}

func asksForMove(d *directory.Directory, a geo.Account) error {
	_, err := d.Move(context.Background(), a, 4*time.Second)
	return err
}

func asksForItsEnd(d *directory.Directory, a geo.Account) error {
	_, err := d.EndMove(context.Background(), a)
	return err
}

func asksForPromotion(d *directory.Directory, a geo.Account) error {
	_, err := d.Promote(context.Background(), a)
	return err
}

func asksForTheThaw(d *directory.Directory, a geo.Account) error {
	_, err := d.EndPromotion(context.Background(), a)
	return err
}

// asks has an operator ask at a location until that answers.
func (c *scenario) asks(l *location, what func(d *directory.Directory, a geo.Account) error) {
	m := l.newest(geo.FirstRange(geo.Catalog))
	if m == nil || m.still() {
		c.after(operatorPause, func() { c.asks(l, what) })
		return
	}
	m.begin(func() { c.event("asked: %v", what(m.desk.directory, c.account.name)) })
}

// play plays a story under load to its end, in which all nodes of a location lose their power in the moment in which a
// step is committed, before it is answered; an empty step for none. It returns the steps of the story.
func (f failoverStory) play(t *testing.T, at string, loser geo.Location) (steps []string) {
	c, lost := &scenario{t: t}, false
	defer c.end()
	c.open(&datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "moves"}}})
	c.onStep = func(_ *location, step string) {
		if slices.Contains(steps, step) {
			return
		}
		steps = append(steps, step)
		if step == f.endAt {
			c.after(0, func() { c.asks(c.operatorAt(f), f.end) })
		}
		for _, l := range c.locations {
			if step == at && l.name == loser {
				lost = true
				l.loses()
			}
		}
	}
	c.workEnd = c.now + 2*time.Second
	c.startWorkload()
	c.runFor(300 * time.Millisecond)
	c.asks(c.operatorAt(f), f.begin)
	c.runFor(4 * time.Second)
	c.heal()
	c.mend()
	c.drain()
	c.checkEnd()
	require.NoError(t, c.err)
	require.Greater(t, c.counts.Acked, uint64(20))
	require.Equal(t, loser != "", lost, "the step %q", at)
	if !f.unplanned {
		require.Zero(t, c.counts.PromotionLost)
	}
	return steps
}

// operatorAt is where a story is asked for.
func (c *scenario) operatorAt(f failoverStory) *location {
	if f.unplanned {
		return c.far
	}
	return c.home
}

// loses takes the power of all nodes in the middle of what they do.
func (l *location) loses() {
	l.s.event("%s loses its power", l.name)
	for _, m := range l.members {
		if m.n != nil && m.killed == nil {
			m.killed = m.crashed()
		}
	}
}

// R19, R20: each durable step of a failover x the loss of either location in the moment of its commit, before the answer:
// every promise holds, and both locations come to rest. The steps are those that the stories show; a phase of the state
// machine that none of them shows fails the test.
func TestR19FailoverMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("some twenty runs, which take minutes under the race detector")
	}
	shown, cell := map[string]bool{}, 0
	for _, name := range slices.Sorted(maps.Keys(failoverStories)) {
		f := failoverStories[name]
		for _, step := range f.play(t, "", "") {
			shown[step] = true
			for _, loser := range [...]geo.Location{north, south} {
				if cell++; !*matrix && cell%matrixShare != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", name, step, loser), func(t *testing.T) { f.play(t, step, loser) })
			}
		}
	}
	for _, phase := range phases(t, "../services/catalog/move.go", "MovePhase") {
		require.True(t, shown[movePrefix+phase], "no story shows the phase %q of a move", phase)
	}
	for _, phase := range phases(t, "../services/catalog/promotion.go", "PromotionPhase") {
		if phase != string(catalog.PromotionClaiming) && phase != string(catalog.PromotionWithdrawing) { // They need a witness.
			require.True(t, shown[promotionPrefix+phase], "no story shows the phase %q of a promotion", phase)
		}
	}
	require.True(t, shown[stepTaken] && shown[stepFollowed] && shown[stepOver], "%v", shown)
}

// phases are the constants of a type in a file.
func phases(t *testing.T, path, of string) (out []string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typed, ok := v.Type.(*ast.Ident); ok && typed.Name == of {
			value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			out = append(out, value)
		}
		return true
	})
	require.Greater(t, len(out), 2, "phases of %s", of)
	return out
}
