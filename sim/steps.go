package sim

import (
	"antipode/services/catalog"
)

// The durable steps of a failover, as the catalogs commit them: a phase of a move or of a promotion behind its prefix, or
// one of the others.
const (
	movePrefix      = "move-"
	promotionPrefix = "promotion-"
	// stepTaken is at the new primary, stepFollowed at the former one; stepOver is the end of the operation.
	stepTaken    = "taken"
	stepFollowed = "followed"
	stepOver     = "over"
)

// steps reports the step of which a record is that a catalog has committed.
func (h *history) steps(a *account, rec *catalog.Account) {
	if h.s.onStep == nil {
		return
	}
	step := stepOver
	p, op := h.l.promotion(a.name), rec.Operation
	switch {
	case p != nil:
		step = promotionPrefix + string(p.Phase)
	case op == nil:
	case op.Kind == catalog.OperationMove:
		step = movePrefix + string(op.Move.Phase)
	case op.Kind == catalog.OperationTaken && rec.Primary == h.l.name:
		step = stepTaken
	case op.Kind == catalog.OperationTaken:
		step = stepFollowed
	}
	h.s.onStep(h.l, step)
}
