package oracle

import (
	"fmt"

	"antipode/geo"
)

// Resolve checks a read at the primary made while nobody writes the key. It must
// be the last acknowledged value, or one that a write with a lost answer left;
// which one is then known for good. now bounds the commit time of a lost write
// whose value carries none.
func (o *Oracle) Resolve(key string, r Read, now geo.Timestamp) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil {
		return fmt.Errorf("%w: %s: %v, never written", ErrInvented, key, r.State)
	}
	resolved := h.at(h.resolved)
	if n := Version(len(h.writes)); n > h.resolved && h.at(n).fate != refused {
		open := h.at(n)
		if r.State == open.state {
			at := r.At
			if at == 0 {
				at = now
			}
			o.apply(h, n, r.ETag, at)
			return nil
		}
		h.writes[n-1].fate = refused
	}
	if r.State != resolved.state {
		return h.complain(key, r, "the last acknowledged write left "+resolved.state.String())
	}
	return checkTag(key, resolved, r)
}

// Final checks a read that must show exactly the resolved value: at the secondary,
// once it has everything, or at the primary before the next write is sent.
func (o *Oracle) Final(key string, r Read) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	resolved := h.at(h.resolved)
	if r.State != resolved.state {
		return h.complain(key, r, "the last acknowledged write left "+resolved.state.String())
	}
	return checkTag(key, resolved, r)
}

// complain returns the error for a read that shows a wrong value.
func (h *history) complain(key string, r Read, want string) error {
	kind := ErrLost
	if r.Present && (r.Last == 0 || int(r.Last) > len(h.writes) ||
		h.at(r.Last).fate == refused || h.at(r.Last).state != r.State) {
		kind = ErrInvented
	}
	return fmt.Errorf("%w: %s: found %v %s, %s (at %v, %d writes)",
		kind, key, r.State, r.ETag, want, h.at(h.resolved).at, len(h.writes))
}

// Floor returns the version that a secondary with the given sync time must show
// at least: the last one known to be applied at or before it. 0 is no demand.
func (o *Oracle) Floor(key string, sync geo.Timestamp) Version {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil {
		return 0
	}
	for v := h.resolved; v > 0; v-- {
		if w := h.at(v); w.fate == applied && w.at <= sync {
			return v
		}
	}
	return 0
}

// AtLeast checks a read made when version floor was promised to show: it must show
// the floor or a later version that may have been applied. A Last Sync Time promises
// its Floor at the secondary, an acknowledgement promises what is resolved at the
// primary.
func (o *Oracle) AtLeast(key string, floor Version, r Read) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil {
		return fmt.Errorf("%w: %s: %v, never written", ErrInvented, key, r.State)
	}
	for v := Version(len(h.writes)); ; v-- {
		w := h.at(v)
		if w.state == r.State && w.fate != refused {
			if w.fate == applied && w.etag != "" {
				return checkTag(key, w, r)
			}
			return nil
		}
		if v == floor {
			break
		}
	}
	if !r.Present || int(r.Last) <= len(h.writes) && h.at(r.Last).state == r.State && h.at(r.Last).fate != refused {
		w := h.at(floor)
		return fmt.Errorf("%w: %s: found %v %s, but version %d (%v) was committed at %v",
			ErrBehind, key, r.State, r.ETag, floor, w.state, w.at)
	}
	return fmt.Errorf("%w: %s: found %v %s", ErrInvented, key, r.State, r.ETag)
}

// Between reports whether a key may have had a value at some moment, from when a version was the resolved one until so many
// writes of it were begun.
func (o *Oracle) Between(key string, floor, begun Version, s State) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil {
		return false
	}
	for v := floor; v <= begun; v++ {
		if w := h.at(v); w.fate != refused && w.state == s {
			return true
		}
	}
	return false
}

// Presence says of a key what AtLeast would take: whether it may be there, and
// whether it must be.
func (o *Oracle) Presence(key string, floor Version) (may, must bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.keys[key]
	if h == nil {
		return false, false
	}
	must = true
	for v := floor; int(v) <= len(h.writes); v++ {
		if w := h.at(v); w.fate != refused {
			may = may || w.state.Present
			must = must && w.state.Present
		}
	}
	return may, must
}

// checkTag compares the tag of a value with the one it was acknowledged with.
func checkTag(key string, w write, r Read) error {
	if r.Present && w.etag != "" && r.ETag != w.etag {
		return fmt.Errorf("%w: %s: %v acknowledged as %s, read as %s", ErrTag, key, r.State, w.etag, r.ETag)
	}
	return nil
}
