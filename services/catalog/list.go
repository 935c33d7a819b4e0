package catalog

import (
	"errors"
	"strings"

	"antipode/geo"
	"antipode/stamp/keys"
	"antipode/stamp/kv"
)

// Page walks the living containers of an account whose names begin with prefix, from
// the name from on, in the order of names. It calls f for each until f returns false
// or stepsMax rows were looked at, deleted ones included. It returns the name at
// which the next page begins, "" where all were seen. Containers are f's to keep.
func Page(r kv.Reader, s geo.Service, a geo.Account, prefix, from string, stepsMax int, f func(*Container) (more bool)) (next string, err error) {
	account := keys.AppendContainer(nil, geo.Catalog, a, "", keys.Generation{})
	bound := func(name string) []byte {
		b := keys.AppendString(append([]byte(nil), account...), kindOf(s)+keys.TableContainer(name))
		return b[:len(b)-2] // Without its end: what begins with the name is above it.
	}
	upper := keys.PrefixEnd(bound(prefix))
	if from < prefix {
		from = prefix
	}
	if !strings.HasPrefix(from, prefix) {
		return "", nil
	}
	it, err := r.Scan(bound(from), upper)
	if err != nil {
		return "", err
	}
	more := true
	for steps := 0; it.Next(); steps++ {
		c, err := ParseContainer(it.Value())
		if err != nil {
			return "", errors.Join(err, it.Close())
		}
		if steps == stepsMax || !more && c.Deleted == 0 {
			return c.Name, it.Close()
		}
		if c.Deleted == 0 {
			more = f(c)
		}
	}
	return "", it.Close()
}
