// Package epochs asks the locations for the epochs of their accounts, for a name server (Source) and for a gateway
// (Follower): both follow the higher epoch of what the two stamps know, by dns.View and dns.Poller.
//
// Invariant: a Follower never goes back to a lower epoch of an account while its process runs.
package epochs
