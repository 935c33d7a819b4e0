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

// matrixShare: without -matrix one of so many cells is played, which takes some 20 s at rest.
const matrixShare = 17

var matrix = flag.Bool("matrix", false, "play every step of each failover with each of what befalls it there")

// ask is what an operator asks of a directory.
type ask func(ctx context.Context, d *directory.Directory, a geo.Account) error

// failoverStory is a failover that is played under load, and once more for each of its durable steps and each of what may
// befall it there.
type failoverStory struct {
	// before is what happens first, nil for nothing.
	before func(c *scenario)
	begin  ask
	// end ends it. It is asked for at the step endAt; at none where that is empty.
	end   ask
	endAt string
	// unplanned: it is asked for at the secondary, and may lose writes. witnessed: there is a witness.
	unplanned, witnessed bool
	// lease is how long its leases live, zero for as long as those of scenario files.
	lease time.Duration
}

var failoverStories = map[string]failoverStory{
	"planned":  {begin: asksForMove, end: asksForItsEnd},
	"ended":    {begin: asksForMove, end: asksForItsEnd, endAt: movePrefix + string(catalog.MoveClosing)},
	"promoted": {begin: asksForPromotion, end: asksForTheThaw, unplanned: true},
	"thawed": {
		begin: asksForPromotion, end: asksForTheThaw, endAt: promotionPrefix + string(catalog.PromotionFreezing), unplanned: true,
	},
	"moved beside a witness":   {begin: asksForMove, end: asksForItsEnd, witnessed: true},
	"witnessed":                {begin: asksForPromotion, end: asksForTheThaw, unplanned: true, witnessed: true},
	"witnessed, primary dead":  {before: primaryDies, begin: asksForPromotion, end: asksForTheThaw, unplanned: true, witnessed: true},
	"witnessed, primary apart": {before: primaryApart, begin: asksForPromotion, end: asksForTheThaw, unplanned: true, witnessed: true},
	"witnessed, primary alone": {before: primaryAlone, begin: asksForPromotion, end: asksForTheThaw, unplanned: true, witnessed: true},
	"witnessed, thawed": {
		begin: asksForPromotion, end: asksForTheThaw, endAt: promotionPrefix + string(catalog.PromotionFreezing), unplanned: true, witnessed: true,
	},
	"witness away": {before: witnessAway, begin: asksForPromotion, end: asksForTheThaw, unplanned: true, witnessed: true},
}

func asksForMove(ctx context.Context, d *directory.Directory, a geo.Account) error {
	_, err := d.Mover().Move(ctx, a, 4*time.Second)
	return err
}

func asksForItsEnd(ctx context.Context, d *directory.Directory, a geo.Account) error {
	_, err := d.Mover().EndMove(ctx, a)
	return err
}

func asksForPromotion(ctx context.Context, d *directory.Directory, a geo.Account) error {
	_, err := d.Promoter().Promote(ctx, a)
	return err
}

func asksForTheThaw(ctx context.Context, d *directory.Directory, a geo.Account) error {
	_, err := d.Promoter().EndPromotion(ctx, a)
	return err
}

// primaryDies has all nodes of the primary down for longer than a lease lives.
func primaryDies(c *scenario) { c.outage(c.home, 2500*time.Millisecond) }

// primaryApart cuts the locations off from each other for longer than a lease lives. Both reach the witness.
func primaryApart(c *scenario) { c.cutFor(true, true, 2500*time.Millisecond) }

// primaryAlone is primaryApart, and the primary does not reach the witness either: its lease ends.
func primaryAlone(c *scenario) {
	primaryApart(c)
	c.third.cutOff(2500*time.Millisecond, c.home.name)
}

// witnessAway has the secondary not reach the witness until the promotion has ended by itself.
func witnessAway(c *scenario) {
	c.promotionTimes.Within = time.Second
	c.third.cutOff(2500*time.Millisecond, c.far.name)
	for _, m := range c.far.members {
		m.desk.directory.Promoter().SetTimes(c.promotionTimes)
	}
}

// asks has an operator ask at a location until that answers.
func (c *scenario) asks(l *location, what ask) {
	c.asksOnce(context.Background(), l, what, func() { c.after(operatorPause, func() { c.asks(l, what) }) })
}

// asksOnce has an operator ask at a location; nobody is called if it cannot be asked now.
func (c *scenario) asksOnce(ctx context.Context, l *location, what ask, nobody func()) {
	m := l.newest(geo.FirstRange(geo.Catalog))
	if m == nil || m.stands() || m.killed != nil {
		nobody()
		return
	}
	m.begin(func() { c.event("asked: %v", what(ctx, m.desk.directory, c.account.name)) })
}

