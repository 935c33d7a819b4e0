package node

import (
	"errors"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"antipode/stamp/skew"
)

// registerer registers the instruments of a node, under the labels location and node; nil without
// a registry.
func (o *Options) registerer() prometheus.Registerer {
	if o.Registerer == nil {
		return nil
	}
	labels := prometheus.Labels{"location": string(o.Location), "node": strconv.Itoa(int(o.ID))}
	return prometheus.WrapRegistererWith(labels, o.Registerer)
}

// registerMetrics registers the node's own instruments. undo removes them, so that the node can be
// opened again beside the same registry.
func (n *Node) registerMetrics(r prometheus.Registerer) (undo func(), err error) {
	all := append(append(skew.Collectors(n.clocks.Table, &n.clocks.Watch), n.room.Collectors()...), n.o.Levels.Collectors()...)
	all = append(all, n.snapshots)
	undo = func() {
		for _, c := range all {
			_ = r != nil && r.Unregister(c)
		}
	}
	for _, c := range all {
		if r != nil {
			err = errors.Join(err, r.Register(c))
		}
	}
	return undo, err
}
