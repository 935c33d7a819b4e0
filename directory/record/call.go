package record

import (
	"fmt"

	"antipode/geo"
	"antipode/services/storageerr"
)

// NotArrived is the answer of agree at a location. The other one knows it by its text: see answers.
func NotArrived(name geo.Account, at geo.Location) storageerr.Row {
	return storageerr.ServerBusy.Saying(fmt.Sprintf("the change of account %s has not arrived at %s yet", name, at))
}

// MethodAnnounce is the method of Announce. It is on the wire: never rename it.
const MethodAnnounce = "directory.Announce"