// cli asks as a command line does that is killed once its command is sent, and then is given again: twice at once.
func (c *scenario) cli(l *location, what ask) {
	ctx, cancel := context.WithCancel(context.Background())
	c.after(0, func() {
		c.asksOnce(ctx, l, what, func() {})
		c.after(0, cancel)
	})
	for range 2 {
		c.after(operatorPause, func() { c.asks(l, what) })
	}
}

// befallings are what may befall a failover at one of its steps, in the moment in which that is committed, before it is
// answered.
var befallings = map[string]func(c *scenario, f failoverStory){
	"north":   func(c *scenario, _ failoverStory) { c.locations[0].loses() },
	"south":   func(c *scenario, _ failoverStory) { c.locations[1].loses() },
	"witness": func(c *scenario, _ failoverStory) { c.third.die() },
	"again":   func(c *scenario, f failoverStory) { c.cli(c.operatorAt(f), f.begin) },
	"end": func(c *scenario, f failoverStory) {
		at := c.operatorAt(f)
		c.cli(at, f.end)
		c.after(time.Second, func() { c.asks(at, f.begin) })
	},
}

// befallings of a story: without a witness that cannot die.
func (f failoverStory) befallings() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(befallings)) {
		if f.witnessed || name != "witness" {
			out = append(out, name)
		}
	}
	return out
}

// play plays a story to its end, with what befalls it at a step, empty for nothing. It returns the steps of the story.
func (f failoverStory) play(t *testing.T, at, befalls string) (steps []string) {
	c, steps, befell := f.run(t, at, befalls)
	require.NoError(t, c.err)
	require.Greater(t, c.counts.Acked, uint64(20))
	require.Equal(t, befalls != "", befell, "the step %q", at)
	if !f.unplanned {
		require.Zero(t, c.counts.PromotionLost)
	}
	return steps
}

// run runs a story under load. befell reports whether the step came.
func (f failoverStory) run(t *testing.T, at, befalls string) (c *scenario, steps []string, befell bool) {
	c = &scenario{t: t, lease: f.lease}
	defer c.end()
	args := []datadriven.CmdArg{{Key: "moves"}}
	if f.witnessed {
		args = append(args, datadriven.CmdArg{Key: "witness"})
	}
	c.open(&datadriven.TestData{CmdArgs: args})
	c.onStep = func(_ *location, step string) {
		if slices.Contains(steps, step) {
			return
		}
		steps = append(steps, step)
		if step == f.endAt {
			c.after(0, func() { c.asks(c.operatorAt(f), f.end) })
		}
		if step == at && befalls != "" {
			befell = true
			befallings[befalls](c, f)
		}
	}
	c.workEnd = c.now + 2*time.Second
	c.startWorkload()
	c.runFor(300 * time.Millisecond)
	if f.before != nil {
		f.before(c)
	}
	c.asks(c.operatorAt(f), f.begin)
	c.runFor(4 * time.Second)
	c.heal()
	c.mend()
	c.drain()
	c.checkEnd()
	return c, steps, befell
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

// R19, R20, R21: each durable step of a failover, those of the witness included, x the loss of either location, or of the
// witness, in the moment of its commit, before the answer; and x an operator whose command line is killed once the command is
// sent and who gives it again, twice at once: the command itself, or that for its end, after which it begins again. Every
// promise holds, and both locations come to rest. The steps are those that the stories show; a phase of the state machine that
// none of them shows fails the test.
//
// Capability: Proofs: Each durable step of a failover x what may befall it in that moment (R19, R20, R21).
func TestR19FailoverMatrix(t *testing.T) {
	if testing.Short() {
		t.Skip("some twenty runs, which take minutes under the race detector")
	}
	shown, cell := map[string]bool{}, 0
	for _, name := range slices.Sorted(maps.Keys(failoverStories)) {
		f := failoverStories[name]
		for _, step := range f.play(t, "", "") {
			shown[step] = true
			for _, befalls := range f.befallings() {
				if cell++; !*matrix && cell%matrixShare != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", name, step, befalls), func(t *testing.T) { f.play(t, step, befalls) })
			}
		}
	}
	for _, phase := range phases(t, "../services/catalog/move.go", "MovePhase") {
		require.True(t, shown[movePrefix+phase], "no story shows the phase %q of a move", phase)
	}
	for _, phase := range phases(t, "../services/catalog/promotion.go", "PromotionPhase") {
		require.True(t, shown[promotionPrefix+phase], "no story shows the phase %q of a promotion", phase)
	}
	for _, step := range [...]string{thirdWriting, thirdRenamed, thirdWritten} {
		require.True(t, shown[thirdPrefix+"claim"+step] && shown[thirdPrefix+"withdraw"+step], "%s: %v", step, shown)
	}
	fmt.Printf("failover matrix: %d stories, %d cells\n", len(failoverStories), cell)
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
