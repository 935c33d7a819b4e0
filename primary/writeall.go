package primary

import (
	"context"
	"errors"

	"antipode/geo"
	"antipode/services"
	"antipode/stamp/ranges"
)

// WriteAll implements services.AllWriter. Writes of a late account to a service wait as one, since they are of one request.
func (p *Primary) WriteAll(ctx context.Context, ws []services.Write) []error {
	errs, admitted := make([]error, len(ws)), map[Written]error{}
	var order []geo.RangeID
	of := map[geo.RangeID][]int{} // the writes of each range
	for i, w := range ws {
		part := w.Partition()
		to := Written{part.Account, part.Service}
		err, asked := admitted[to]
		if !asked {
			err = p.admit(ctx, part)
			admitted[to] = err
		}
		if err != nil {
			errs[i] = err
			continue
		}
		r := p.stamp.Route().Of(part)
		if of[r] == nil {
			order = append(order, r)
		}
		of[r] = append(of[r], i)
	}
	for _, r := range order {
		again := p.submitAll(ctx, r, ws, of[r], errs)
		if len(again) > 0 && p.Await != nil && p.Await(ctx) {
			p.submitAll(ctx, r, ws, again, errs) // Nothing had happened.
		}
	}
	return errs
}

// submitAll submits the writes of a range, and returns those that were refused with ErrUnconfirmed.
func (p *Primary) submitAll(ctx context.Context, r geo.RangeID, ws []services.Write, of []int, errs []error) (again []int) {
	cmds := make([]ranges.Command, len(of))
	for n, i := range of {
		cmds[n] = commandOf(ws[i])
	}
	for n, err := range p.stamp.SubmitAll(ctx, r, cmds) {
		errs[of[n]] = err
		if errors.Is(err, ErrUnconfirmed) {
			again = append(again, of[n])
		}
	}
	return again
}
