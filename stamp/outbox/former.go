package outbox

import (
	"errors"

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
	delete(o.trimmed, s)
	delete(o.moved, s)
	return errors.Join(w.Delete(keys.Head(o.id, s)), w.Delete(keys.Trimmed(o.id, s)))
}

// Of returns the streams of an account that the outbox knows, in no order.
func (o *Outbox) Of(a geo.Account) (out []geo.Stream) {
	for s := range o.heads {
		if s.Account == a {
			out = append(out, s)
		}
	}
	return out
}
