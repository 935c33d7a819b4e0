package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"antipode/directory/batch"
	"antipode/directory/record"
	"antipode/failover/planned"
	"antipode/failover/unplanned"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/ranges"
)

// The checks of the failovers of a location: of a planned one whether the streams move, of an unplanned one which accounts it
// would refuse, by the checks that it makes itself.

const (
	// checkMax is how many accounts a command of the check looks at: those that a group of the catalog waits for.
	checkMax = 250
	// checkWithin bounds how long the ranges are asked for what they have of the copies: below what an admin port allows a plan.
	checkWithin = 5 * time.Second
)

// LocationCheck is what the failover of a location would meet.
type LocationCheck struct {
	// Move would be its row after the first round: with the accounts that it would refuse.
	Move catalog.LocationMove
	LocationProgress
	// Unchecked accounts are not refused here. Whether their copies are whole is not known: their ranges did not answer.
	Unchecked int
}

// CheckLocationFlow returns what MoveLocation would meet, and refuses where its accounts would wait in vain, as CheckFlow does of
// one: some of them are checked, which have all ranges between them. Other errors are as of MoveLocation. It has these ranges
// commit a closed record, and changes nothing else.
func (d *Directory) CheckLocationFlow(ctx context.Context) (out LocationCheck, err error) {
	w, err := d.work(ctx)
	if err != nil {
		return out, err
	}
	if w.location.Active() {
		return out, errLocation(w.location)
	}
	out.Move = catalog.LocationMove{From: d.stamp.Location(), To: d.other}
	out.LocationProgress = w.progress(&out.Move)
	return out, planned.SideBySide(d.spanning(w.waiting(&out.Move)), func(_ int, a *catalog.Account) error { return d.mover.CheckFlow(ctx, a.Name) })
}

// spanning returns the first accounts of a list without an operation that have between them all ranges of the list.
func (d *Directory) spanning(list []*catalog.Account) (out []*catalog.Account) {
	have := map[geo.RangeID]bool{}
	for _, a := range list {
		if a.Operation != nil {
			continue
		}
		before := len(have)
		for _, r := range d.stamp.Route().Everywhere(a.Name) {
			have[r.ID] = true
		}
		if len(have) > before {
			out = append(out, a)
		}
	}
	return out
}

// CheckLocation returns what PromoteLocation would meet. It changes nothing. Errors are as of PromoteLocation.
func (d *Directory) CheckLocation(ctx context.Context, by unplanned.Insisted) (out LocationCheck, err error) {
	w, err := d.work(ctx)
	if err != nil {
		return out, err
	}
	out.Move = d.promotesLocation(by)
	if w.location.Active() && !stopsAsking(w.location, out.Move) {
		return out, errLocation(w.location)
	}
	out.LocationProgress = w.progress(&out.Move)
	list := w.waiting(&out.Move)
	whys, err := d.checkPromotions(ctx, list, by)
	if err != nil {
		return out, err
	}
	if !by.AcceptPart {
		out.Unchecked = d.checkParts(ctx, list, whys)
	}
	for i, why := range whys {
		if why != "" {
			out.Move.Refuse(list[i].Name, why)
		}
	}
	return out, nil
}

// checkPromotions returns why the promotions of accounts would not begin, empty for those that would.
func (d *Directory) checkPromotions(ctx context.Context, list []*catalog.Account, by unplanned.Insisted) (whys []string, err error) {
	for page := range slices.Chunk(list, checkMax) {
		cmd := &checkPromotions{By: by}
		for _, a := range page {
			cmd.Names = append(cmd.Names, a.Name)
		}
		if err := d.stamp.Commit(ctx, cmd); err != nil {
			return nil, err
		}
		whys = append(whys, cmd.whys...)
	}
	return whys, nil
}

// checkParts adds why copies of which a recovery left a part would be refused. It returns how many could not be checked.
func (d *Directory) checkParts(ctx context.Context, list []*catalog.Account, whys []string) (unchecked int) {
	ctx, cancel := d.within(ctx, checkWithin)
	defer cancel()
	errs := make([]error, len(list))
	batch.Run(ctx, len(list), func(ctx context.Context, i int) {
		if whys[i] != "" || list[i].Copied <= list[i].LastFailover {
			return
		}
		var why error
		if why, errs[i] = d.promoter.PartOf(ctx, list[i]); why != nil {
			whys[i] = why.Error()
		}
	})
	for _, err := range errs {
		if err != nil {
			unchecked++
		}
	}
	return unchecked
}

// checkPromotions finds why the promotions of accounts would not begin. It stages nothing. Any process of the location
// submits it for an operator.
type checkPromotions struct {
	Names []geo.Account      `json:"names"`
	By    unplanned.Insisted `json:"by"`
	whys  []string
}

// Evaluate implements ranges.Command.
func (c *checkPromotions) Evaluate(tx *ranges.Tx) error {
	c.whys = make([]string, len(c.Names))
	for i, name := range c.Names {
		err := unplanned.CheckIn(tx, name, c.By)
		if _, ours := storageerr.Of(err); err != nil && !ours {
			return err
		}
		if err != nil {
			c.whys[i] = err.Error()
		}
	}
	return nil
}

// kindCheckPromotions is the kind of checkPromotions. It is on the wire: never rename it.
const kindCheckPromotions = "directory.checkPromotions"

// Kind implements ranges.Portable.
func (*checkPromotions) Kind() string { return kindCheckPromotions }

// Encode implements ranges.Portable.
func (c *checkPromotions) Encode() []byte {
	b, _ := json.Marshal(c) // It has no value that JSON lacks.
	return b
}

func parseCheckPromotions(b []byte) (*checkPromotions, error) {
	c := &checkPromotions{}
	if err := json.Unmarshal(b, c); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	if len(c.Names) > checkMax {
		return nil, fmt.Errorf("%w: a check of %d accounts", record.ErrCommand, len(c.Names))
	}
	return c, nil
}

// EncodeResult implements ranges.Portable.
func (c *checkPromotions) EncodeResult() []byte {
	b, _ := json.Marshal(c.whys) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *checkPromotions) DecodeResult(b []byte) error {
	if err := json.Unmarshal(b, &c.whys); err != nil {
		return err
	}
	if len(c.whys) != len(c.Names) {
		return fmt.Errorf("%w: %d answers for %d accounts", record.ErrCommand, len(c.whys), len(c.Names))
	}
	return nil
}
