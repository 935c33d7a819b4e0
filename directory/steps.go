package directory

import (
	"antipode/directory/record"
	"antipode/services/catalog"
)

// OnMove sets what is called after each step, from the goroutine that made it. A step whose answer was lost is not
// reported.
func (d *Directory) OnMove(f func(record.Moved)) { d.onMove = f }

func (d *Directory) moved(step record.MoveStep, a *catalog.Account, reason string) {
	if step == record.MoveEnded {
		d.endings.set(a.Name, ending{why: reason})
	}
	d.onMove(record.Moved{Step: step, Account: a.Name, Primary: a.Primary, Secondary: a.Secondary, Epoch: a.GeoEpoch(), Reason: reason})
}
