package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	wire "antipode/client/admin"
	"antipode/geo"
)

// servingPoll is the time between two checks whether a started location serves.
const servingPoll = 100 * time.Millisecond

func (p *port) startNode(c echo.Context) error {
	return p.setNode(c, "start", wire.Running, p.c.StartNode)
}

func (p *port) stopNode(c echo.Context) error {
	return p.setNode(c, "stop", wire.Stopped, p.c.StopNode)
}

func (p *port) setNode(
	c echo.Context, verb string, s wire.State,
	set func(context.Context, geo.Location, geo.NodeID) error,
) error {
	name := c.Param("node")
	what := "node " + name
	l, id, err := wire.ParseNodeName(name)
	if err != nil {
		return &wire.Error{Status: http.StatusNotFound, Code: wire.CodeNoNode, Message: sentence(verb, what, err.Error())}
	}
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	if err := set(c.Request().Context(), l, id); err != nil {
		return failed(verb, what, err)
	}
	done := wire.Changed{Name: name, State: s}
	if s == wire.Running {
		_, done.Waiting = p.serving(c.Request().Context(), l)
	}
	return p.changed(c, done)
}

func (p *port) startLocation(c echo.Context) error {
	return p.setLocation(c, "start", wire.Running, p.c.StartLocation)
}

// awaitServing waits up to ServingWait for a location to serve. It returns what the location waits
// for then, "" if it serves.
func (p *port) awaitServing(ctx context.Context, l geo.Location) string {
	enough := time.NewTimer(p.o.ServingWait)
	defer enough.Stop()
	poll := time.NewTicker(servingPoll)
	defer poll.Stop()
	for {
		serves, waiting := p.serving(ctx, l)
		if serves {
			return ""
		}
		select {
		case <-poll.C:
		case <-enough.C:
			return waiting
		case <-ctx.Done():
			return waiting
		}
	}
}

// serving reports whether a location serves, and if not, what it waits for.
func (p *port) serving(ctx context.Context, l geo.Location) (serves bool, waiting string) {
	for _, r := range p.c.Ready(ctx) {
		if r.Name == l && r.Serving {
			return true, ""
		}
		if r.Name == l {
			return false, r.Reason
		}
	}
	return false, "this port does not know " + string(l)
}

func (p *port) stopLocation(c echo.Context) error {
	return p.setLocation(c, "stop", wire.Stopped, p.c.StopLocation)
}

func (p *port) setLocation(
	c echo.Context, verb string, s wire.State, set func(context.Context, geo.Location) error,
) error {
	l := geo.Location(c.Param("location"))
	what := "location " + string(l)
	if err := p.controls(verb, what, l); err != nil {
		return err
	}
	if err := set(c.Request().Context(), l); err != nil {
		return failed(verb, what, err)
	}
	done := wire.Changed{Name: string(l), State: s}
	if s == wire.Running {
		if done.Waiting = p.awaitServing(c.Request().Context(), l); done.Waiting != "" {
			done.State = wire.Starting
		}
	}
	return p.changed(c, done)
}

func (p *port) changed(c echo.Context, done wire.Changed) error {
	p.o.Log.Info("changed by an operator", "name", done.Name, "state", string(done.State), "waiting", done.Waiting)
	return answer(c, http.StatusOK, done)
}

func (p *port) cutLink(c echo.Context) error {
	return p.setLink(c, "cut", wire.Link{State: wire.LinkCut})
}

func (p *port) healLink(c echo.Context) error {
	return p.setLink(c, "heal", wire.Link{State: wire.LinkUp})
}

func (p *port) delayLink(c echo.Context) error {
	var in wire.Delay
	if err := decode(c, &in); err != nil {
		return err
	}
	if !(in.Seconds > 0 && in.Seconds <= delayMax.Seconds()) {
		return invalid("delay", theLink, fmt.Sprintf(
			"the delay must be above 0 and at most %s: to end one, heal the link", delayMax))
	}
	return p.setLink(c, "delay", wire.Link{State: wire.LinkDelayed, DelaySeconds: in.Seconds})
}

const theLink = "the link between the locations"

// setLink is refused on a port of one location: a link has two ends.
func (p *port) setLink(c echo.Context, verb string, l wire.Link) error {
	if p.o.Location != "" {
		return p.outOfScope(verb, theLink)
	}
	if err := p.c.SetLink(c.Request().Context(), l); err != nil {
		return failed(verb, theLink, err)
	}
	p.o.Log.Info("link changed by an operator", "state", string(l.State), "delay_seconds", l.DelaySeconds)
	return answer(c, http.StatusOK, l)
}

// controls returns an error unless the port may change what belongs to l.
func (p *port) controls(verb, what string, l geo.Location) error {
	if p.shows(l) {
		return nil
	}
	return p.outOfScope(verb, what)
}

func (p *port) outOfScope(verb, what string) error {
	return &wire.Error{Status: http.StatusForbidden, Code: codeOutOfScope, Message: sentence(verb, what,
		fmt.Sprintf("this is the admin port of %s alone: use the port of the process", p.o.Location))}
}
