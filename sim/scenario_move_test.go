package sim

import (
	"context"
	"fmt"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// follow takes the account's locations as they are now.
func (c *scenario) follow() { c.home, c.far = c.account.home, c.account.home.far }

// move asks for a planned move of the account, and prints the answer. It lets no more time pass than that takes.
func (c *scenario) move(d *datadriven.TestData) string {
	within := "10s"
	d.MaybeScanArgs(c.t, "within", &within)
	m := c.home.newest(geo.FirstRange(geo.Catalog))
	require.NotNil(c.t, m, "nobody leads")
	out := ""
	m.begin(func() {
		_, err := m.desk.directory.Move(context.Background(), c.account.name, c.duration(within))
		out = "asked\n"
		if err != nil {
			out = fmt.Sprintf("refused: %v\n", err)
		}
	})
	require.True(c.t, c.runUntil(answerMax, func() bool { return out != "" }))
	return out
}

// moving is what the view shows of a move: where the primary is, and how far a move is.
func (c *scenario) moving() string {
	if c.moves == nil {
		return ""
	}
	rec := c.account.record
	if rec.Operation == nil {
		return fmt.Sprintf(" | %s is the primary in epoch %d", c.home.name, rec.Epoch)
	}
	return fmt.Sprintf(" | %s is the primary in epoch %d: %s", c.home.name, rec.Epoch, rec.Operation.Describe())
}
