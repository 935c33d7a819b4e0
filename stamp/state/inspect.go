package state

import (
	"bytes"
	"slices"
)

// TableStarts returns the least key of each table of the store, ascending: where a
// reader that met a damaged table can go on.
func (s *Store) TableStarts() ([][]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, level := range levels {
		for _, t := range level {
			out = append(out, bytes.Clone(t.Smallest.UserKey))
		}
	}
	slices.SortFunc(out, bytes.Compare)
	return slices.CompactFunc(out, bytes.Equal), nil
}
