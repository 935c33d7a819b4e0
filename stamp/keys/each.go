package keys

import (
	"errors"

	"antipode/geo"
	"antipode/stamp/kv"
)

// Each calls f for every row whose key starts with prefix, in key order, until f fails. Key
// and value are valid during the call only.
func Each(r kv.Reader, prefix []byte, f func(key, value []byte) error) error {
	it, err := r.Scan(prefix, PrefixEnd(prefix))
	if err != nil {
		return err
	}
	for it.Next() {
		if err := f(it.Key(), it.Value()); err != nil {
			return errors.Join(err, it.Close())
		}
	}
	return it.Close()
}

// EachStream is Each for keys that ParseStreamKey decodes.
func EachStream(r kv.Reader, prefix []byte, f func(s geo.Stream, value []byte) error) error {
	return Each(r, prefix, func(key, value []byte) error {
		s, _, err := ParseStreamKey(key)
		if err != nil {
			return err
		}
		return f(s, value)
	})
}
