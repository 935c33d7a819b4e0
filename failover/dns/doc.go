// Package dns answers for the names of accounts: which location an account is served from is known by
// its name, and a failover changes what the name leads to.
//
// A View merges what both stamps know of all accounts. A Poller keeps it up to date. A Server answers
// queries out of it over UDP and TCP, and a Pusher keeps the same records at another server by dynamic
// updates (RFC 2136) with TSIG.
//
// Names, all in one zone:
//
//	ACCOUNT.SERVICE.ZONE                   CNAME of the account's primary location
//	ACCOUNT-secondary.SERVICE.ZONE         CNAME of its secondary, if clients may read that
//	_epoch.ACCOUNT.SERVICE.ZONE            TXT with the epoch: see Entry.Text. No other record may be beside a CNAME
//	SERVICE.LOCATION.store.ZONE            A and AAAA of the location's front ends
//
// Invariant: the record of an account with the higher epoch wins, whatever stamp has it and in whatever
// sequence the records come. No answer goes back to a lower epoch, also not after a restart while both
// stamps are away.
package dns
