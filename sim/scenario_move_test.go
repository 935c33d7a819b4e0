package sim

import (
	"context"
	"fmt"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/directory"
	"antipode/geo"
)

// follow takes the account's locations as they are now.
func (c *scenario) follow() { c.home, c.far = c.account.home, c.account.home.far }

// move asks for a planned move of the account, and prints the answer. It lets no more time pass than that takes.
func (c *scenario) move(d *datadriven.TestData) string {
	within := "10s"
	d.MaybeScanArgs(c.t, "within", &within)
	return c.operator(c.home, func(of *directory.Directory) error {
		_, err := of.Mover().Move(context.Background(), c.account.name, c.duration(within))
		return err
	})
}

// operator has an operator ask for something at a location, and prints the answer. It lets no more time pass than that takes.
func (c *scenario) operator(l *location, ask func(*directory.Directory) error) string {
	m := l.newest(geo.FirstRange(geo.Catalog))
	require.NotNil(c.t, m, "nobody leads")
	out := ""
	m.begin(func() {
		if err := ask(m.desk.directory); err != nil {
			out = fmt.Sprintf("refused: %v\n", err)
			return
		}
		out = "asked\n"
	})
	require.True(c.t, c.runUntil(answerMax, func() bool { return out != "" }))
	return out
}

// promote asks for an unplanned failover of the account.
func (c *scenario) promote(*datadriven.TestData) string {
	return c.operator(c.far, func(d *directory.Directory) error {
		_, err := d.Promoter().Promote(context.Background(), c.account.name)
		return err
	})
}

// cancel asks for the end of an unplanned failover.
func (c *scenario) cancel(*datadriven.TestData) string {
	return c.operator(c.far, func(d *directory.Directory) error {
		ok, err := d.Promoter().EndPromotion(context.Background(), c.account.name)
		require.True(c.t, ok || err != nil)
		return err
	})
}

// rebuild asks for the copy to be made again.
func (c *scenario) rebuild(*datadriven.TestData) string {
	return c.operator(c.home, func(d *directory.Directory) error {
		_, _, err := d.Rebuild(context.Background(), c.account.name, nil)
		return err
	})
}

// moving is what the view shows of a move: where the primary is, and how far a move is.
func (c *scenario) moving() string {
	if c.moves == nil {
		return ""
	}
	if p := c.far.promotion(c.account.name); p != nil {
		return fmt.Sprintf(" | %s is the primary in epoch %d: at %s, %s", c.home.name, c.account.record.Epoch, c.far.name, p.Describe())
	}
	rec := c.account.record
	if rec.Operation == nil {
		return fmt.Sprintf(" | %s is the primary in epoch %d", c.home.name, rec.Epoch)
	}
	return fmt.Sprintf(" | %s is the primary in epoch %d: %s", c.home.name, rec.Epoch, rec.Operation.Describe())
}
