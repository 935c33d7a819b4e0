package bootstrap

import (
	"context"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// Where the catalog of the primary was set back or recovered with loss, and the other ranges were not, these have rows of
// containers that it does not know. Nobody can read them. In an image they would wait at the other location for a container
// that never comes (R14), and the copy would never be whole. So before the images begin their generations are closed: an
// image leaves out what is closed. The rows stay, since they may be the last of acknowledged writes: those that the former
// copy had are in its lost-and-found.
//
// Why no generation of a living container is closed: a container is in the catalog before a range has rows of it. A range is
// asked first for the generations that it has, and then the catalog for what it has acknowledged.

// closeForgotten closes, in the ranges of an account that is primary here, the generations that the catalog does not have
// (R8). It may be repeated.
func (cp *Copier) closeForgotten(ctx context.Context, a geo.Account) error {
	for _, r := range imageOrder(cp.stamp.Route(), a) {
		if r.Service == geo.Catalog {
			continue
		}
		if err := cp.closeForgottenIn(ctx, a, r); err != nil {
			return fmt.Errorf("containers that the catalog does not have, in the %s range: %w", r.Service, err)
		}
	}
	return nil
}

func (cp *Copier) closeForgottenIn(ctx context.Context, a geo.Account, r route.Range) error {
	prefix := keys.AppendAccount(nil, r.Service, a)
	span := geo.Span{Start: string(prefix), End: string(keys.PrefixEnd(prefix))}.Within(r.Span)
	for from := []byte(span.Start); from != nil; {
		page, err := cp.stamp.Keys(ctx, r, record.Span{From: from, End: []byte(span.End), Generations: true})
		if err != nil {
			return err
		}
		lost, err := cp.forgotten(ctx, page.Keys)
		if err != nil {
			return err
		}
		for _, p := range lost {
			if err := cp.images.CloseGeneration(ctx, p.Service, a, p.Container, p.Generation); err != nil {
				return err // It may be committed yet.
			}
		}
		from = page.Next
	}
	return nil
}

// forgotten returns those of some generations, given as prefixes of their rows, that the catalog neither has nor has ended.
func (cp *Copier) forgotten(ctx context.Context, seen [][]byte) (lost []keys.Partition, err error) {
	err = cp.stamp.Read(ctx, cp.stamp.Route().Catalog(), func(state ranges.State) error {
		lost = nil
		for _, prefix := range seen {
			p, err := keys.ParseGeneration(prefix)
			if err != nil {
				return err
			}
			if p.Generation == (keys.Generation{}) {
				continue // It is of no container.
			}
			found, err := catalog.Lookup(state, p.Service, p.Account, p.Container)
			if err != nil {
				return err
			}
			if found == nil || found.Generation().Before(p.Generation) {
				lost = append(lost, p)
			}
		}
		return nil
	})
	return lost, err
}
