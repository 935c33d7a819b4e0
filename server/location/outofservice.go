package location

import (
	"errors"
	"strings"

	wire "antipode/client/admin"
	"antipode/geo"
	"antipode/metrics"
	"antipode/stamp"
	"antipode/stamp/feature"
)

// unopened is the error of a start that did not open a node.
type unopened struct {
	node geo.NodeID
	error
}

func (u unopened) Unwrap() error { return u.error }

// down returns why a node of this process is out of service, nil if it is not, and whether it stays so until it is
// started. s is nil while the location is stopped: then a node is that its last start could not open.
func (l *Location) down(s *stamp.Stamp, id geo.NodeID) (stays bool, why error) {
	if s == nil {
		var u unopened
		if failed := l.startFailed.Load(); failed != nil && l.starting.Load() == nil && errors.As(*failed, &u) && u.node == id {
			return true, *failed
		}
		return false, nil
	}
	if n := s.Node(id); n != nil && n.Failed() != nil {
		return false, n.Failed()
	}
	return s.StaysDown(id), s.Down(id)
}

// outOfService describes in one line why a node is out of service, and what to do; "" if it is not.
func (l *Location) outOfService(s *stamp.Stamp, id geo.NodeID) string {
	stays, why := l.down(s, id)
	if why == nil {
		return ""
	}
	start := "node start " + wire.NodeName(l.o.Name, id)
	if s == nil && l.Whole() {
		start = "location start " + string(l.o.Name)
	}
	return describeDown(why, stays, start)
}

// describeDown describes why a node is out of service, and what to do; start is the command that starts it.
func describeDown(why error, stays bool, start string) string {
	text := strings.ReplaceAll(why.Error(), "\n", "; ")
	switch {
	case errors.Is(why, feature.ErrLater): // It says what to do.
		return text
	case stays:
		return text + ": mend that, then: antipodectl " + start
	}
	return text + ": it is opened again by itself, on a full disk once that has room"
}

// OutOfService implements metrics.Source.
func (s samples) OutOfService() (out []metrics.DownSample) {
	for _, l := range s.set {
		stamp, _ := l.Stamp() // Nil while the location is stopped.
		for _, id := range l.o.Local {
			if _, why := l.down(stamp, id); why != nil {
				reason := "store"
				if errors.Is(why, feature.ErrLater) {
					reason = "version"
				}
				out = append(out, metrics.DownSample{Location: l.o.Name, Node: id, Reason: reason})
			}
		}
	}
	return out
}
