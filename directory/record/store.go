package record

import (
	"context"

	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/change"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// Stamp is the stamp of this location.
type Stamp interface {
	ranges.Submitter
	ranges.Reader
	ranges.Routed
	Location() geo.Location
}

// Store is the stamp of a location as the parts of its directory use it: what they commit and read besides their own
// commands. Methods may be called concurrently.
type Store struct{ Stamp }

// Gates returns the gates of accounts in the catalog.
func (s *Store) Gates(ctx context.Context, of []*catalog.Account) (map[geo.Account]change.Gate, error) {
	out := map[geo.Account]change.Gate{}
	return out, s.Read(ctx, s.Route().Catalog(), func(s ranges.State) error {
		for _, a := range of {
			out[a.Name] = s.Gate(a.Name)
		}
		return nil
	})
}

// Version returns the version of the catalog's data, 0 while that is changed.
func (s *Store) Version(ctx context.Context) (v uint64, err error) {
	err = s.Read(ctx, s.Route().Catalog(), func(s ranges.State) error {
		v = uint64(s.Version())
		return nil
	})
	return v, err
}

// Commit commits a command in the catalog.
func (s *Store) Commit(ctx context.Context, cmd ranges.Command) error {
	return s.Submit(ctx, s.Route().Catalog(), cmd)
}

// CatalogRange returns the range of the catalog.
func (s *Store) CatalogRange() route.Range {
	r, _ := s.Route().Range(s.Route().Catalog())
	return r
}
