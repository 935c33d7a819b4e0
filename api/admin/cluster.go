package admin

import (
	"context"
	"time"

	wire "antipode/client/admin"
	"antipode/geo"
)

// Cluster is what the admin ports need of the process. Its methods may be called
// concurrently and end when their context does.
//
// An error is shown to the operator. A *wire.Error in its chain is answered as it
// is, but one with CodeNoNodeAnswers becomes a sentence; a storageerr row keeps its
// status and code and is put in words; a context's end answers that the outcome is
// unknown; any other error is an internal one.
type Cluster interface {
	// Status describes the whole process. The handler cuts it to the port's
	// location, adds Version, sums Alarms, sorts, and replaces nil slices.
	Status(ctx context.Context) (wire.Status, error)
	// Ready has one entry for each location of the process, with a reason if it is not ready.
	// A location stopped by an operator is not ready.
	Ready(ctx context.Context) []wire.LocationReadiness

	// Events returns the event logs of the process's locations; the handler cuts them to
	// the port's location and sorts them, newest first.
	Events(ctx context.Context) wire.EventList

	// Accounts lists all accounts the process knows.
	Accounts(ctx context.Context) ([]wire.AccountInfo, error)
	// Account returns one; storageerr.AccountNotFound if it does not exist.
	Account(ctx context.Context, name geo.Account) (wire.AccountInfo, error)
	// Keys returns its keys in base64; storageerr.AccountNotFound.
	Keys(ctx context.Context, name geo.Account) (wire.Keys, error)
	// CreateAccount makes an account, with new keys for empty ones, and returns
	// when both locations serve it. The name and the keys' form were checked; the
	// location was not. storageerr.AccountAlreadyExists, storageerr.ServerBusy.
	CreateAccount(ctx context.Context, a wire.NewAccount) (wire.AccountInfo, error)

	// Flows returns what the locations know of the streams of an account, or what one of them does.
	// storageerr.AccountNotFound if none of them knows the account.
	Flows(ctx context.Context, name geo.Account, only geo.Location) (wire.Flows, error)
	// Lag computes from the Flows how far the secondary of the account is. The query was checked.
	Lag(ctx context.Context, name geo.Account, q wire.LagQuery, only geo.Location) (wire.Lag, error)
	// Why computes from the Flows what holds Last Sync Time back. Zero as threshold means the default.
	Why(ctx context.Context, name geo.Account, threshold time.Duration, only geo.Location) (wire.Why, error)

	// UpdateAccount changes the redundancy of an account. storageerr.AccountNotFound, InvalidInput,
	// NotImplemented, OperationInProgress, ServerBusy: nothing changed.
	UpdateAccount(ctx context.Context, name geo.Account, u wire.UpdateAccount) (wire.AccountUpdated, error)

	// Names returns a page of what a location knows of the names of accounts. The query was checked.
	Names(ctx context.Context, l geo.Location, q wire.NamesQuery) (wire.Names, error)

	// Support returns what the process of a node knows of itself; without a location, that of the process that answers.
	Support(ctx context.Context, l geo.Location, id geo.NodeID) (wire.Support, error)

	// Forks lists the streams that may not go on, of the locations that answer.
	Forks(ctx context.Context) (wire.Forks, error)

	// StartVerify begins to compare both copies of an account, or returns the comparison that runs; Verify
	// returns the last one. The query was checked.
	StartVerify(ctx context.Context, name geo.Account, q wire.VerifyQuery) (wire.Verify, error)
	Verify(ctx context.Context, name geo.Account) (wire.Verify, error)

	Clones

	// Reservations lists the accounts whose creation has not ended, at the locations that answer.
	Reservations(ctx context.Context) (wire.Reservations, error)
	// FreeReservation gives up the creation of a name that has not ended, at every location, or at
	// one only, and returns what was freed. storageerr.AccountAlreadyExists: it is complete.
	FreeReservation(ctx context.Context, name geo.Account, only geo.Location) (wire.Reservations, error)

	// StartNode and StopNode control one node. Starting a running node and stopping a stopped
	// or unknown node are errors that change nothing. A long start goes on after its method
	// has returned nil: Ready shows how far it is.
	StartNode(ctx context.Context, l geo.Location, id geo.NodeID) error
	StopNode(ctx context.Context, l geo.Location, id geo.NodeID) error
	// StartLocation and StopLocation control all nodes and the front end of a
	// location; its admin port keeps answering.
	StartLocation(ctx context.Context, l geo.Location) error
	StopLocation(ctx context.Context, l geo.Location) error
	// RecoverRange re-forms a range that has no quorum of trusted replicas from its best
	// survivor. The operator has accepted the loss, and in.AcceptLoss is true.
	RecoverRange(ctx context.Context, l geo.Location, id geo.RangeID, in wire.RecoverRange) (wire.RangeRecovered, error)
	// ResumeStream ends the stop of a stream at a location: see wire.Client.Resume.
	ResumeStream(ctx context.Context, l geo.Location, s wire.StreamName) (wire.Resumed, error)
	// Finalize raises all locations to a feature level, and RaiseLevels one of them: see wire.Client.
	Finalize(ctx context.Context, f wire.Finalize) (wire.Finalized, error)
	RaiseLevels(ctx context.Context, l geo.Location, to wire.Levels) (wire.Levels, error)
	// OverrideEpochs has a location take writes without an answer of the other one: see wire.Client.OverrideEpochs.
	OverrideEpochs(ctx context.Context, l geo.Location) (wire.Epochs, error)
	// LocationFailover and FailLocationOver are the failover of all accounts of a location: see wire.Client.
	LocationFailover(ctx context.Context, l geo.Location) (wire.LocationFailover, error)
	FailLocationOver(ctx context.Context, l geo.Location, f wire.Failover) (wire.LocationFailover, error)
	Forks
	Lost
	// SetLink replaces the state of the link between the locations. DelaySeconds
	// was checked and is zero unless the state is wire.LinkDelayed.
	SetLink(ctx context.Context, link wire.Link) error
}
