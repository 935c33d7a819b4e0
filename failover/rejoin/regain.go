package rejoin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/internal/plantedbugs"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
	"antipode/stamp/state"
)

// regain opens the gate of an account in a range of its former primary whose catalog is rewound. Nothing of the account
// changes there before. Each step may be repeated.
func (j *Rejoiner) regain(ctx context.Context, a catalog.Account, r route.Range) error {
	submit := func(body regainBody) (open bool, err error) {
		cmd := &regain{rejoin{SetGate: record.SetGate{Account: a.Name, Gate: record.SecondaryGate(&a)}}, body, false}
		if err := j.stamp.Submit(ctx, r.ID, cmd); err != nil {
			return false, fmt.Errorf("account %s: its containers in the %s range: %w", a.Name, r.Service, err)
		}
		return cmd.open, cmd.outcome()
	}
	if open, err := submit(regainBody{}); open || err != nil {
		return err
	}
	rows := keys.AppendAccount(nil, r.Service, a.Name)
	err := j.eachPage(ctx, r, record.Span{From: rows, End: keys.PrefixEnd(rows), Generations: true}, func(seen [][]byte) error {
		alone, err := j.those(ctx, a.GeoEpoch(), seen, keys.ParseGeneration, func(of keys.Partition, found *catalog.Container) bool {
			return of.Generation != (keys.Generation{}) && (found == nil || found.Generation().Before(of.Generation))
		})
		for ; err == nil && len(alone) > 0; alone = alone[min(len(alone), record.WipesMax):] {
			body := regainBody{}
			for _, p := range alone[:min(len(alone), record.WipesMax)] {
				body.Wipe = append(body.Wipe, record.ContainerPrefix(p))
			}
			_, err = submit(body)
		}
		return err
	})
	if err != nil {
		return err
	}
	swept, err := j.sweptIn(ctx, a, r)
	if err == nil {
		_, err = submit(regainBody{Open: true, Swept: swept})
	}
	return err
}

// eachPage calls f with each page of the keys of a span in a range.
func (j *Rejoiner) eachPage(ctx context.Context, r route.Range, of record.Span, f func([][]byte) error) error {
	for of.From != nil {
		page, err := j.stamp.Keys(ctx, r, of)
		if err == nil {
			err = f(page.Keys)
		}
		if err != nil {
			return err
		}
		of.From = page.Next
	}
	return nil
}

// those returns the generations of some keys for which f is true of what the catalog here has of their container, nil for
// nothing. kv.ErrBusy: the catalog has gone on to another epoch, in which the copy may be made again; it says nothing of this one.
func (j *Rejoiner) those(
	ctx context.Context, e geo.Epoch, list [][]byte, parse func([]byte) (keys.Partition, error), f func(keys.Partition, *catalog.Container) bool,
) (out []keys.Partition, err error) {
	err = j.stamp.Read(ctx, j.stamp.Route().Catalog(), func(s ranges.State) error {
		out = nil
		for _, key := range list {
			p, err := parse(key)
			if err != nil {
				return err
			}
			if s.Gate(p.Account).Epoch != e {
				return kv.ErrBusy
			}
			found, err := catalog.Lookup(s, p.Service, p.Account, p.Container)
			if err != nil {
				return err
			}
			if f(p, found) {
				out = append(out, p)
			}
		}
		return nil
	})
	return out, err
}

// sweptIn returns the generations that live, and that a range has closed, and has no rows of.
func (j *Rejoiner) sweptIn(ctx context.Context, a catalog.Account, r route.Range) (out []change.LostContainer, err error) {
	closed := keys.ClosedGenerations(r.ID, r.Service, a.Name)
	err = j.eachPage(ctx, r, record.Span{From: closed, End: keys.PrefixEnd(closed)}, func(list [][]byte) error {
		lives, err := j.those(ctx, a.GeoEpoch(), list, closedGeneration, func(of keys.Partition, found *catalog.Container) bool {
			return found != nil && found.Deleted == 0 && found.Generation() == of.Generation
		})
		for i := 0; err == nil && i < len(lives); i++ {
			var rows record.Page
			p := lives[i]
			prefix := record.ContainerPrefix(p)
			rows, err = j.stamp.Keys(ctx, r, record.Span{From: prefix, End: keys.PrefixEnd(prefix), Generations: true})
			if err == nil && len(rows.Keys) == 0 {
				out = append(out, change.LostContainer{Name: p.Container, Epoch: p.Generation.Epoch, Created: p.Generation.Created})
			}
		}
		return err
	})
	return out, err
}

