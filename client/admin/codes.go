package admin

import "net/http"

// Code is what an admin port answers where it refuses or fails.
type Code struct {
	// Name is in the answer. Names are stable, messages are for people.
	Name string
	// Statuses are those that an answer with the code may have.
	Statuses []int
	// Meaning is a sentence for operators.
	Meaning string
}

// Codes are those of the admin ports. A change of an account may also be refused with a code of the storage protocol.
func Codes() []Code {
	const bad, away, missing, refused, busy = http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
		http.StatusServiceUnavailable
	return []Code{
		{"InvalidBody", []int{bad}, "The body is not one JSON object of the call. Nothing was tried."},
		{"InvalidInput", []int{bad}, "A field has a value that the call does not take. Nothing was tried."},
		{CodeKeepOne, []int{bad}, "The location to keep is none of the account's two."},
		{CodeToken, []int{http.StatusUnauthorized}, "The call came without the token, or with another one. Nothing was tried."},
		{"OutOfScope", []int{away}, "The port is that of one location, and the call concerns another. Nothing was tried."},
		{"CrossOriginRefused", []int{away}, "The call came from a page of another origin. Nothing was tried."},
		{"HostRefused", []int{away}, "The Host of the request is none that the port takes. Nothing was tried."},
		{"NoToken", []int{away, missing}, "The port has no token, so nobody may make the call."},
		{"RouteNotFound", []int{missing}, "There is no such address."},
		{CodeNoNode, []int{missing}, "There is no such node."},
		{"RangeNotFound", []int{missing}, "There is no such range."},
		{"ResourceNotFound", []int{missing}, "There is no such account at the port."},
		{"ReservationNotFound", []int{missing}, "No creation of that name waits."},
		{CodeNoVerify, []int{missing}, "The process that was asked has not compared the account."},
		{CodeNoClone, []int{missing}, "The account has no clone open."},
		{CodeNoFound, []int{missing}, "There is no such row in the lost-and-found, or no such chunk of it."},
		{CodeNotStopped, []int{missing, refused}, "The stream is not stopped at the location."},
		{"MethodNotAllowed", []int{http.StatusMethodNotAllowed}, "The address does not take that method."},
		{"AccountAlreadyExists", []int{refused}, "An account of that name exists, and the message names what differs."},
		{"StorageAccountOperationInProgress", []int{refused}, "Another operation of the account is under way."},
		{CodeOtherVersion, []int{refused}, "A node of the location runs another version, and does not know the call. It did nothing."},
		{CodeStopKept, []int{refused}, "The stream is stopped for a reason that the call does not end."},
		{CodeKeepPrimary, []int{refused}, "Only the primary's side can be kept, since the secondary lost what it had acknowledged."},
		{CodeAskPrimary, []int{refused}, "The location of the account's primary does it, and the port does not reach that."},
		{CodeNoSecondary, []int{refused}, "The account has one copy."},
		{CodeBusy, []int{refused}, "Too many comparisons run, or something that must not meet a repair."},
		{CodeSecondaryAhead, []int{refused}, "The secondary has records that the primary does not have."},
		{CodeClocks, []int{refused}, "The replication of the account stands since the clocks of both locations disagree."},
		{CodeOtherAway, []int{refused, busy}, "The other location does not answer, and nothing was changed."},
		{CodeCloneRefused, []int{refused}, "No clone of the account can be opened now."},
		{CodeNoCloneHost, []int{refused}, "No node has everything that a clone needs."},
		{CodeUnaware, []int{refused}, "The location does not know yet of failovers to the other one."},
		{CodeNotUpgraded, []int{refused}, "A node does not know the level, or was not seen. Nothing changed, unless the message says so."},
		{"QuorumPresent", []int{refused}, "Enough trusted replicas answer: they elect a leader by themselves."},
		{"NoSurvivor", []int{refused}, "No trusted replica answers."},
		{"PairSilent", []int{refused}, "The other location did not answer up to which time it has received the range."},
		{"ClockBehind", []int{refused}, "The other location has received times more than 1 s ahead of the clock here."},
		{"BodyTooLarge", []int{http.StatusRequestEntityTooLarge}, "The body is longer than the port takes."},
		{"InternalError", []int{http.StatusInternalServerError}, "It failed. The message has the cause, and the server's log too."},
		{"OperationTimedOut", []int{http.StatusInternalServerError}, "Time ran out and it may still happen: look at the status."},
		{"NotImplemented", []int{http.StatusNotImplemented}, "The message names what is missing."},
		{"ServerBusy", []int{busy}, "Nothing was done. Try again after Retry-After."},
		{CodeNoNodeAnswers, []int{busy}, "No node that could do it answers on its admin port. Nothing was done."},
		{"OutcomeUnknown", []int{busy}, "Time ran out and it may still happen: look at the status."},
	}
}
