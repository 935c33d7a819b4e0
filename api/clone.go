package api

import (
	"antipode/api/routing"
)

// toClone passes a request for the clone of an account to the front end of the clone, or to the node that has it. Where
// answered is false the exchange has become one of the clone's front end, in this process. A clone is at one location:
// another answers as for an account that does not exist, and a gateway asks on.
func (x *exchange) toClone() (answered bool, err error) {
	var here *Server
	addr := ""
	if x.o.Clone != nil {
		if here, addr, err = x.o.Clone(x.req.Target.Account, x.service); err != nil {
			return true, err
		}
	}
	switch {
	case here != nil:
		x.Server, x.gate = here, here.clients
		return false, nil
	case addr != "":
		if !x.passed {
			routing.ForgetGateway(x.r) // A stranger, for all that is known: the other node would believe this one.
		}
		if err := checkLength(x.r, x.service); err != nil {
			return true, err
		}
		x.op = opForwarded
		return true, x.leaders.ToNode(x.routed(), addr)
	}
	x.notHere()
	return true, x.unknown()
}
