package main

// formerGatewayCommands are former names of the commands gateway and cert gateway: the error for an
// unknown command suggests gateway in their place.
func formerGatewayCommands() []string { return []string{"frontdoor", "door"} }
