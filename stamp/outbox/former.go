package outbox

import (
	"errors"
	"maps"
	"slices"

	"antipode/geo"
	"antipode/stamp/keys"
)

// ForgetMax bounds the streams that one group forgets.
const ForgetMax = 256

// forget deletes the head of a stream, and up to where it is trimmed, unless a record waits in it.
//
// It is for streams of former epochs (R13): no record follows in one, and no cursor of it is left.
func (o *Outbox) forget(w Writer, s geo.Stream) error {
	_, waits := o.waiting[s]
	if _, known := o.heads[s]; waits || !known {
		return nil
	}
	delete(o.heads, s)
	if of := o.accounts[s.Account]; len(of) > 1 {
		delete(of, s)
	} else {
		delete(o.accounts, s.Account)
	}
	delete(o.trimmed, s)
	delete(o.moved, s)
	return errors.Join(w.Delete(keys.Head(o.id, s)), w.Delete(keys.Trimmed(o.id, s)))
}

// add adds a stream to those of its account.
func (o *Outbox) add(s geo.Stream) {
	of := o.accounts[s.Account]
	if of == nil {
		of = map[geo.Stream]struct{}{}
		o.accounts[s.Account] = of
	}
	of[s] = struct{}{}
}

// Of returns the streams of an account that the outbox knows, in no order.
func (o *Outbox) Of(a geo.Account) []geo.Stream { return slices.Collect(maps.Keys(o.accounts[a])) }
