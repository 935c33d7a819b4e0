package sim

import (
	"fmt"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// rows reads everything that clients stored in the range, as a replica holds it.
func (h *history) rows(m *member) map[string]string {
	return h.read(m, keys.AppendService(nil, h.svc), 0)
}

// read returns the rows of a replica under a prefix, their keys without the first
// cut bytes.
func (h *history) read(m *member, prefix []byte, cut int) map[string]string {
	out := map[string]string{}
	snap := m.n.Range(h.id).State().Snapshot()
	it, err := snap.Scan(prefix, keys.PrefixEnd(prefix))
	if err == nil {
		err = readAll(it, cut, out)
	}
	if closeErr := snap.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		h.s.fail(fmt.Errorf("%w: read %s-%d: %w", ErrStore, h.l.name, m.id, err))
	}
	return out
}

func readAll(it kv.Iterator, cut int, out map[string]string) error {
	for it.Next() {
		out[string(it.Key()[cut:])] = string(it.Value())
	}
	return it.Close()
}

// diff returns where two maps differ, "" if they are equal.
func diff[K comparable, V comparable](what string, want, have map[K]V) string {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return fmt.Sprintf("%s of %v is %v (%t), want %v", what, k, got, ok, v)
		}
	}
	for k := range have {
		if _, ok := want[k]; !ok {
			return fmt.Sprintf("%s of %v should not be there", what, k)
		}
	}
	return ""
}

// images reads how far the images of accounts are, as a replica holds it.
func (h *history) images(m *member) map[geo.Account]string {
	out := map[geo.Account]string{}
	for _, a := range h.s.accounts {
		v, ok, err := m.n.Range(h.id).State().Get(keys.Image(h.id, a.name))
		if err != nil {
			h.s.fail(fmt.Errorf("%w: read %s-%d: %w", ErrStore, h.l.name, m.id, err))
		}
		if ok {
			out[a.name] = string(v)
		}
	}
	return out
}
