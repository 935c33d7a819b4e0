package ranges

import (
	"time"

	"antipode/geo"
	"antipode/stamp/replica"
)

// View is what the scheduler knows of its replica, for status: at most viewEvery old.
type View struct {
	// InSync are the in-sync nodes as this leader sees them; empty elsewhere.
	InSync []geo.NodeID
	// Standings are all voters as this leader counts them; empty elsewhere.
	Standings []replica.Standing
	// Logged is how many entries the log held at the start. Replayed of them were applied
	// again since.
	Replayed, Logged uint64
	// Lost is why the replica takes no part any more; nil while it does.
	Lost error
}

const viewEvery = 100 * time.Millisecond

func (r *Range) look(now time.Duration) {
	if r.view.Load() != nil && now-r.viewAt < viewEvery {
		return
	}
	r.viewAt = now
	v := &View{InSync: r.replica.InSyncNodes(), Standings: r.replica.Standings(), Lost: r.replica.Lost()}
	v.Replayed, v.Logged = r.replica.Replay()
	r.view.Store(v)
}

// View returns the newest view; empty before the first pass.
func (r *Range) View() View {
	if v := r.view.Load(); v != nil {
		return *v
	}
	return View{}
}
