package ranges

import (
	"bytes"
	"errors"
	"fmt"

	"antipode/geo"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
	"antipode/stamp/state"
)

// wipesMax bounds the wipes in flight: every read of a command that finds nothing in the overlay looks at
// all of them.
const wipesMax = 64

// ErrWipeRefused: Tx.Wipe does not delete that span.
var ErrWipeRefused = errors.New("ranges: a span of rows may not be wiped")

// wipe is a span of rows that a group in flight deletes.
type wipe struct {
	lower, upper []byte
	group        change.GroupID
}

// Wipe stages that all rows of clients' keys in a span are deleted, by one range tombstone: what it costs does
// not depend on how many rows there are. The deletion has no number and goes to no other location; the
// chunks that the rows named are collected later (R9). The span lies in one account's keys of this range's service.
// Where the account is primary with an open gate, it lies in one generation that is closed here (R8). Every other
// span is ErrWipeRefused, and nothing is staged. kv.ErrBusy: too many wipes are in flight.
func (tx *Tx) Wipe(span state.Span) error {
	if err := tx.mayWipe(span); err != nil {
		return err
	}
	return tx.wipe(span)
}

// ReopenGenerations stages that the range has closed no generation of an account any more, where its copy of a service is
// deleted: what this location closed while it was the primary may have been lost to a promotion, and the copy that
// follows has those generations (R20). ErrWipeRefused where the account is primary here.
func (tx *Tx) ReopenGenerations(s geo.Service, a geo.Account) error {
	if tx.Gate(a).Role == change.RolePrimary {
		return fmt.Errorf("%w: %s is primary here: what it has closed stays closed", ErrWipeRefused, a)
	}
	prefix := keys.ClosedGenerations(tx.Range(), s, a)
	return tx.wipe(state.Span{Lower: prefix, Upper: keys.PrefixEnd(prefix)})
}

// wipe stages a deletion that was checked.
func (tx *Tx) wipe(span state.Span) error {
	if len(tx.r.wipes) >= wipesMax {
		return kv.ErrBusy
	}
	tx.b.Wipe(span.Lower, span.Upper)
	for k := range tx.r.overlay {
		if k >= string(span.Lower) && k < string(span.Upper) {
			tx.overlay(k, overlayValue{deleted: true})
		}
	}
	before := len(tx.r.wipes)
	tx.saved = append(tx.saved, undo{f: func() { tx.r.wipes = tx.r.wipes[:before] }})
	tx.r.wipes = append(tx.r.wipes, wipe{bytes.Clone(span.Lower), bytes.Clone(span.Upper), tx.g.id})
	return nil
}

func (tx *Tx) mayWipe(span state.Span) error {
	p, whole, err := keys.ParseSpan(span.Lower, span.Upper)
	if err != nil {
		return fmt.Errorf("%w: not in one account: %w", ErrWipeRefused, err)
	}
	if held, _ := Span(tx.Range()); string(span.Lower) < held.Start || string(span.Upper) > held.End {
		return fmt.Errorf("%w: not in range %d", ErrWipeRefused, tx.Range())
	}
	if gate := tx.Gate(p.Account); gate.Role != change.RolePrimary || !gate.Open {
		return nil
	}
	if !whole {
		return fmt.Errorf("%w: %s is primary here, and the span is not in one generation", ErrWipeRefused, p.Account)
	}
	closed, err := tx.GenerationClosed(keys.ClosedGeneration(tx.Range(), p.Service, p.Account, p.Container, p.Generation))
	if err == nil && !closed {
		err = fmt.Errorf("%w: %s is primary here, and generation %d.%s of %s is not closed", ErrWipeRefused, p.Account,
			p.Generation.Epoch, p.Generation.Created, p.Container)
	}
	return err
}

// wiped reports whether a group in flight deletes key, as far as the overlay does not say otherwise: what was
// written to the span before the wipe stands there as deleted, what was written after it with its value.
func (tx *Tx) wiped(key []byte) bool {
	for _, w := range tx.r.wipes {
		if bytes.Compare(key, w.lower) >= 0 && bytes.Compare(key, w.upper) < 0 {
			return true
		}
	}
	return false
}

// dropWipes forgets the wipes of a group that took effect: the state below no longer has the rows. Groups take
// effect in order, so they are the oldest.
func (r *Range) dropWipes(id change.GroupID) {
	for len(r.wipes) > 0 && r.wipes[0].group == id {
		r.wipes = r.wipes[1:]
	}
}

func (m *Machine) applyWipe(batch *state.Batch, body []byte) error {
	lower, upper, err := change.ParseWipe(body)
	if err != nil {
		return err
	}
	m.changed, m.recent.wiped = true, true
	m.wiped = append(m.wiped, state.Span{Lower: bytes.Clone(lower), Upper: bytes.Clone(upper)})
	return batch.DeleteRange(lower, upper)
}
