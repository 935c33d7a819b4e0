package admin

import "net/http"

// The calls of operators, each once: the ports mount them, Client makes them, docs/admin.md describes them.
var (
	CallStatus = Call[None, Status]{get("status", "/v1/status")}
	CallEvents = Call[None, EventList]{get("events", "/v1/events")}

	CallAccounts      = Call[None, AccountList]{get("account.list", "/v1/accounts")}
	CallAccount       = Call[None, AccountInfo]{get("account.show", "/v1/accounts/{account}")}
	CallKeys          = Call[None, Keys]{secret("account.keys", "/v1/accounts/{account}/keys")}
	CallCreateAccount = Call[NewAccount, AccountInfo]{change("account.create", "/v1/accounts")}
	// Changes the redundancy of an account, has its copy made again, or begins or ends its failover.
	CallUpdateAccount = Call[UpdateAccount, AccountUpdated]{change("account.update", "/v1/accounts/{account}/update")}

	CallFlows          = Call[None, Flows]{get("account.flow", "/v1/accounts/{account}/flow")}
	CallLag            = Call[LagQuery, Lag]{get("account.lag", "/v1/accounts/{account}/lag")}
	CallWhy            = Call[WhyQuery, Why]{get("account.why", "/v1/accounts/{account}/why")}
	CallGeoReplication = Call[None, GeoReplication]{get("account.geo", "/v1/accounts/{account}/geo")}

	CallVerify      = Call[None, Verify]{secret("verify.show", "/v1/accounts/{account}/verify")}
	CallStartVerify = Call[VerifyQuery, Verify]{change("verify.start", "/v1/accounts/{account}/verify")}

	CallClone     = Call[None, Clone]{get("clone.show", "/v1/accounts/{account}/clone")}
	CallOpenClone = Call[OpenClone, Clone]{change("clone.open", "/v1/accounts/{account}/clone")}
	CallDropClone = Call[None, Clone]{change("clone.drop", "/v1/accounts/{account}/clone/drop")}

	CallReservations    = Call[None, Reservations]{get("reservation.list", "/v1/reservations")}
	CallFreeReservation = Call[None, Reservations]{change("reservation.free", "/v1/reservations/{account}/free")}
	CallNames           = Call[NamesQuery, Names]{get("names", "/v1/locations/{location}/names")}

	CallStartNode     = Call[None, Changed]{change("node.start", "/v1/nodes/{node}/start")}
	CallStopNode      = Call[None, Changed]{change("node.stop", "/v1/nodes/{node}/stop")}
	CallNodeSupport   = Call[None, Support]{secret("node.support", "/v1/nodes/{node}/support")}
	CallSupport       = Call[None, Support]{secret("support", "/v1/support")}
	CallStartLocation = Call[None, Changed]{change("location.start", "/v1/locations/{location}/start")}
	CallStopLocation  = Call[None, Changed]{change("location.stop", "/v1/locations/{location}/stop")}

	CallRecoverRange  = Call[RecoverRange, RangeRecovered]{change("range.recover", "/v1/locations/{location}/ranges/{range}/recover")}
	CallConfirmEpochs = Call[None, Epochs]{formerly(change("epochs.confirm", "/v1/locations/{location}/epochs/confirm"), "/v1/locations/{location}/epochs/override")}
	// Returns the failover of the location that is under way, or was last.
	CallLocationFailover = Call[None, LocationFailover]{get("location.failover.show", "/v1/locations/{location}/failover")}
	// Begins or ends a failover of all accounts. A planned one moves those whose primary is the location. An unplanned
	// one promotes those whose secondary is the location, without asking their primary.
	CallFailLocationOver = Call[Failover, LocationFailover]{change("location.failover", "/v1/locations/{location}/failover")}

	CallForks        = Call[None, Forks]{get("fork.list", "/v1/forks")}
	CallResume       = Call[StreamName, Resumed]{change("fork.resume", "/v1/locations/{location}/forks/resume")}
	CallResolve      = Call[ResolveFork, ForkResolved]{change("fork.resolve", "/v1/locations/{location}/forks/resolve")}
	CallCopyAlone    = Call[AloneQuery, CopyAlone]{change("copy.alone", "/v1/locations/{location}/copies/alone")}
	CallFound        = Call[FoundQuery, Found]{change("found.list", "/v1/locations/{location}/found/list")}
	CallFoundPayload = Call[FoundChunk, FoundPayload]{change("found.payload", "/v1/locations/{location}/found/payload")}
	CallDropFound    = Call[DropFound, FoundDropped]{change("found.drop", "/v1/locations/{location}/found/drop")}
	CallLost         = Call[LostQuery, Lost]{change("lost.list", "/v1/locations/{location}/lost/list")}
	CallDropLost     = Call[DropLost, LostDropped]{change("lost.drop", "/v1/locations/{location}/lost/drop")}

	CallRaiseLevels = Call[Levels, Levels]{change("levels.raise", "/v1/locations/{location}/levels")}
	CallFinalize    = Call[Finalize, Finalized]{change("cluster.finalize", "/v1/cluster/finalize")}

	CallCutLink  = Call[None, Link]{change("link.cut", "/v1/link/cut")}
	CallHealLink = Call[None, Link]{change("link.heal", "/v1/link/heal")}
	// Holds back everything that passes between the locations. It ends a cut.
	CallDelayLink = Call[Delay, Link]{change("link.delay", "/v1/link/delay")}
)

// formerly is a call that had another path in the version before.
func formerly(r Route, path string) Route {
	r.Former = path
	return r
}

// get is a call that everyone who reaches the port may make.
func get(name, path string) Route { return Route{Name: name, Method: http.MethodGet, Path: path} }

// secret is a call that changes nothing, and needs the token.
func secret(name, path string) Route {
	return Route{Name: name, Method: http.MethodGet, Path: path, Token: true}
}

// change is a call with a body, or one that changes something.
func change(name, path string) Route {
	return Route{Name: name, Method: http.MethodPost, Path: path, Token: true}
}
