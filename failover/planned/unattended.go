package planned

import (
	"context"
	"fmt"

	"antipode/directory/record"
	"antipode/geo"
	"antipode/services/catalog"
	"antipode/services/storageerr"
	"antipode/stamp/change"
)

// EndMoveAlone ends a move of which the other location may have taken the account, without its answer: by the word of an
// operator that it has not, and never will (R19, R21). Without it the account would have no primary for ever where that
// location is lost for good. Resume goes on. InvalidInput if no move is that far: EndMove suffices then.
//
// If the word was false both locations take writes until they reach each other. Then the epoch of the other one is the
// higher one: Adopt finds what was written here since as diverged.
func (mv *Mover) EndMoveAlone(ctx context.Context, name geo.Account) (*catalog.Account, error) {
	a, err := mv.accounts.Account(ctx, name)
	if err != nil {
		return nil, err
	}
	if a.Primary != mv.stamp.Location() || !a.Offered() {
		return nil, storageerr.InvalidInput.Saying(fmt.Sprintf(
			"account %s: no failover is under way whose end needs the answer of the other location", name))
	}
	seen, err := catalog.SeenOp(claimed(a))
	if err != nil {
		return nil, err
	}
	to := a.Operation.Move
	to.Phase, to.Reason = catalog.MoveEnding, "an operator ended it, and agreed that "+string(a.Secondary)+" has not taken the account"
	cmd := &moveTo{of: *a, to: to, more: []change.Op{seen}}
	if err := mv.stamp.Commit(ctx, cmd); err != nil {
		return nil, err
	}
	if !cmd.done {
		return nil, storageerr.ServerBusy.Saying(fmt.Sprintf("account %s: its failover has gone on meanwhile", name))
	}
	mv.moved(record.MoveEnded, a, to.Reason)
	return mv.accounts.Account(ctx, name)
}