func closedGeneration(key []byte) (keys.Partition, error) {
	k, err := keys.ParseRangeKey(key)
	return k.Partition, err
}

// regain is the command of these steps: nothing, or rows are deleted, or the gate opens.
type regain struct {
	rejoin
	regainBody
	// open: the gate was open already.
	open bool
}

// regainBody is an encoded regain, but for the gate in Set.
type regainBody struct {
	Set []byte `json:"set"`
	// Wipe are the prefixes of generations that the catalog does not have.
	Wipe [][]byte `json:"wipe,omitempty"`
	// Open opens the gate. Swept are the generations of which all rows are needed.
	Open  bool                   `json:"open,omitempty"`
	Swept []change.LostContainer `json:"swept,omitempty"`
}

// Evaluate implements ranges.Command.
func (c *regain) Evaluate(tx *ranges.Tx) error {
	claim, err := c.closed(tx)
	if c.open = err == nil && claim == nil && !c.diverged; c.open && c.Found == c.Gate.Epoch {
		return c.opened(tx)
	}
	if claim == nil {
		return err
	}
	if c.diverged = len(c.Swept) > sweptMax; c.diverged {
		return nil // The claim names them, and is one row.
	}
	for _, prefix := range c.Wipe {
		if err := tx.Wipe(state.Span{Lower: prefix, Upper: keys.PrefixEnd(prefix)}); err != nil {
			return err
		}
	}
	if !c.Open {
		return nil
	}
	claim.Regained = true
	if !plantedbugs.Planted(plantedbugs.SweptUnsent) {
		claim.Swept = c.Swept
	}
	if err := stageClaim(tx, tx.Timestamp(0), c.Account, *claim); err != nil {
		return err
	}
	tx.SetGate(c.Account, c.Gate)
	if plantedbugs.Planted(plantedbugs.GenerationsStayClosed) {
		return nil
	}
	return tx.ReopenGenerations(ranges.Service(tx.Range()), c.Account)
}

// opened finds whether a gate that is open was opened by a regain. A node of a former version opens it by a rejoin, without
// looking at the catalog: what came since may have been left out, so the copy has to be made again.
func (c *regain) opened(tx *ranges.Tx) error {
	claim, err := claimOf(tx, tx.Range(), c.Account, c.Gate.Epoch)
	c.diverged = err == nil && (claim == nil || !claim.Regained)
	c.open = err == nil && !c.diverged
	return err
}

// kindRegain is the kind of regain. It is on the wire: never rename it.
const kindRegain = "directory.regain"

// Kind implements ranges.Portable.
func (c *regain) Kind() string { return kindRegain }

// Encode implements ranges.Portable.
func (c *regain) Encode() []byte {
	body := c.regainBody
	body.Set = c.SetGate.Encode()
	b, _ := json.Marshal(body) // It has no value that JSON lacks.
	return b
}

func parseRegain(b []byte) (*regain, error) {
	var body regainBody
	if err := json.Unmarshal(b, &body); err != nil {
		return nil, errors.Join(record.ErrCommand, err)
	}
	c, err := parseRejoin(body.Set)
	if err != nil {
		return nil, err
	}
	return &regain{rejoin: *c, regainBody: body}, nil
}

// regainResult is an encoded result.
type regainResult struct {
	Rejoin []byte `json:"rejoin"`
	Open   bool   `json:"open,omitempty"`
}

// EncodeResult implements ranges.Portable.
func (c *regain) EncodeResult() []byte {
	b, _ := json.Marshal(regainResult{c.rejoin.EncodeResult(), c.open}) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *regain) DecodeResult(b []byte) error {
	var out regainResult
	if err := json.Unmarshal(b, &out); err != nil {
		return err
	}
	c.open = out.Open
	return c.rejoin.DecodeResult(out.Rejoin)
}
